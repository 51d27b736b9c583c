//! Causal language models: training, text generation and scoring.

mod evaluate;
pub mod filling;
mod learn;
mod pipeline;
mod recipe;
mod rows;
mod writer;

pub use learn::Language;
pub use pipeline::{Parameters, Response};
pub(crate) use recipe::WIKITEXT_RAW;
pub use recipe::{Data, GeneratorVocabulary, Recipe};
pub use writer::{Generated, Generator, Scored};
