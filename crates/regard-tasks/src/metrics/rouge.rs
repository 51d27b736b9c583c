//! ROUGE (Lin 2004): overlap of a summary with references in words, bigrams and longest common
//! subsequence.
//!
//! Counted as Google's `rouge_score` does: text is lower-cased and split at everything but ASCII
//! letters and digits; with stemming, words of more than three characters are reduced to their
//! stems. Of several references the one with the best F1 counts, for each metric separately. The
//! score of a corpus is the mean over its summaries.

use super::porter::stem;
use std::collections::HashMap;

/// Options of ROUGE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rouge {
    /// Whether words are reduced to their stems.
    pub stemmed: bool,
}

/// Overlap of a summary with a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overlap {
    /// Fraction of the summary's n-grams that the reference has.
    pub precision: f64,
    /// Fraction of the reference's n-grams that the summary has.
    pub recall: f64,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
}

/// Scores of a summary, or their means over a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RougeScore {
    /// Overlap of words (ROUGE-1).
    pub rouge1: Overlap,
    /// Overlap of bigrams (ROUGE-2).
    pub rouge2: Overlap,
    /// Longest common subsequence of words (ROUGE-L).
    pub rouge_l: Overlap,
}

/// Sums of scores over a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RougeCounts {
    rouge: Rouge,
    sum: RougeScore,
    count: usize,
}

impl Overlap {
    fn of(both: usize, summary: usize, reference: usize) -> Overlap {
        let share = |of: usize| both as f64 / of.max(1) as f64;
        let (precision, recall) = (share(summary), share(reference));
        let sum = precision + recall;
        let f1 = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
        Overlap { precision, recall, f1 }
    }

    fn each(self, other: Overlap, f: impl Fn(f64, f64) -> f64) -> Overlap {
        Overlap {
            precision: f(self.precision, other.precision),
            recall: f(self.recall, other.recall),
            f1: f(self.f1, other.f1),
        }
    }

    fn better(self, other: Overlap) -> Overlap {
        if other.f1 > self.f1 { other } else { self }
    }
}

impl RougeScore {
    fn each(self, other: RougeScore, f: impl Fn(Overlap, Overlap) -> Overlap) -> RougeScore {
        RougeScore {
            rouge1: f(self.rouge1, other.rouge1),
            rouge2: f(self.rouge2, other.rouge2),
            rouge_l: f(self.rouge_l, other.rouge_l),
        }
    }
}

impl Rouge {
    /// Splits a text into words, stemmed if set.
    pub fn words(&self, text: &str) -> Vec<String> {
        let text = text.to_lowercase();
        let words = text.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit());
        let cut = |word: &str| match self.stemmed && word.len() > 3 {
            true => stem(word),
            false => word.to_string(),
        };
        words.filter(|word| !word.is_empty()).map(cut).collect()
    }

    /// Scores a summary against its references; zeros if there are none.
    pub fn score<S: AsRef<str>>(&self, summary: &str, references: &[S]) -> RougeScore {
        let summary = self.words(summary);
        let one = |reference: &S| {
            let reference = self.words(reference.as_ref());
            let lcs = longest_common(&summary, &reference);
            RougeScore {
                rouge1: grams(&summary, &reference, 1),
                rouge2: grams(&summary, &reference, 2),
                rouge_l: Overlap::of(lcs, summary.len(), reference.len()),
            }
        };
        let all = references.iter().map(one);
        all.reduce(|a, b| a.each(b, Overlap::better)).unwrap_or_default()
    }

    /// Creates empty sums, to add summaries to.
    pub fn counts(self) -> RougeCounts {
        RougeCounts { rouge: self, ..RougeCounts::default() }
    }
}

impl RougeCounts {
    /// Adds a summary with its references.
    pub fn add<S: AsRef<str>>(&mut self, summary: &str, references: &[S]) {
        let score = self.rouge.score(summary, references);
        self.sum = self.sum.each(score, |a, b| a.each(b, |a, b| a + b));
        self.count += 1;
    }

    /// Computes the mean scores over the summaries added so far; zeros if there are none.
    pub fn score(&self) -> RougeScore {
        let count = self.count.max(1) as f64;
        self.sum.each(RougeScore::default(), |a, b| a.each(b, |a, _| a / count))
    }
}

/// Computes the overlap of n-grams, each counted as often as both have it.
fn grams(summary: &[String], reference: &[String], n: usize) -> Overlap {
    let count = |words: &'_ [String]| words.len().saturating_sub(n - 1);
    let mut there: HashMap<&[String], usize> = HashMap::new();
    reference.windows(n).for_each(|gram| *there.entry(gram).or_default() += 1);
    let mut both = 0;
    for gram in summary.windows(n) {
        if let Some(left) = there.get_mut(gram).filter(|left| **left > 0) {
            *left -= 1;
            both += 1;
        }
    }
    Overlap::of(both, count(summary), count(reference))
}

/// Computes the length of the longest common subsequence.
fn longest_common(a: &[String], b: &[String]) -> usize {
    let mut before = vec![0; b.len() + 1];
    for x in a {
        let mut row = vec![0; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            row[j + 1] = if x == y { before[j] + 1 } else { row[j].max(before[j + 1]) };
        }
        before = row;
    }
    before[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_words_pairs_and_order() {
        let score = Rouge::default().score("the cat sat", &["The cat, it sat on the mat."]);
        assert_eq!((score.rouge1.precision, score.rouge1.recall), (1.0, 3.0 / 7.0));
        assert_eq!((score.rouge2.precision, score.rouge2.recall), (0.5, 1.0 / 6.0));
        assert!((score.rouge_l.f1 - 0.6).abs() < 1e-12);
        assert_eq!(Rouge::default().score("", &["a b"]), RougeScore::default());
        assert_eq!(Rouge::default().score("a", &[""; 0]), RougeScore::default());
        let both = Rouge::default().score("a b", &["c", "b a"]);
        assert_eq!((both.rouge1.f1, both.rouge2.f1), (1.0, 0.0));
        let stemmed = Rouge { stemmed: true };
        assert_eq!(
            stemmed.words("The meetings, 2001: was RUNNING"),
            ["the", "meet", "2001", "was", "run"]
        );
        let mut counts = stemmed.counts();
        counts.add("meeting", &["meetings"]);
        counts.add("nothing", &["else"]);
        assert_eq!(counts.score().rouge_l.f1, 0.5);
    }

    /// Summaries and stems by `rouge_score` 0.1.2 and NLTK, from `fixtures/make/rouge.py`.
    #[test]
    fn scores_and_stems_are_those_of_rouge_score() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../../../fixtures/metrics/rouge.json")).unwrap();
        for row in golden["stems"].as_array().unwrap() {
            let word = row[0].as_str().unwrap();
            assert_eq!(stem(word), row[1].as_str().unwrap(), "{word}");
        }
        let rows = golden["scores"].as_array().unwrap();
        assert!(rows.len() >= 50);
        for row in rows {
            let summary = row["summary"].as_str().unwrap();
            let references: Vec<&str> = row["references"]
                .as_array()
                .unwrap()
                .iter()
                .map(|each| each.as_str().unwrap())
                .collect();
            for (name, stemmed) in [("plain", false), ("stemmed", true)] {
                let said = Rouge { stemmed }.score(summary, &references);
                let said = [said.rouge1, said.rouge2, said.rouge_l];
                for (kind, said) in said.iter().enumerate() {
                    for (at, got) in [said.precision, said.recall, said.f1].iter().enumerate() {
                        let wanted = row[name][kind][at].as_f64().unwrap();
                        assert!((got - wanted).abs() < 1e-12, "{row}: {name} {kind} {at}: {got}");
                    }
                }
            }
        }
    }
}
