//! Labels for the nodes of a graph, or for whole graphs, by attention along edges.
//!
//! | file | what it knows |
//! |---|---|
//! | `recipe` | what is asked for in a recipe |
//! | `planetoid`, `pickled` | citations between papers, and the files that they were published as |
//! | `wiring` | from a graph as it was read to one that is attended along |
//! | `molecules` | generated graphs whose label is one of the whole |
//! | `book` | what is learned from, what decides, what is reported |
//! | `learn` | the learner |
//! | `scene` | the part of a graph that a prediction depends on |
//! | `reader` | a trained model that labels, and tells what it looked at |

mod book;
mod learn;
pub mod molecules;
mod pickled;
mod pipeline;
mod planetoid;
mod reader;
mod recipe;
mod scene;
mod wiring;

pub use book::{Book, Whole};
pub use learn::Lesson;
pub use pipeline::{Inputs, Parameters, Prediction, Response};
pub use planetoid::{named, planetoid};
pub use reader::{Labeller, Look};
pub use recipe::{BestBy, Data, Given, Recipe};
pub use scene::Scene;
pub use wiring::{Wiring, wire};
