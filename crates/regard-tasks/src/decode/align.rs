//! Alignments of generated tokens to source tokens, taken from the attention weights.

use serde::{Deserialize, Serialize};

/// A soft alignment: for each generated token (or word), its attention weights over the source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenAlignment {
    /// `[T, S]`: rows are generated tokens, columns source tokens.
    pub weights: Vec<Vec<f32>>,
}

impl TokenAlignment {
    /// Takes the first `targets` rows of a hypothesis's attention: pass `hypothesis.tokens.len()`
    /// to leave out the row of the end token.
    pub fn new(attention: &[Vec<f32>], targets: usize) -> TokenAlignment {
        TokenAlignment { weights: attention.iter().take(targets).cloned().collect() }
    }

    /// Converts from tokens to words: weights are summed over the tokens of a source word and
    /// averaged over the tokens of a generated word.
    ///
    /// `source` and `target` give the word index of each token; `None` for a token outside any word
    /// (the end of a sentence), which is left out. A row may therefore sum to less than one.
    pub fn words(&self, source: &[Option<usize>], target: &[Option<usize>]) -> TokenAlignment {
        assert!(
            target.len() == self.weights.len(),
            "TokenAlignment::words: got word indices of {} generated tokens, needs those of {}",
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
                "TokenAlignment::words: got word indices of {} source tokens, needs those of {}",
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
        TokenAlignment { weights }
    }

    /// Returns the hard alignment: for each generated token the source index with the largest
    /// weight, the first of ties. `None` if all weights are 0.
    pub fn hard(&self) -> Vec<Option<usize>> {
        self.weights.iter().map(|row| argmax(row)).collect()
    }

    /// Returns the hard alignment as pairs (source, target), sorted.
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

    /// Returns the hard alignment in Pharaoh format, `source-target` pairs from 0: `0-0 1-2`.
    pub fn pharaoh(&self) -> String {
        let links = self.links();
        let pairs: Vec<String> = links.iter().map(|(s, t)| format!("{s}-{t}")).collect();
        pairs.join(" ")
    }
}

/// Returns the index of the largest weight above 0, the first of ties.
fn argmax(row: &[f32]) -> Option<usize> {
    let mut best = (0.0, None);
    for (place, weight) in row.iter().enumerate() {
        if *weight > best.0 {
            best = (*weight, Some(place));
        }
    }
    best.1
}

/// Replaces each unknown token of the output by the source token it attends to most. `alignment` is
/// that of `output` with `source`.
pub fn replace_unknowns<T: Clone + PartialEq>(
    output: &[T],
    unknown: &T,
    source: &[T],
    alignment: &TokenAlignment,
) -> Vec<T> {
    assert!(
        alignment.weights.len() == output.len(),
        "replace_unknowns: got the alignment of {} tokens, needs that of {}",
        alignment.weights.len(),
        output.len()
    );
    let replace = |(token, row): (&T, &Vec<f32>)| {
        let place = if token == unknown { argmax(row) } else { None };
        // Attention to the source's end token points past its words: then the unknown token stays.
        place.and_then(|place| source.get(place)).unwrap_or(token).clone()
    };
    output.iter().zip(&alignment.weights).map(replace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alignment() -> TokenAlignment {
        TokenAlignment::new(
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
        assert_eq!(TokenAlignment::default().pharaoh(), "");
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
        // A special token in the output belongs to no word.
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
