//! From classes of rows to letters: what a path says is its classes with repetitions made one and
//! blanks left out (Graves et al. 2006).

use std::collections::{BTreeMap, HashMap};

/// What the likeliest class of each row says. It is not always the likeliest text, of which many
/// paths may be a little likely each.
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
        // Ties go to the lower class, as everywhere.
        let best = (0..row.len()).rev().max_by(|a, b| row[*a].total_cmp(&row[*b]));
        let best = best.unwrap_or(blank);
        if best != blank && best != before {
            said.push(best as u32);
        }
        before = best;
    }
    said
}

/// The likeliest texts, row by row: beam search over prefixes (Hannun et al. 2014,
/// arXiv:1408.2873). All paths that say one prefix are one hypothesis.
///
/// ```
/// use regard_tasks::decode::ctc::PrefixBeam;
/// let mut beam = PrefixBeam::new(4, 0);
/// for row in [[0.6f32, 0.4], [0.6, 0.4]] {
///     beam.push(&row.map(f32::ln));
/// }
/// // The likeliest path says nothing with 0.36; three others say 1, with 0.64 together.
/// let (said, score) = &beam.best(1)[0];
/// assert_eq!(said, &[1]);
/// assert!((score.exp() - 0.64).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct PrefixBeam {
    width: usize,
    blank: usize,
    /// Every prefix that was ever kept, by the one that it goes on from; the first is empty.
    prefixes: Vec<Prefix>,
    /// Where a prefix is that goes on from another with a letter.
    longer: HashMap<(usize, u32), usize>,
    /// Those that are kept now, the likeliest first.
    kept: Vec<(usize, Ends)>,
}

#[derive(Clone, Copy, Debug)]
struct Prefix {
    before: usize,
    letter: u32,
}

/// No letter: what comes is the prefix itself.
const ITSELF: u32 = u32::MAX;

/// Logarithms of what paths of a prefix are worth, by what they end with.
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
    /// Keeps so many prefixes after each row.
    ///
    /// # Panics
    /// If it is to keep none.
    pub fn new(width: usize, blank: usize) -> PrefixBeam {
        assert!(width > 0, "prefix beam: got a width of 0, need at least 1");
        let empty = Prefix { before: 0, letter: ITSELF };
        let kept = vec![(0, Ends { blank: 0.0, letter: NEVER })];
        PrefixBeam { width, blank, prefixes: vec![empty], longer: HashMap::new(), kept }
    }

    /// Goes on with one more row of logarithms of probabilities.
    pub fn push(&mut self, logs: &[f32]) {
        // By a prefix that there is, or by one and the letter that it would go on with: what is not
        // kept is never made, so that a row costs the same however long the text is.
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
                        // Without a blank between them, two are one.
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
        // The sort is stable and the map in order, so that ties do not depend on anything else.
        next.sort_by(|a, b| b.1.total().total_cmp(&a.1.total()));
        next.truncate(self.width);
        self.kept = next.into_iter().map(|(key, ends)| (self.place(key), ends)).collect();
    }

    fn place(&mut self, (before, letter): (usize, u32)) -> usize {
        if letter == ITSELF {
            return before;
        }
        self.prefixes.push(Prefix { before, letter });
        let place = self.prefixes.len() - 1;
        self.longer.insert((before, letter), place);
        place
    }

    /// The likeliest texts so far with the logarithms of their probabilities, the likeliest first.
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

    /// Every text with its probability, by all paths there are.
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
