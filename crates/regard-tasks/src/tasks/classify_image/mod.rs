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
//! | `evaluate` | evaluation |
//! | `speed` | timing |

mod augment;
mod corpus;
mod evaluate;
mod learn;
mod maps;
mod pipeline;
mod processor;
mod recipe;
mod resize;
mod speed;
mod viewer;

pub use augment::{ImageAugment, TrainingImage};
pub use corpus::{Corpus, Images, LabelledImages};
pub use evaluate::{ImageMetrics, measure};
pub use learn::ImageObjective;
pub use maps::{AttentionMaps, overlay, rollout};
pub use pipeline::{AttentionMap, Parameters, Response};
pub use processor::{FILE, Processor};
pub use recipe::{Data, Recipe};
pub use resize::resize;
pub use speed::ImageBenchmark;
pub use viewer::{ImageClassifier, Ready};
