//! Causal language models: training, text generation and scoring.

mod engines;
mod evaluate;
pub mod filling;
mod learn;
mod logprobs;
mod pipeline;
mod pretrained;
mod recipe;
mod rows;
mod score;
mod tokens_by_name;
mod writer;
mod writing;

pub use learn::Language;
pub use pipeline::{Parameters, Response, TOGETHER, TokenLogprob, TopLogprob};
pub(crate) use recipe::WIKITEXT_RAW;
pub use recipe::{Data, GeneratorVocabulary, Recipe};
pub use score::{LongText, Scored};
pub use tokens_by_name::TokenName;
pub use writer::{Generator, Prompt, PromptOptions};
pub use writing::{Generated, Generation, Watch, Written};
