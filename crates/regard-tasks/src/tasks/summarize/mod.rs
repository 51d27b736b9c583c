//! Summaries: a few words about a text, some of them copied from it.
//!
//! | file | what it knows |
//! |---|---|
//! | `recipe` | what is asked for in a recipe; which texts |
//! | `words` | from texts to numbers of words, those that the vocabulary has not too |
//! | `learn` | the learner |
//! | `summarizer` | a model with its words: text in, summary out |

mod learn;
mod pipeline;
mod recipe;
mod summarizer;
mod words;

pub use learn::Lesson;
pub use pipeline::{Parameters, Response};
pub use recipe::{Corpus, Data, Recipe};
pub use summarizer::{Said, Summarizer, Summary};
pub use words::{Text, Words};
