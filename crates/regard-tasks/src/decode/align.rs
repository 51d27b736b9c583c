//! Alignments: which source word a written word comes from, by where the model looked.

use serde::{Deserialize, Serialize};

/// A soft alignment: for each written token (or word), how much it looked at each of the source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alignment {
    /// `[T, S]`: rows are what was written, columns the source.
    pub weights: Vec<Vec<f32>>,
}

impl Alignment {
    /// The alignment of the first `targets` rows of the attention of a hypothesis: pass
    /// `hypothesis.tokens.len()` to leave out the row of the end.
    pub fn new(attention: &[Vec<f32>], targets: usize) -> Alignment {
        Alignment { weights: attention.iter().take(targets).cloned().collect() }
    }

    /// From tokens to words: a word of the source has what its tokens have together, a written
    /// word the mean of its tokens.
    ///
    /// `source` and `target` say which word each token belongs to; `None` for a token that belongs
    /// to none (the end of a sentence), which is left out. A row may so sum to less than one.
    pub fn words(&self, source: &[Option<usize>], target: &[Option<usize>]) -> Alignment {
        assert!(
            target.len() == self.weights.len(),
            "Alignment::words: got the words of {} written tokens, needs those of {}",
            target.len(),
            self.weights.len()
        );
        let count = |words: &[Option<usize>]| words.iter().flatten().max().map_or(0, |w| w + 1);
        let mut weights = vec![vec![0f32; count(source)]; count(target)];
        let mut tokens = vec![0usize; count(target)];
        for (row, word) in self.weights.iter().zip(target) {
            let Some(word) = *word else { continue };
            assert!(
                row.len() == source.len(),
                "Alignment::words: got the words of {} source tokens, needs those of {}",
                source.len(),
                row.len()
            );
            for (weight, source) in row.iter().zip(source) {
                source.iter().for_each(|at| weights[word][*at] += weight);
            }
            tokens[word] += 1;
        }
        for (row, tokens) in weights.iter_mut().zip(tokens) {
            row.iter_mut().for_each(|weight| *weight /= tokens.max(1) as f32);
        }
        Alignment { weights }
    }

    /// A hard alignment: what each written token looked at most, the first of equals. `None` if
    /// it looked at nothing.
    pub fn hard(&self) -> Vec<Option<usize>> {
        self.weights.iter().map(|row| argmax(row)).collect()
    }

    /// The hard alignment as links (source, written), in this order.
    pub fn links(&self) -> Vec<(usize, usize)> {
        let hard = self.hard();
        let mut links: Vec<(usize, usize)> = hard
            .iter()
            .enumerate()
            .filter_map(|(target, source)| Some(((*source)?, target)))
            .collect();
        links.sort_unstable();
        links
    }

    /// The hard alignment in the format of Pharaoh, `source-target` pairs from 0: `0-0 1-2`.
    pub fn pharaoh(&self) -> String {
        let links = self.links();
        let pairs: Vec<String> = links.iter().map(|(s, t)| format!("{s}-{t}")).collect();
        pairs.join(" ")
    }
}

/// The place of the largest weight above 0, the first of equals.
fn argmax(row: &[f32]) -> Option<usize> {
    let mut best = (0.0, None);
    for (place, weight) in row.iter().enumerate() {
        if *weight > best.0 {
            best = (*weight, Some(place));
        }
    }
    best.1
}

/// What was written, with each unknown token replaced by what it looked at most in the source.
/// `alignment` is that of `output` with `source`.
pub fn replace_unknowns<T: Clone + PartialEq>(
    output: &[T],
    unknown: &T,
    source: &[T],
    alignment: &Alignment,
) -> Vec<T> {
    assert!(
        alignment.weights.len() == output.len(),
        "replace_unknowns: got the alignment of {} tokens, needs that of {}",
        alignment.weights.len(),
        output.len()
    );
    let replace = |(token, row): (&T, &Vec<f32>)| {
        let place = if token == unknown { argmax(row) } else { None };
        // The end of the source is often no word of it: then the unknown token stays.
        place.and_then(|place| source.get(place)).unwrap_or(token).clone()
    };
    output.iter().zip(&alignment.weights).map(replace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alignment() -> Alignment {
        Alignment::new(
            &[
                vec![0.1, 0.2, 0.6, 0.1],
                vec![0.5, 0.5, 0.0, 0.0],
                vec![0.0, 0.1, 0.2, 0.7],
                vec![f32::NAN, 0.0, 0.0, 0.0],
                vec![0.0, 0.0, 0.0, 1.0],
            ],
            4,
        )
    }

    #[test]
    fn links_are_the_heaviest_and_sorted_by_source() {
        assert_eq!(alignment().hard(), [Some(2), Some(0), Some(3), None]);
        assert_eq!(alignment().links(), [(0, 1), (2, 0), (3, 2)]);
        assert_eq!(alignment().pharaoh(), "0-1 2-0 3-2");
        assert_eq!(Alignment::default().pharaoh(), "");
    }

    #[test]
    fn words_get_the_sum_of_sources_and_the_mean_of_targets() {
        let mut tokens = alignment();
        tokens.weights.truncate(3);
        let words = tokens.words(&[Some(0), Some(0), Some(1), None], &[Some(0), Some(0), Some(1)]);
        let want = [[0.65, 0.3], [0.1, 0.2]];
        for (row, want) in words.weights.iter().zip(want) {
            for (got, want) in row.iter().zip(want) {
                assert!((got - want).abs() < 1e-6, "{got} for {want}");
            }
        }
        assert_eq!(words.pharaoh(), "0-0 1-1");
        // A special token among what was written belongs to no word.
        let words = tokens.words(&[Some(0), Some(1), Some(2), Some(3)], &[None, Some(0), None]);
        assert_eq!(words.weights, [[0.5, 0.5, 0.0, 0.0]]);
    }

    #[test]
    fn unknowns_become_what_they_look_at() {
        let source = ["Herr", "Maier", "kommt"];
        let output = ["<unk>", "<unk>", "<unk>", "<unk>"];
        let got = replace_unknowns(&output, &"<unk>", &source, &alignment());
        assert_eq!(got, ["kommt", "Herr", "<unk>", "<unk>"]);
        let got = replace_unknowns(&["Mr", "<unk>", "comes", "."], &"<unk>", &source, &alignment());
        assert_eq!(got, ["Mr", "Herr", "comes", "."]);
    }
}
