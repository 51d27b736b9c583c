//! Small experiments of `docs/course.md`, which need no recipe.

pub mod compare;
pub mod lessons;
pub mod regression;
pub mod word_space;
