//! Error rates by edit distance (Levenshtein 1966): of words in sentences (WER), of phonemes in
//! pronunciations (PER); and the fraction of whole words that are right.

/// Computes the minimum number of insertions, deletions and substitutions that turn one sequence
/// into the other. Time is O(|a|·|b|), memory O(|b|).
pub fn edit_distance<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    // Distances from a[..i] to every b[..j], one row at a time.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Edits over the length of the references, summed over a corpus before the division.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorRate {
    /// Number of insertions, deletions and substitutions.
    pub edits: u64,
    /// Number of words, or phonemes, in the references.
    pub length: u64,
}

impl ErrorRate {
    /// Creates empty counts.
    pub fn new() -> ErrorRate {
        ErrorRate::default()
    }

    /// Adds a sequence. Of several references the closest counts: the one with the fewest edits,
    /// and of those the longest, which gives the lowest rate.
    ///
    /// # Panics
    /// If there is no reference.
    pub fn add<T: PartialEq, R: AsRef<[T]>>(&mut self, hypothesis: &[T], references: &[R]) {
        let closest = references
            .iter()
            .map(|r| (edit_distance(hypothesis, r.as_ref()), r.as_ref().len()))
            .min_by_key(|&(edits, length)| (edits, std::cmp::Reverse(length)));
        let (edits, length) =
            closest.expect("no reference for a sequence: an error rate needs one or more of them");
        self.edits += edits as u64;
        self.length += length as u64;
    }

    /// Adds two lines split at white space: words, or phonemes as in `R IH0 G AA1 R D`.
    ///
    /// # Panics
    /// If there is no reference.
    pub fn add_line<R: AsRef<str>>(&mut self, hypothesis: &str, references: &[R]) {
        let hypothesis: Vec<&str> = hypothesis.split_whitespace().collect();
        let references: Vec<Vec<&str>> =
            references.iter().map(|r| r.as_ref().split_whitespace().collect()).collect();
        self.add(&hypothesis, &references);
    }

    /// Adds the counts of another part of the corpus.
    pub fn merge(&mut self, other: &ErrorRate) {
        self.edits += other.edits;
        self.length += other.length;
    }

    /// Returns edits over length: 0 is perfect, and values above 1 are possible. Infinite if the
    /// references are empty and the hypotheses are not.
    pub fn rate(&self) -> f64 {
        match (self.edits, self.length) {
            (0, _) => 0.0,
            (edits, length) => edits as f64 / length as f64,
        }
    }
}

/// Fraction of words that equal one of their variants. Papers on pronunciation call one minus this
/// the word error rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordAccuracy {
    /// Number of words equal to a variant.
    pub right: u64,
    /// Number of words.
    pub words: u64,
}

impl WordAccuracy {
    /// Creates empty counts.
    pub fn new() -> WordAccuracy {
        WordAccuracy::default()
    }

    /// Adds a word and returns whether it is right. A word without variants is wrong.
    pub fn add<T: PartialEq, R: AsRef<[T]>>(&mut self, hypothesis: &[T], variants: &[R]) -> bool {
        let right = variants.iter().any(|v| v.as_ref() == hypothesis);
        self.right += u64::from(right);
        self.words += 1;
        right
    }

    /// Adds the counts of another part of the corpus.
    pub fn merge(&mut self, other: &WordAccuracy) {
        self.right += other.right;
        self.words += other.words;
    }

    /// Returns the fraction of right words; 0 if there is no word.
    pub fn accuracy(&self) -> f64 {
        if self.words == 0 { 0.0 } else { self.right as f64 / self.words as f64 }
    }

    /// Returns the fraction of wrong words; 0 if there is no word.
    pub fn error_rate(&self) -> f64 {
        if self.words == 0 { 0.0 } else { (self.words - self.right) as f64 / self.words as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &str, b: &str, distance: usize) {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        assert_eq!(edit_distance(&a, &b), distance);
        assert_eq!(edit_distance(&b, &a), distance);
        assert_eq!(edit_distance(&a, &a), 0);
    }

    #[test]
    fn distances() {
        check("", "", 0);
        check("", "abc", 3);
        check("kitten", "sitting", 3);
        check("flaw", "lawn", 2);
        check("regard", "regarder", 2);
        check("ab", "ba", 2);
    }

    #[test]
    fn the_triangle_is_never_broken() {
        // All strings of up to three characters over an alphabet of two.
        let mut texts = vec![String::new()];
        for i in 0..7 {
            let shorter = texts[i].clone();
            texts.extend(["a", "b"].map(|c| shorter.clone() + c));
        }
        let distance = |i: usize, j: usize| edit_distance(texts[i].as_bytes(), texts[j].as_bytes());
        for i in 0..texts.len() {
            for j in 0..texts.len() {
                assert_eq!(distance(i, j) == 0, i == j);
                for k in 0..texts.len() {
                    assert!(distance(i, k) <= distance(i, j) + distance(j, k));
                }
            }
        }
    }

    #[test]
    fn the_closest_reference_counts() {
        let check = |hypothesis: &str, references: &[&str], edits: u64, length: u64| {
            let mut rate = ErrorRate::new();
            rate.add_line(hypothesis, references);
            assert_eq!(rate, ErrorRate { edits, length }, "{hypothesis}");
        };
        check("R EH D", &["R IY D", "R EH D"], 0, 3);
        check("a b c", &["a b", "a b d e", "a b d"], 1, 3);
        check("", &["a b", "a"], 1, 1);
        check("x y", &[""], 2, 0);
    }

    #[test]
    fn rates() {
        let rate = |edits, length| ErrorRate { edits, length }.rate();
        assert_eq!(rate(0, 0), 0.0);
        assert_eq!(rate(1, 4), 0.25);
        assert_eq!(rate(3, 2), 1.5);
        assert_eq!(rate(1, 0), f64::INFINITY);
    }

    #[test]
    fn a_word_is_right_by_any_variant() {
        let mut words = WordAccuracy::new();
        assert!(words.add(b"RED", &[b"RID", b"RED"]));
        assert!(!words.add(b"RAD", &[b"RID", b"RED"]));
        assert!(!words.add::<_, &[u8]>(b"RAD", &[]));
        let mut more = WordAccuracy { right: 1, words: 1 };
        more.merge(&words);
        assert_eq!((more.accuracy(), more.error_rate()), (0.5, 0.5));
        assert_eq!(WordAccuracy::new().accuracy(), 0.0);
    }
}
