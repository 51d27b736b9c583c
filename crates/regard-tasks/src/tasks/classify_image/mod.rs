//! Image classification.
//!
//! | file | contents |
//! |---|---|
//! | `recipe` | the recipe |
//! | `corpus` | training, validation and test images |
//! | `processor` | from an image to model input: `preprocessor_config.json` |
//! | `resize` | bilinear resizing |
//! | `augment` | data augmentation |
//! | `learn` | the training objective |
//! | `viewer` | inference |
//! | `maps` | attention maps |
//! | `measure` | evaluation |
//! | `speed` | timing |

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
