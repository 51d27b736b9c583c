//! Pretraining as BERT's (Devlin et al. 2019): words that are hidden are guessed, and whether the
//! second half of a text belongs to the first is told.

mod candidates;
mod exam;
mod hide;
mod learn;
mod overlap;
mod pairs;
mod pipeline;
mod recipe;

pub use candidates::Candidate;
pub use exam::Asked;
pub use hide::{Hidden, Hiding};
pub use learn::Pretraining;
pub use pairs::{Half, Pair, pairs};
pub use pipeline::{Candidates, Filler, Parameters, Response};
pub use recipe::{Data, Recipe};
