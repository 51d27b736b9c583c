//! Tasks of attention models: translate, generate, classify, tag, answer and more, each with a
//! typed request and response, an evaluation and a recipe to train it.
//!
//! | module | contents |
//! |---|---|
//! | [`tasks`](crate::translate) | a folder for each task, re-exported here by its name |
//! | [`reader`] | text encoders with their tokenizers, shared by the tasks that encode a text |
//! | [`pipeline`] | the list of tasks; typed requests and responses, and their JSON schemas |
//! | [`recipe`] | recipes: one TOML file that reproduces a result |
//! | [`import`] | the user's own data: read, checked, split; the choice of a recipe for them |
//! | [`train`] | the training loop, its log, its checkpoints |
//! | [`text`], [`data`], [`audio`] | tokenizers, data sets and their formats, audio |
//! | [`decode`], [`metrics`], [`logits`] | beam search and sampling; BLEU, ROUGE, F1, error rates |
//! | [`constraint`] | texts that match a regular expression or a JSON schema |
//! | [`compare`], [`lessons`], [`regression`], [`word_space`] | small experiments of `docs/course.md` |
//! | [`quantize`] | weights of 8 or 4 bits, and what they cost |
//! | [`inspect`], [`speed`] | describe a checkpoint, measure a model |
#![forbid(unsafe_code)]

pub mod attachment;
pub mod audio;
pub mod batching;
pub mod constraint;
pub mod data;
pub mod decode;
mod experiments;
pub mod import;
pub mod inspect;
pub mod logits;
pub mod metrics;
pub mod pipeline;
pub mod quantize;
pub mod reader;
pub mod recipe;
pub mod say;
pub mod speed;
mod tasks;
pub mod text;
pub mod train;
mod workers;

pub use experiments::{compare, lessons, regression, word_space};
pub(crate) use recipe::about;
pub use recipe::{evaluation, keys, own};
pub use regard_models::{Error, Result};
pub use tasks::{
    answer, answer_story, chat, classify, classify_graph, classify_image, embed, fill, generate,
    permute, point, recognize, rerank, score, search, summarize, tag, translate,
};

/// Compiles the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/language-models.md")]
struct LanguageModels;
