//! Pretraining as XLNet's (Yang et al. 2019, arXiv:1906.08237): words are told in an order that is
//! drawn anew for every sequence, each from those before it, wherever they stand.
//!
//! Only the last words of an order are told, about one in `targets.one_in` (section 2.3 of the
//! paper); they are spans, and the rest is what they are told from. As in the authors' program,
//! words that are not told see each other. A sequence is a piece of a document, or two parts
//! `A SEP B SEP CLS` (section 2.4), and may have a memory: the tokens before it in its document.
//!
//! The paper carries the memory over from the step before. Here it is read again, by the weights
//! of the step and without a gradient, so that examples may come in any order and a run that is
//! resumed is the run that was not; what it costs is a forward of the first stream. There is no
//! loss for whether parts belong together, as in the paper. Its half of a batch whose memory is
//! the text that follows is not done.

mod choose;
mod cost;
mod exam;
mod learn;
mod recipe;
mod sequences;

pub use choose::Targets;
pub use cost::Told;
pub use learn::Permutation;
pub use recipe::{Corpus, Data, Recipe};
pub use sequences::{Parts, Sequence};
