//! The capability of encoder–decoders: teacher forcing, and decoding step by step.

use crate::network::Network;
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::backend::numbers;

/// Source sequences: rows of token ids, padded to one length.
#[derive(Clone, Debug)]
pub struct Source {
    /// `[B, S]`: token ids.
    pub ids: Tensor<2, Int>,
    /// `[B]`: tokens of each row that are not padding.
    pub lengths: Vec<usize>,
}

impl Source {
    /// Lengths as [`regard_attention::mask::lengths`] takes them.
    pub fn valid(&self) -> Vec<i64> {
        self.lengths.iter().map(|n| *n as i64).collect()
    }
}

/// Result of a forward pass with teacher forcing.
#[derive(Debug)]
pub struct Scores {
    /// `[B, T, V]`: logits of the next token.
    pub logits: Tensor<3>,
    /// `[B, T]`: log-probability of the sampled position, if attention is trained by REINFORCE.
    pub log_prob: Option<Tensor<2>>,
}

/// Prediction of the next token.
#[derive(Debug)]
pub struct Next {
    /// `[R, V]`: logits.
    pub logits: Tensor<2>,
    /// `[R, S]`: attention weights over the source, if requested and if the model attends.
    pub attention: Option<Tensor<2>>,
}

impl Next {
    /// Replaces the contents of `logits` by `[R, V]`, and returns the attention weights.
    pub(crate) fn into_slices(self, logits: &mut Vec<f32>) -> Option<Tensor<2>> {
        numbers(self.logits, logits);
        self.attention
    }
}

/// Decoding state of several rows.
pub trait Decoding {
    /// Feeds one token to each row, and returns the prediction of the next.
    ///
    /// # Shapes
    /// `words: [R, 1]`
    fn step(&mut self, words: Tensor<2, Int>) -> Next;

    /// Feeds one token to each row as [`Decoding::step`] does, but from and to slices: replaces the
    /// contents of `logits` by `[R, V]`, and returns the attention weights. A plan
    /// ([`regard_attention::plan`]) makes no tensors here.
    fn step_slices(&mut self, words: &[u32], logits: &mut Vec<f32>) -> Option<Tensor<2>> {
        self.step(tokens(words, &Device::flex())).into_slices(logits)
    }

    /// Reorders rows for beam search: row `i` continues from the state of row `parents[i]`.
    fn reorder(&mut self, parents: &[usize]);
}

/// Converts the token of each row to a tensor `[R, 1]`.
pub(crate) fn tokens(words: &[u32], device: &Device) -> Tensor<2, Int> {
    let ids: Vec<i64> = words.iter().map(|id| i64::from(*id)).collect();
    Tensor::from_data(TensorData::new(ids, [words.len(), 1]), device)
}

/// An encoder–decoder.
pub trait Seq2Seq: Network {
    /// Computes the logits of every next token with teacher forcing.
    ///
    /// # Shapes
    /// `words: [B, T]`, starting with the start token
    fn forward(&self, source: &Source, words: Tensor<2, Int>, mode: Mode) -> Scores;

    /// Encodes the source and starts decoding, one row for each of its rows. `look` requests
    /// attention weights.
    fn decode<'a>(&'a self, source: &Source, look: bool) -> Box<dyn Decoding + 'a>;

    /// Longest source or target in tokens; `None` if there is no limit.
    fn longest(&self) -> Option<usize> {
        None
    }
}

/// Assignment of rows to sentences, so that encoder states are stored once per sentence and not
/// once per beam.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// Sentence of each row.
    sentence: Vec<usize>,
}

/// Change of the stored encoder states that new rows require.
pub(crate) enum Change {
    /// No change.
    None,
    /// Select these sentences (or one copy per row).
    Keep(Vec<usize>),
}

impl Rows {
    pub fn new(sentences: usize) -> Rows {
        Rows { sentence: (0..sentences).collect() }
    }

    pub fn len(&self) -> usize {
        self.sentence.len()
    }

    /// Rows per sentence: all sentences have the same number, in consecutive rows.
    pub fn beams(&self) -> usize {
        let sentences = self.sentence.last().map_or(1, |last| last + 1);
        self.len() / sentences
    }

    pub fn reorder(&mut self, parents: &[usize]) -> Change {
        let old = self.sentence.last().map_or(0, |last| last + 1);
        let of: Vec<usize> = parents.iter().map(|row| self.sentence[*row]).collect();
        let mut kept: Vec<usize> = of.clone();
        kept.dedup();
        let beams = if kept.is_empty() { 1 } else { of.len() / kept.len() };
        let even = of.len() == kept.len() * beams
            && of.chunks(beams.max(1)).zip(&kept).all(|(rows, s)| rows.iter().all(|x| x == s));
        if !even {
            // Sentences have different numbers of rows: each row gets its own copy.
            self.sentence = (0..of.len()).collect();
            return Change::Keep(of);
        }
        self.sentence = (0..of.len()).map(|row| row / beams).collect();
        let same = kept.len() == old && kept.iter().enumerate().all(|(i, s)| i == *s);
        if same { Change::None } else { Change::Keep(kept) }
    }
}

/// Converts row indices to a tensor.
pub(crate) fn index(rows: &[usize], device: &Device) -> Tensor<1, Int> {
    let numbers: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
    Tensor::from_data(TensorData::new(numbers, [rows.len()]), device)
}
