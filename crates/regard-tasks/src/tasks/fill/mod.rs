//! Pretraining as in BERT (Devlin et al. 2019): masked-token prediction, and next-sentence
//! prediction of whether the second half of a text follows the first.

mod candidates;
mod evaluate;
mod hide;
mod learn;
mod overlap;
mod pairs;
mod pipeline;
mod recipe;

pub use candidates::TokenCandidate;
pub use evaluate::MaskedPair;
pub use hide::{Masked, Masking};
pub use learn::Pretraining;
pub use pairs::{Half, SegmentPair, pairs};
pub use pipeline::{Candidates, Filler, Parameters, Response};
pub use recipe::{Data, Recipe};
