//! Pointer networks: sequences of input points, such as hulls, orders and tours.
//!
//! | file | contents |
//! |---|---|
//! | `problem` | the trait of problems and their list |
//! | `hull`, `sort`, `tsp` | one problem each: solver, canonical forms, metrics |
//! | `instances` | sets of points, drawn from a seed or read from a file |
//! | `file` | format of such files, and of typed points |
//! | `recipe` | the recipe |
//! | `learn` | the training objective |
//! | `pointer` | inference |

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
pub use learn::PointObjective;
pub use pipeline::{Inputs, Parameters, Response};
pub use pointer::{PointPrediction, Pointer};
pub use problem::{EvaluatedPoints, PROBLEMS, PointProblem, problem};
pub use recipe::{Data, Recipe};
