//! Question answering on stories: the bAbI tasks, all learned by one model.
//!
//! | file | contents |
//! |---|---|
//! | `recipe` | the recipe |
//! | `corpus` | training, validation and test stories |
//! | `words` | vocabulary and answers |
//! | `book` | encoded stories with their answers |
//! | `learn` | the training objective |
//! | `listener` | inference |
//! | `look` | sentences that were attended to |
//! | `measure` | error rate per task |

mod book;
mod corpus;
mod learn;
mod listener;
mod look;
mod measure;
mod pipeline;
mod recipe;
mod words;

pub use corpus::{Corpus, Tales};
pub use learn::Lesson;
pub use listener::{Heard, Listener, Reply, Support};
pub use look::{Agreement, agreement};
pub use measure::{Marks, Report, measure};
pub use pipeline::{Parameters, Response};
pub use recipe::{Data, Recipe};
pub use words::Words;
