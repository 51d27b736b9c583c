//! Experiments of the lecture notes, without recipes.

pub mod compare;
pub mod lessons;
pub mod regression;
pub mod word_space;
