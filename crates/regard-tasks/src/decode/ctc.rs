//! CTC decoding: the text of a path is its classes with repetitions merged and blanks removed
//! (Graves et al. 2006).

use std::collections::{BTreeMap, HashMap};

/// Returns the text of the best path: the likeliest class of each row. It need not be the likeliest
/// text, whose probability may be spread over many paths.
///
/// ```
/// use regard_tasks::decode::ctc::best_path;
/// let rows = [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4], [0.1, 0.9]];
/// assert_eq!(best_path(rows.iter().map(|row| &row[..]), 0), [1, 1]);
/// ```
pub fn best_path<'a>(rows: impl Iterator<Item = &'a [f32]>, blank: usize) -> Vec<u32> {
    let mut said = vec![];
    let mut before = blank;
    for row in rows {
        // Ties go to the lower class.
        let best = (0..row.len()).rev().max_by(|a, b| row[*a].total_cmp(&row[*b]));
        let best = best.unwrap_or(blank);
        if best != blank && best != before {
            said.push(best as u32);
        }
        before = best;
    }
    said
}

/// Prefix beam search (Hannun et al. 2014, arXiv:1408.2873), row by row. All paths with the same
/// prefix are one hypothesis.
///
/// ```
/// use regard_tasks::decode::ctc::PrefixBeam;
/// let mut beam = PrefixBeam::new(4, 0);
/// for row in [[0.6f32, 0.4], [0.6, 0.4]] {
///     beam.push(&row.map(f32::ln));
/// }
/// // The best path is empty, with 0.36; three others give 1, with 0.64 together.
/// let (labels, score) = &beam.best(1)[0];
/// assert_eq!(labels, &[1]);
/// assert!((score.exp() - 0.64).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct PrefixBeam {
    width: usize,
    blank: usize,
    /// All prefixes ever kept, each linked to its parent; the first is empty.
    prefixes: Vec<Prefix>,
    /// Index of the prefix that extends another by a character.
    longer: HashMap<(usize, u32), usize>,
    /// Current beam, the likeliest first.
    kept: Vec<(usize, Ends)>,
}

#[derive(Clone, Copy, Debug)]
struct Prefix {
    before: usize,
    letter: u32,
}

/// Marks the prefix itself, without a further character.
const ITSELF: u32 = u32::MAX;

/// Log-probabilities of the paths of a prefix, by whether they end with a blank or a character.
#[derive(Clone, Copy, Debug)]
struct Ends {
    blank: f64,
    letter: f64,
}

const NEVER: f64 = f64::NEG_INFINITY;

fn plus(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == NEVER { high } else { high + (low - high).exp().ln_1p() }
}

impl Ends {
    const NONE: Ends = Ends { blank: NEVER, letter: NEVER };

    fn total(&self) -> f64 {
        plus(self.blank, self.letter)
    }
}

impl PrefixBeam {
    /// Creates a beam that keeps `width` prefixes after each row; `blank` is the class of the
    /// blank.
    ///
    /// # Panics
    /// If `width` is 0.
    pub fn new(width: usize, blank: usize) -> PrefixBeam {
        assert!(width > 0, "prefix beam: got a width of 0, need at least 1");
        let empty = Prefix { before: 0, letter: ITSELF };
        let kept = vec![(0, Ends { blank: 0.0, letter: NEVER })];
        PrefixBeam { width, blank, prefixes: vec![empty], longer: HashMap::new(), kept }
    }

    /// Advances by one row of log-probabilities.
    pub fn push(&mut self, logs: &[f32]) {
        // Keyed by an existing prefix, or by one and its next character: a prefix that is not kept
        // is never created, so the cost of a row does not depend on the length of the text.
        let mut next: BTreeMap<(usize, u32), Ends> = BTreeMap::new();
        for (prefix, ends) in std::mem::take(&mut self.kept) {
            let (total, last) = (ends.total(), self.prefixes[prefix].letter);
            for (class, log) in logs.iter().enumerate() {
                let (letter, log) = (class as u32, f64::from(*log));
                let repeats = last == letter;
                if class == self.blank || repeats {
                    let same = next.entry((prefix, ITSELF)).or_insert(Ends::NONE);
                    match class == self.blank {
                        true => same.blank = plus(same.blank, total + log),
                        // Repetitions without a blank between them are merged.
                        false => same.letter = plus(same.letter, ends.letter + log),
                    }
                }
                let from = if repeats { ends.blank } else { total };
                if class != self.blank && from + log > NEVER {
                    let known = self.longer.get(&(prefix, letter));
                    let key = known.map_or((prefix, letter), |known| (*known, ITSELF));
                    let longer = next.entry(key).or_insert(Ends::NONE);
                    longer.letter = plus(longer.letter, from + log);
                }
            }
        }
        let mut next: Vec<_> = next.into_iter().collect();
        // The sort is stable and the map ordered, so ties are deterministic.
        next.sort_by(|a, b| b.1.total().total_cmp(&a.1.total()));
        next.truncate(self.width);
        self.kept = next
            .into_iter()
            .map(|((before, letter), ends)| (self.place(before, letter), ends))
            .collect();
    }

    fn place(&mut self, before: usize, letter: u32) -> usize {
        if letter == ITSELF {
            return before;
        }
        self.prefixes.push(Prefix { before, letter });
        let place = self.prefixes.len() - 1;
        self.longer.insert((before, letter), place);
        place
    }

    /// Returns the likeliest texts so far with their log-probabilities, the likeliest first.
    pub fn best(&self, count: usize) -> Vec<(Vec<u32>, f64)> {
        let all = self.kept.iter().take(count);
        all.map(|(prefix, ends)| (self.text(*prefix), ends.total())).collect()
    }

    fn text(&self, mut prefix: usize) -> Vec<u32> {
        let mut letters = vec![];
        while prefix != 0 {
            letters.push(self.prefixes[prefix].letter);
            prefix = self.prefixes[prefix].before;
        }
        letters.reverse();
        letters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_attention::Stream;

    fn rows(seed: u64, count: usize, classes: usize) -> Vec<Vec<f32>> {
        let stream = Stream::new(seed, 0, 0);
        let row = |t: usize| {
            let x: Vec<f32> =
                (0..classes).map(|c| 3.0 * stream.normal((t * classes + c) as u64)).collect();
            let sum = x.iter().map(|x| x.exp()).sum::<f32>().ln();
            x.iter().map(|x| x - sum).collect()
        };
        (0..count).map(row).collect()
    }

    /// Every text with its probability, by enumerating all paths.
    fn every_text(rows: &[Vec<f32>], blank: usize) -> BTreeMap<Vec<u32>, f64> {
        let classes = rows[0].len();
        let mut texts = BTreeMap::new();
        for path in 0..classes.pow(rows.len() as u32) {
            let at = |t: usize| path / classes.pow(t as u32) % classes;
            let (mut said, mut log) = (vec![], 0.0);
            for (t, row) in rows.iter().enumerate() {
                log += f64::from(row[at(t)]);
                if at(t) != blank && (t == 0 || at(t) != at(t - 1)) {
                    said.push(at(t) as u32);
                }
            }
            *texts.entry(said).or_insert(0.0) += log.exp();
        }
        texts
    }

    #[test]
    fn a_wide_beam_finds_the_likeliest_text_and_its_probability() {
        for (seed, blank) in [(1, 0), (2, 2), (3, 1), (4, 0), (5, 0)] {
            let rows = rows(seed, 6, 3);
            let texts = every_text(&rows, blank);
            let mut beam = PrefixBeam::new(1000, blank);
            rows.iter().for_each(|row| beam.push(row));
            let found = beam.best(1000);
            assert_eq!(found.len(), texts.len());
            for (said, log) in &found {
                assert!((log.exp() - texts[said]).abs() < 1e-6, "{said:?}");
            }
            let best = texts.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
            assert_eq!(&found[0].0, best.0);
        }
    }

    #[test]
    fn a_beam_of_one_still_sums_over_paths() {
        let mut beam = PrefixBeam::new(1, 0);
        for row in [[0.4f32, 0.6], [0.1, 0.9], [0.9, 0.1], [0.2, 0.8]] {
            beam.push(&row.map(f32::ln));
        }
        assert_eq!(beam.best(5).len(), 1);
        assert_eq!(beam.best(5)[0].0, [1, 1]);
    }

    #[test]
    fn best_paths_by_hand() {
        let path = |classes: &[usize]| {
            let rows: Vec<[f32; 3]> =
                classes.iter().map(|c| std::array::from_fn(|i| f32::from(i == *c))).collect();
            best_path(rows.iter().map(|row| &row[..]), 0)
        };
        assert_eq!(path(&[0, 1, 1, 0, 1, 2, 2, 0]), [1, 1, 2]);
        assert_eq!(path(&[1, 2, 1]), [1, 2, 1]);
        assert!(path(&[0, 0]).is_empty() && path(&[]).is_empty());
    }

    #[test]
    fn rows_that_say_nothing_and_impossible_classes() {
        let mut beam = PrefixBeam::new(4, 0);
        assert_eq!(beam.best(2), [(vec![], 0.0)]);
        beam.push(&[0.0, f32::NEG_INFINITY]);
        assert_eq!(beam.best(2), [(vec![], 0.0)]);
    }
}
