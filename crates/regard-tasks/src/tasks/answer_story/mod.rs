//! Stories and questions about them: the bAbI tasks, all of them learned by one model.
//!
//! | file | what it knows |
//! |---|---|
//! | `recipe` | what is asked for in a recipe |
//! | `corpus` | which stories are learned from, which decide, which are reported |
//! | `words` | from sentences and answers to numbers and back |
//! | `book` | stories as numbers, and what is right |
//! | `learn` | the learner |
//! | `listener` | a model that is told a story and asked |
//! | `look` | which sentences it looked at |
//! | `measure` | how often it is wrong, task by task |

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
