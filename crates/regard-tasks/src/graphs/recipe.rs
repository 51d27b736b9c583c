//! A recipe with `task = "graphs"`.

use super::learn::mark;
use super::{Book, Labeller, Lesson, Whole, Wiring, molecules};
use crate::data::{Network, Part, sets};
use crate::examine::{Mark, On, Report, Sheet};
use crate::recipe::{Prepared, Task, recipe, task_fields};
use crate::train;
use burn::tensor::Device;
use regard_models::{Error, Model, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

recipe! {
    for "graphs";
    /// Which graphs.
    pub data: Data,
    /// `config.json` of the model, without features and labels.
    pub model: Value,
    /// The share of half the squares of all matrices that is added to the loss.
    #[serde(default)]
    pub l2: f32,
    /// By what the best model is chosen, on labels that are not learned from.
    #[serde(default)]
    pub best_by: BestBy,
    /// How to train. A graph counts as one token of a batch.
    #[serde(default)]
    pub train: train::Options,
}

/// By what the best model is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BestBy {
    /// How many labels are right; among equals the lower loss.
    #[default]
    Accuracy,
    /// The loss, which says more than accuracy where labels are few.
    Loss,
}

/// Which graphs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// `cora`, `citeseer`, `molecules` (generated), or `files`.
    pub set: String,
    /// With `files`: nodes, and what is known of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<PathBuf>,
    /// With `files`: edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<PathBuf>,
    /// With `molecules`: how many to learn from; half as many decide, and half are the test.
    #[serde(default = "thousands")]
    pub count: usize,
    /// How edges and features are meant.
    #[serde(default)]
    pub wiring: Wiring,
}

fn thousands() -> usize {
    4000
}

/// What there is to learn, its labels, and the columns of a node and numbers of an edge.
type Read = (Book, Vec<String>, (usize, usize));

impl Data {
    /// The graph whose nodes have labels; none for sets of graphs.
    pub fn network(&self) -> Result<Option<Network>> {
        let (nodes, edges) = match (self.set.as_str(), &self.nodes, &self.edges) {
            (name @ ("cora" | "citeseer"), None, None) => {
                let folder = sets::find("planetoid")?;
                return super::planetoid(&folder, name).map(Some);
            }
            ("molecules", None, None) => return Ok(None),
            ("files", Some(nodes), Some(edges)) => (nodes.clone(), edges.clone()),
            ("files", ..) => return Err(Error::invalid("data: need nodes and edges with `files`")),
            (other, ..) => {
                return Err(Error::invalid(format!(
                    "data.set: got {other:?}, need cora, citeseer or molecules (without \
                     data.nodes and data.edges), or files"
                )));
            }
        };
        Network::read(&nodes, &edges).map(Some)
    }
}

impl Recipe {
    pub(super) fn read(&self, device: &Device) -> Result<Read> {
        let wiring = self.data.wiring;
        let Some(network) = self.data.network()? else {
            let labels = molecules::LABELS.map(String::from).to_vec();
            let make = |part, count: usize| -> Vec<Whole> {
                let one = |i| molecules::molecule(self.seed, part, i);
                let of = |(network, label)| Whole { network, label };
                (0..count as u64).map(|i| of(one(i))).collect()
            };
            let (all, half) = (self.data.count, self.data.count / 2);
            let parts = [(Part::Train, all), (Part::Valid, half), (Part::Test, half)];
            let graphs = parts.map(|(part, count)| make(part, count));
            let widths = graphs[0].first().map_or((1, 0), |whole| {
                let edge = whole.network.edge_features.first().map_or(0, Vec::len);
                (whole.network.columns, edge)
            });
            return Ok((Book::Graphs { wiring, widths, graphs }, labels, widths));
        };
        let labels = network.label_names();
        let widths = (network.columns, network.edge_features.first().map_or(0, Vec::len));
        Ok((Book::of_nodes(&network, &labels, wiring, widths, device)?, labels, widths))
    }
}

impl Task for Recipe {
    task_fields!();

    fn decides(&self) -> &str {
        match self.best_by {
            BestBy::Accuracy => "accuracy, percent",
            BestBy::Loss => "loss",
        }
    }

    fn prepare(&self) -> Result<Prepared> {
        let learner = Lesson::new(self)?;
        let about = learner.about();
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn examine(&self, folder: &Path, on: &On) -> Result<Report> {
        let mut recipe = self.clone();
        let part = match on {
            On::File(_) => {
                let message = "--file: a graph is two files; name them in a recipe: data.set=files";
                return Err(Error::invalid(message));
            }
            On::Set { set, part } => {
                if let Some(set) = set {
                    recipe.data.set = set.clone();
                }
                part.unwrap_or(Part::Test)
            }
        };
        let device = Device::flex();
        let (labeller, (book, ..)) = (Labeller::load(folder)?, recipe.read(&device)?);
        let asked = book.asked(part);
        let (data, unit) = (recipe.data.set, "labels");
        let sheet = Sheet { data, part: Some(part), asked, unit, excluded: 0 };
        Report::of(sheet, labeller.model().parameters(), || {
            let marks = mark(labeller.model(), &book, part, &device);
            Ok(vec![
                Mark { name: "accuracy", value: marks.accuracy, unit: "%" },
                Mark { name: "loss", value: marks.loss, unit: "nats" },
            ])
        })
    }
}
