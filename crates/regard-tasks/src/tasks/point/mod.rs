//! Points that are to be pointed at, one after another: hulls, orders, tours.
//!
//! | file | what it knows |
//! |---|---|
//! | `problem` | what a problem is; the list of them |
//! | `hull`, `sort`, `tsp` | one problem each: its true answers, their form, how answers are marked |
//! | `instances` | sets of points, drawn from a seed or read from a file |
//! | `file` | the format of such files, and points that a person typed |
//! | `recipe` | what is asked for in a recipe |
//! | `learn` | the learner |
//! | `pointer` | a model that is asked |

mod file;
mod hull;
mod instances;
mod learn;
mod pipeline;
mod pointer;
mod problem;
mod recipe;
mod sort;
mod tsp;

pub use file::{parse, read};
pub use instances::{Instance, Instances};
pub use learn::Lesson;
pub use pipeline::{Inputs, Parameters, Response};
pub use pointer::{Pointed, Pointer};
pub use problem::{Asked, PROBLEMS, Problem, problem};
pub use recipe::{Data, Recipe};
