//! Pretraining as in XLNet (Yang et al. 2019, arXiv:1906.08237): tokens are predicted in a random
//! order drawn anew for every sequence, each from those before it in that order.
//!
//! Only the last tokens of an order are predicted, about one in `targets.one_in` (section 2.3 of
//! the paper); they form spans, and the rest is their context. As in the authors' program, context
//! tokens attend to each other. A sequence is a piece of a document, or two parts `A SEP B SEP CLS`
//! (section 2.4), and may have a memory: the tokens before it in its document.
//!
//! The paper carries the memory over from the previous step. Here it is recomputed with the current
//! weights and without a gradient, so that examples may come in any order and a resumed run equals
//! an uninterrupted one; the cost is one forward pass of the content stream. As in the paper, there
//! is no next-sentence loss. The paper's bidirectional data, half of each batch with the following
//! text as memory, is not implemented.

mod choose;
mod cost;
mod evaluate;
mod learn;
mod recipe;
mod sequences;

pub use choose::Targets;
pub use cost::PermutedExample;
pub use learn::Permutation;
pub use recipe::{Corpus, Data, Recipe};
pub use sequences::{Parts, Sequence};
