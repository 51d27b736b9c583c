//! Abstractive summarisation with a pointer-generator, which can copy words of the text.
//!
//! | file | contents |
//! |---|---|
//! | `recipe` | the recipe and its data |
//! | `words` | vocabulary, extended by out-of-vocabulary words of each text |
//! | `learn` | the training objective |
//! | `summarizer` | inference: text in, summary out |

mod learn;
mod pipeline;
mod recipe;
mod summarizer;
mod words;

pub use learn::SummarizeObjective;
pub use pipeline::{Parameters, Response};
pub use recipe::{Corpus, Data, Recipe};
pub use summarizer::{Summarizer, Summary, SummaryWord};
pub use words::{SummaryVocabulary, Text};
