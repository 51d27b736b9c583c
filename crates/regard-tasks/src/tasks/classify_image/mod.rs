//! Images and what they show.
//!
//! | file | what it knows |
//! |---|---|
//! | `recipe` | what is asked for in a recipe |
//! | `corpus` | which images are learned from, which decide, which are reported |
//! | `processor` | from an image to the numbers that a model reads: `preprocessor_config.json` |
//! | `resize` | images of another size |
//! | `augment` | another look at an image, in training |
//! | `learn` | the learner |
//! | `viewer` | a model that says what is on an image |
//! | `maps` | where it looked |
//! | `measure` | how often it is right |
//! | `speed` | how long it takes |

mod augment;
mod corpus;
mod learn;
mod maps;
mod measure;
mod pipeline;
mod processor;
mod recipe;
mod resize;
mod speed;
mod viewer;

pub use augment::Augment;
pub use corpus::{Corpus, Images, Pile};
pub use learn::Lesson;
pub use maps::{Looks, overlay, rollout};
pub use measure::{Marks, measure};
pub use pipeline::{AttentionMap, Parameters, Response};
pub use processor::{FILE, Processor};
pub use recipe::{Data, Recipe};
pub use resize::resize;
pub use speed::Speed;
pub use viewer::{Ready, Viewer};
