//! Decoding: greedy search, beam search and sampling.
//!
//! A model implements [`Stepper`]: it takes one token for each row and returns the logits of the
//! next. [`decode`] runs it for a batch of sentences, as greedy search, beam search or sampling,
//! set by [`Options`]. The results are those of Hugging Face `generate` with the options of the
//! same names, and a sentence gets exactly the same result in a batch as alone.
//!
//! [`align`] converts the attention of a hypothesis to alignments.

pub mod align;
mod beam;
mod constrain;
pub mod ctc;
pub(crate) mod generation;
mod options;
mod row;
mod sample;
mod search;
mod search_parameters;
#[cfg(test)]
mod tests;
mod tree;

pub use align::{TokenAlignment, replace_unknowns};
pub use generation::FILE as GENERATION_FILE;
pub use options::{EarlyStopping, Options};
pub use search::decode;
pub use search_parameters::SearchParameters;

/// A model that decodes a batch of rows step by step.
pub trait Stepper {
    /// Returns the vocabulary size, `V`.
    fn vocabulary(&self) -> usize;
    /// Feeds one token to each row and overwrites `logits` with those of the next token, not
    /// normalised, `[rows, V]`; `tokens.len()` is the number of rows. Returns the attention to the
    /// source, if the model has it and it was requested.
    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<StepAttention>;
    /// Makes row `i` continue from the state of row `parents[i]`; the number of rows may change.
    fn reorder(&mut self, parents: &[usize]);
}

/// Attention of the rows to their sources in one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepAttention {
    /// `[rows, S]`, each row sums to one.
    pub weights: Vec<f32>,
    /// `S`, the number of tokens of the longest source of the batch.
    pub keys: usize,
}

/// Special tokens of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Start token, fed first if a sentence has no prompt.
    pub bos: u32,
    /// End token; `None` if sentences end only at the maximum length.
    pub eos: Option<u32>,
    /// Padding token. It is never generated, unless it is also the end token.
    pub pad: Option<u32>,
}

/// A sentence to decode: one row of the batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodeInput {
    /// Index of this sentence among all that are decoded. With the seed it determines the samples,
    /// so the result does not depend on how sentences are batched.
    pub index: u64,
    /// Length of the source in tokens, 0 without one. Attention beyond it is padding and is cut
    /// off.
    pub source: usize,
    /// Prompt. The model has already processed all of it but the last token, which is fed first. If
    /// empty, the model has processed nothing, and `bos` is fed.
    pub prompt: Vec<u32>,
    /// Tokens that the result has to begin with (CTranslate2's `target_prefix`). They are fed one
    /// at a time, are part of the result, and do not count in its score.
    pub target_prefix: Vec<u32>,
}

/// A decoded sentence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hypothesis {
    /// The forced prefix and the generated tokens, without start and end tokens.
    pub tokens: Vec<u32>,
    /// Score that hypotheses are ordered by: the sum of the log-probabilities after the penalties,
    /// divided by the number of generated tokens (with the end token) to the power of the length
    /// penalty, plus the coverage penalty.
    pub score: f32,
    /// Sum of `token_log_probs`.
    pub log_prob: f32,
    /// Log-probability (natural) of each token and of the end token, if it was reached, before any
    /// penalty; 0 for a forced token.
    pub token_log_probs: Vec<f32>,
    /// Attention weights over the source for each token and for the end token, if it was reached.
    /// Empty if the model does not return attention.
    pub attention: Vec<Vec<f32>>,
    /// Whether the end token was generated, rather than the maximum length reached.
    pub finished: bool,
}
