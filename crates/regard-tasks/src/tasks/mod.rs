//! One folder for each task.

pub mod answer;
pub mod answer_story;
pub mod classify;
pub mod classify_graph;
pub mod classify_image;
pub mod embed;
pub mod fill;
pub mod generate;
pub mod permute;
pub mod point;
pub mod recognize;
pub mod summarize;
pub mod tag;
pub mod translate;
