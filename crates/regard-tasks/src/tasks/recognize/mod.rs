//! Sounds and what is said in them: a label for a recording, or its letters.
//!
//! | file | what it knows |
//! |---|---|
//! | `recipe` | what is asked for in a recipe |
//! | `corpus` | recordings in memory, and how they are joined |
//! | `names` | from labels and letters to numbers and back |
//! | `learn` | the learner |
//! | `recognizer` | a model that is given a sound, whole or as it comes |
//! | `measure` | how often it is wrong |

mod corpus;
mod learn;
mod measure;
mod names;
mod pipeline;
mod recipe;
mod recognizer;

pub use corpus::{Clip, Corpus};
pub use learn::Lesson;
pub use names::Names;
pub use pipeline::{Parameters, Partial, Response};
pub use recipe::{Data, Recipe};
pub use recognizer::{Guess, Recognizer, Streaming};
