//! Speech recognition: a label for a recording, or its transcript.
//!
//! | file | contents |
//! |---|---|
//! | `recipe` | the recipe |
//! | `corpus` | recordings in memory, and their concatenation |
//! | `names` | labels or characters and their indices |
//! | `learn` | the training objective |
//! | `recognizer` | inference, on whole recordings or streaming |
//! | `measure` | error rates |

mod corpus;
mod evaluate;
mod learn;
mod names;
mod pipeline;
mod recipe;
mod recognizer;

pub use corpus::{Clip, Corpus};
pub use learn::SpeechObjective;
pub use names::Names;
pub use pipeline::{Parameters, Partial, Response};
pub use recipe::{Data, Recipe};
pub use recognizer::{Recognizer, SpeechCandidate, Streaming};
