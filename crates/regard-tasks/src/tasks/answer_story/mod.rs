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
//! | `absent` | notes on questions and answers that are not about the story |
//! | `measure` | error rate per task |

mod absent;
mod book;
mod corpus;
mod evaluate;
mod learn;
mod listener;
mod look;
mod pipeline;
mod recipe;
mod words;

pub use corpus::{Corpus, Tales};
pub use evaluate::{StoryMetrics, StoryReport, measure};
pub use learn::StoryObjective;
pub use listener::{Reply, StoryAnswer, StoryAnswerer, Support};
pub use look::{SupportAgreement, agreement};
pub use pipeline::{Parameters, Response};
pub use recipe::{Data, Recipe};
pub use words::StoryVocabulary;
