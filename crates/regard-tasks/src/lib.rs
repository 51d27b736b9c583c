//! What people do with attention models: text, data, training, decoding, metrics, and the tasks
//! made of them.
#![forbid(unsafe_code)]

mod about;
pub mod audio;
mod begin;
pub mod compare;
pub mod data;
pub mod decode;
pub mod examine;
pub mod filling;
pub mod graphs;
pub mod images;
pub mod inspect;
pub mod keys;
pub mod language;
pub mod lessons;
pub mod metrics;
pub mod own;
pub mod permute;
pub mod points;
pub mod pretrain;
pub mod reading;
pub mod recipe;
pub mod regression;
pub mod say;
pub mod speech;
pub mod speed;
pub mod stories;
pub mod summarize;
mod taught;
pub mod text;
pub mod train;
pub mod translate;
pub mod word_space;

pub use regard_models::{Error, Result};
