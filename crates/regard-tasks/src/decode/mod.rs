//! Search: from scores for the next word to sentences.
//!
//! A model is seen through [`Stepper`]: it takes one token for each row and says what may come
//! next. [`decode`] drives it, for a batch of sentences, as greedy search, beam search or
//! sampling; [`Options`] says which. The results are those of Hugging Face `generate` with the
//! options of the same names, and a sentence gets exactly the same result in a batch as alone.
//!
//! [`align`] turns the attention of what was found into alignments.

pub mod align;
mod beam;
mod constrain;
pub mod ctc;
pub(crate) mod generation;
mod options;
mod row;
mod sample;
mod search;
#[cfg(test)]
mod tests;
mod tree;

pub use align::{Alignment, replace_unknowns};
pub use generation::FILE as GENERATION_FILE;
pub use options::{EarlyStopping, Options};
pub use search::decode;

/// A model in the middle of decoding some rows.
pub trait Stepper {
    /// Entries of the vocabulary.
    fn vocabulary(&self) -> usize;
    /// Feeds one token to each row. What comes next is written to `logits`, `[rows, V]` and not
    /// normalised, in place of what is there; `tokens.len()` is the number of rows. Gives where
    /// each row looked in its source, if the model can tell and was asked to.
    fn step(&mut self, tokens: &[u32], logits: &mut Vec<f32>) -> Option<Attention>;
    /// Row `i` goes on as what row `parents[i]` was; rows may be fewer or more than before.
    fn reorder(&mut self, parents: &[usize]);
}

/// Where the rows of a step looked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attention {
    /// `[rows, S]`, each row sums to one.
    pub weights: Vec<f32>,
    /// `S`, the tokens of the longest source of the batch.
    pub keys: usize,
}

/// The tokens that have a meaning for the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// What a decoder is fed first, if a sentence has no prompt.
    pub bos: u32,
    /// What ends a sentence; without one, only the length does.
    pub eos: Option<u32>,
    /// What fills batches. It is never generated, unless it is also what ends a sentence.
    pub pad: Option<u32>,
}

/// What to decode: one row of the batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence {
    /// The number of this sentence among all that will ever be decoded. Together with the seed it
    /// decides what is sampled, so that batches may be cut in any way.
    pub index: u64,
    /// Tokens of the source, 0 without one. Attention behind them is padding, and is cut off.
    pub source: usize,
    /// What the text begins with. The model has already read all of it but the last token, which
    /// is the first to be fed. Empty: the model has read nothing, and `bos` is fed.
    pub prompt: Vec<u32>,
    /// Tokens that the result has to begin with (CTranslate2's `target_prefix`). They are fed one
    /// at a time, are part of the result, and do not count in its score.
    pub target_prefix: Vec<u32>,
}

/// A sentence that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hypothesis {
    /// The forced prefix and what was generated, without what starts and what ends a sentence.
    pub tokens: Vec<u32>,
    /// By which hypotheses are ordered: the sum of the log-probabilities after the penalties,
    /// divided by the number of generated tokens (with the end) to the power of the length
    /// penalty, plus the coverage penalty.
    pub score: f32,
    /// The sum of `token_log_probs`.
    pub log_prob: f32,
    /// What the model gave to each token and to the end, if it was reached: natural logarithms,
    /// before any penalty; 0 for a forced token.
    pub token_log_probs: Vec<f32>,
    /// Where the model looked when it wrote each token and the end, if it was reached. Empty if
    /// the model does not tell.
    pub attention: Vec<Vec<f32>>,
    /// Whether the end was reached, rather than the largest length.
    pub finished: bool,
}
