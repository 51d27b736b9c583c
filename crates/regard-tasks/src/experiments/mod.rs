//! Experiments of the lecture notes, which have no recipe.

pub mod compare;
pub mod lessons;
pub mod regression;
pub mod word_space;
