//! Batches of texts: rows of token ids without padding.

use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::layers::Sequences;
use regard_attention::mask::{Mask, causal, full, segments};
use regard_attention::ops::TokenPositions;

/// Rows of token ids. Rows of one length are a batch `[B, T]`; rows of different lengths are
/// concatenated to one row `[1, N]` of segments that do not attend to each other, so that no work
/// is done for padding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    ids: Vec<u32>,
    types: Vec<u32>,
    lengths: Vec<usize>,
    /// Characters of all tokens that have any, and their number for each.
    letters: Vec<u32>,
    spelled: Vec<usize>,
}

impl Texts {
    /// Creates an empty batch.
    pub fn new() -> Texts {
        Texts::default()
    }

    /// Adds a text with token type 0.
    pub fn push(&mut self, ids: &[u32]) {
        self.push_typed(ids, &vec![0; ids.len()]);
    }

    /// Adds a text or a pair with token types: 0 for the first text, 1 for the second.
    ///
    /// # Panics
    /// If the text is empty, or has not one type for each token.
    pub fn push_typed(&mut self, ids: &[u32], types: &[u32]) {
        assert!(!ids.is_empty(), "a text must have at least one token");
        assert_eq!(ids.len(), types.len(), "a text needs a type for each of its tokens");
        self.ids.extend_from_slice(ids);
        self.types.extend_from_slice(types);
        self.lengths.push(ids.len());
    }

    /// Adds a text of words, with the characters of each.
    ///
    /// # Panics
    /// If the text is empty, if a word has no characters, or if there is not one row of characters
    /// for each word.
    pub fn push_spelled(&mut self, ids: &[u32], letters: &[Vec<u32>]) {
        assert_eq!(ids.len(), letters.len(), "a text needs the characters of each of its words");
        assert!(letters.iter().all(|word| !word.is_empty()), "a word of no characters");
        self.push(ids);
        self.spelled.extend(letters.iter().map(Vec::len));
        letters.iter().for_each(|word| self.letters.extend(word));
    }

    /// Iterates over the characters of each token that has any.
    pub fn letters(&self) -> impl Iterator<Item = &[u32]> {
        let mut rest = &self.letters[..];
        self.spelled.iter().map(move |n| {
            let (word, after) = rest.split_at(*n);
            rest = after;
            word
        })
    }

    /// Number of tokens of all texts.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// Token ids of all texts, concatenated.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Token types of all texts, concatenated.
    pub fn types(&self) -> &[u32] {
        &self.types
    }

    /// Number of tokens of each text.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Number of tokens of the longest text.
    pub fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// Index of the first token of each text.
    pub fn firsts(&self) -> Vec<usize> {
        let sum = |next: &mut usize, length: &usize| {
            *next += length;
            Some(*next - length)
        };
        self.lengths.iter().scan(0, sum).collect()
    }

    /// Index of the last token of each text.
    pub fn lasts(&self) -> Vec<usize> {
        self.firsts().iter().zip(&self.lengths).map(|(first, n)| first + n - 1).collect()
    }

    /// `[B, T]` if all texts have one length, else `[1, N]`.
    pub(crate) fn shape(&self) -> [usize; 2] {
        match self.lengths.first() {
            Some(t) if self.lengths.iter().all(|n| n == t) => [self.lengths.len(), *t],
            _ => [1, self.tokens()],
        }
    }

    /// Lengths of the texts as concatenated sequences.
    pub(crate) fn sequences(&self) -> Sequences {
        Sequences::new(&self.lengths)
    }

    /// Mask of the tokens that a token attends to.
    pub(crate) fn mask(&self, left_to_right: bool) -> Mask {
        let order = if left_to_right { causal() } else { full() };
        if self.shape()[0] == self.lengths.len() {
            return order;
        }
        let rows = self.lengths.iter().enumerate();
        let of: Vec<i64> = rows.flat_map(|(row, n)| std::iter::repeat_n(row as i64, *n)).collect();
        if left_to_right { order & segments(&of) } else { segments(&of) }
    }

    /// Token ids, in [`Texts::shape`].
    pub(crate) fn words(&self, device: &Device) -> Tensor<2, Int> {
        self.numbers(self.ids.iter().map(|id| i64::from(*id)), device)
    }

    /// Token types, in [`Texts::shape`].
    pub(crate) fn parts(&self, device: &Device) -> Tensor<2, Int> {
        self.numbers(self.types.iter().map(|part| i64::from(*part)), device)
    }

    /// Whether there is any token type but 0.
    pub(crate) fn has_parts(&self) -> bool {
        self.types.iter().any(|part| *part != 0)
    }

    /// Position of each token in its text, starting at `first`, in [`Texts::shape`].
    pub(crate) fn places(&self, first: usize, device: &Device) -> Tensor<2, Int> {
        self.numbers(self.lengths.iter().flat_map(|n| (first..first + n).map(|i| i as i64)), device)
    }

    /// Position of each token in its text, for rotary positions.
    pub fn rotary_places(&self) -> TokenPositions {
        match self.shape()[0] == self.lengths.len() {
            true => TokenPositions::From(vec![0]),
            false => TokenPositions::Each(self.lengths.iter().flat_map(|n| 0..*n).collect()),
        }
    }

    fn numbers(&self, of: impl Iterator<Item = i64>, device: &Device) -> Tensor<2, Int> {
        Tensor::from_data(TensorData::new(of.collect::<Vec<i64>>(), self.shape()), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_length_are_a_batch_and_others_are_one_row() {
        let mut texts = Texts::new();
        texts.push(&[5, 6, 7]);
        texts.push_typed(&[8, 9, 4], &[0, 0, 1]);
        assert_eq!(
            (texts.shape(), texts.firsts(), texts.lasts()),
            ([2, 3], vec![0, 3], vec![2, 5])
        );
        texts.push(&[3]);
        assert_eq!((texts.shape(), texts.longest(), texts.tokens()), ([1, 7], 3, 7));
        let places: Vec<i64> =
            texts.places(2, &Device::flex()).into_data().convert::<i64>().try_into_vec().unwrap();
        assert_eq!(places, [2, 3, 4, 2, 3, 4, 2]);
    }
}
