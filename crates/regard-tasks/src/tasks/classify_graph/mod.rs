//! Node and graph classification with graph attention.
//!
//! | file | contents |
//! |---|---|
//! | `recipe` | the recipe |
//! | `planetoid`, `pickled` | citation graphs, and the published files they are read from |
//! | `wiring` | conversion of a graph to model input |
//! | `molecules` | generated graphs with one label per graph |
//! | `book` | training, validation and test labels |
//! | `learn` | the training objective |
//! | `scene` | the part of a graph that a prediction depends on |
//! | `reader` | inference, with attention weights |

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

pub use book::{GraphDataset, WholeGraphs};
pub use learn::GraphObjective;
pub use pipeline::{Inputs, Parameters, Prediction, Response};
pub use planetoid::{named, planetoid};
pub use reader::{GraphClassifier, GraphPrediction};
pub use recipe::{BestBy, Data, GraphExamples, Recipe};
pub use scene::Scene;
pub use wiring::{FeatureWidths, Wiring, wire};
