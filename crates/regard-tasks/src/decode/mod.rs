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
mod stop;
#[cfg(test)]
mod tests;
mod tree;

pub use align::{TokenAlignment, replace_unknowns};
pub use generation::{FILE as GENERATION_FILE, GenerationConfig};
pub use options::{EarlyStopping, Options};
pub use search::decode;
pub use search_parameters::SearchParameters;
pub use stop::{StopPiece, StopSearch};

use crate::constraint::Allowed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// Whether the text of a row of the last step ends with `token`, for a reason that the tokens
    /// alone do not tell, such as a stop string. Greedy search and sampling ask once for each token
    /// that they choose and that is no end token; a beam search asks for each candidate.
    fn ends(&mut self, _row: usize, _token: u32) -> Option<FinishReason> {
        None
    }
    /// Returns what may follow the text of a row of the last step; `None` if every token may. End
    /// tokens and stop tokens follow where the text may end.
    fn allowed(&mut self, _row: usize) -> Option<Arc<Allowed>> {
        None
    }
    /// Returns the number of most likely tokens to record at each step.
    fn recorded(&self) -> usize {
        0
    }
}

/// Why a text ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The maximum length was reached.
    #[default]
    Length,
    /// The model generated an end token.
    Eos,
    /// A stop string or a stop token was generated.
    Stop,
    /// The caller ended it.
    Cancelled,
    /// No token was possible: all were forbidden.
    NoToken,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Start token, fed first if a sentence has no prompt.
    pub bos: u32,
    /// End tokens; empty if sentences end only at the maximum length.
    pub eos: Vec<u32>,
    /// Padding token. It is never generated, unless it is also an end token.
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
    /// For each token the most likely tokens of its step with their log-probabilities, the best
    /// first; empty unless [`Stepper::recorded`].
    pub likely: Vec<Vec<(u32, f32)>>,
    /// Whether an end token or a stop ended it, rather than the maximum length.
    pub finished: bool,
    /// Why it ended.
    pub finish_reason: FinishReason,
}
