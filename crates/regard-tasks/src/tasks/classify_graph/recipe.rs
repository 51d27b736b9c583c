//! A recipe with `task = "classify-graph"`.

use super::learn::mark_each;
use super::{FeatureWidths, GraphClassifier, GraphDataset, GraphObjective, Wiring, molecules};
use crate::about::{self, About};
use crate::data::graphs::{self, LabelledGraph};
use crate::data::known::{self, Format};
use crate::data::{GraphData, Part, sets};
use crate::evaluation::{Details, EvaluationData, EvaluationSet, Metric, Report, Source};
use crate::import::graph;
use crate::recipe::details::{JudgedLabel, ShownInput};
use crate::recipe::{Prepared, Task, recipe};
use crate::{own, say, train};
use burn::tensor::Device;
use regard_models::{Error, ModelFiles, Network as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

recipe! {
    for "classify-graph";
    /// Training graphs.
    pub data: Data,
    /// `config.json` of the model, without features and labels.
    pub model: Value,
    /// Weight of L2 regularisation: it multiplies half the sum of squares of all matrices in the
    /// loss; 0 by default.
    #[serde(default)]
    pub l2: f32,
    /// Model selection metric on the validation labels.
    #[serde(default)]
    pub best_by: BestBy,
    /// Training options. A graph counts as one token of a batch.
    #[serde(default)]
    pub train: train::TrainOptions,
}

/// Model selection metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BestBy {
    /// Accuracy and loss: a new best model is worse in neither, and training continues while one of
    /// them improves (Veličković et al. 2018).
    #[default]
    Both,
    /// Accuracy; higher is better.
    Accuracy,
    /// Loss; lower is better.
    Loss,
}

/// Graphs to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of the data set: `cora`, `citeseer`, `molecules` (generated) or `files`.
    pub set: String,
    /// File of nodes with parts, labels and features; only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<PathBuf>,
    /// File of edges; only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<PathBuf>,
    /// File that assigns nodes to graphs, if graphs instead of nodes have labels; only with
    /// `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphs: Option<PathBuf>,
    /// Number of training graphs with `set = "molecules"`; validation and test part have half as
    /// many each. 4000 by default.
    #[serde(default = "thousands")]
    pub count: usize,
    /// Conversion of edges and features to model input.
    #[serde(default)]
    pub wiring: Wiring,
}

fn thousands() -> usize {
    4000
}

/// Graph data as read.
pub enum GraphExamples {
    /// One graph whose nodes have labels.
    Nodes(GraphData),
    /// Graphs with one label each.
    Graphs(Vec<LabelledGraph>),
}

/// Properties of the data that a model is built for.
pub(super) struct Made {
    pub labels: Vec<String>,
    pub wiring: Wiring,
    /// Number of node features and of edge features.
    pub widths: FeatureWidths,
}

impl GraphExamples {
    /// Returns the properties of a model for this data.
    fn made(&self, wiring: Wiring) -> Made {
        match self {
            GraphExamples::Nodes(network) => Made {
                labels: network.label_names(),
                wiring,
                widths: FeatureWidths { node: network.columns, edge: network.edge_width() },
            },
            GraphExamples::Graphs(all) => {
                let networks = || all.iter().map(|graph| &graph.network);
                let node = networks().map(|network| network.columns).max().unwrap_or(0);
                let edge = networks().map(GraphData::edge_width).max().unwrap_or(0);
                let widths = FeatureWidths { node, edge };
                Made { labels: graphs::label_names(all), wiring, widths }
            }
        }
    }

    /// Returns a summary of the graph data.
    fn about(&self, data: &Data) -> About {
        let mut about = About::default();
        let files = [&data.nodes, &data.edges, &data.graphs].into_iter().flatten();
        let from = match data.set.as_str() {
            own::FILES => about::paths(&files.collect::<Vec<_>>()),
            set => set.to_string(),
        };
        let (labels, parts): (Vec<&str>, Vec<Part>) = match self {
            GraphExamples::Nodes(network) => {
                let (nodes, edges) = (network.labels.len(), network.edges.len());
                let known = network.labels.iter().flatten().count();
                about.part(
                    "data",
                    &from,
                    format!(
                        "{}, {}, {}",
                        say::many(nodes, "node"),
                        say::many(edges, "edge"),
                        say::many(known, "label")
                    ),
                );
                let labelled = network.labels.iter().zip(&network.parts);
                labelled.filter_map(|(label, part)| Some((label.as_deref()?, (*part)?))).unzip()
            }
            GraphExamples::Graphs(all) => {
                let nodes = all.iter().map(|graph| graph.network.labels.len()).sum();
                about.part(
                    "data",
                    &from,
                    format!("{}, {}", say::many(all.len(), "graph"), say::many(nodes, "node")),
                );
                let labelled = all.iter().filter_map(|g| Some((g.label.as_str(), g.part?)));
                labelled.unzip()
            }
        };
        for part in [Part::Train, Part::Valid, Part::Test] {
            let count = parts.iter().filter(|of| **of == part).count();
            about.part(part.name(), &from, say::many(count, "label"));
        }
        let of_train = labels.iter().zip(&parts).filter(|(_, part)| **part == Part::Train);
        about.labels("class", &about::counted(of_train.map(|(label, _)| *label)));
        about
    }

    /// Refuses numbers in place of names of labels. Of a known data set the order of the labels is
    /// known; in the user's files 0 may be any of them.
    fn check_named(&self, labels: &[String]) -> Result<()> {
        let given: Vec<&String> = match self {
            GraphExamples::Nodes(network) => network.labels.iter().flatten().collect(),
            GraphExamples::Graphs(all) => all.iter().map(|graph| &graph.label).collect(),
        };
        let is_number = |label: &&&String| !labels.contains(label) && label.parse::<u64>().is_ok();
        match given.iter().find(is_number) {
            Some(label) => Err(Error::invalid(format!(
                "label {label:?}: the model has {}, and which of them a number is, is unknown: \
                 write their names",
                say::list(labels, 10)
            ))),
            None => Ok(()),
        }
    }

    /// Converts to a data set for training or evaluation.
    fn book(self, made: &Made, device: &Device) -> Result<GraphDataset> {
        let Made { labels, wiring, widths } = made;
        match self {
            GraphExamples::Nodes(network) => {
                GraphDataset::of_nodes(&network, labels, *wiring, *widths, device)
            }
            GraphExamples::Graphs(all) => GraphDataset::of_graphs(all, labels, *wiring, *widths),
        }
    }
}

impl Data {
    /// Returns the names of labels: those of a known data set whose labels are numbers, else the
    /// labels.
    pub(super) fn class_names(&self, labels: &[String]) -> Vec<String> {
        match known::set("classify-graph", &self.set).map(|set| &set.format) {
            Some(Format::Planetoid(names)) => names.iter().map(|name| name.to_string()).collect(),
            _ => labels.to_vec(),
        }
    }

    /// Returns the ids of the nodes of imported tables; empty for other files.
    fn ids(&self) -> Result<Vec<String>> {
        let file = self.nodes.as_ref().map(|nodes| nodes.with_file_name(graph::IDS));
        match file.filter(|file| self.set == own::FILES && file.is_file()) {
            Some(file) => graph::ids(&file),
            None => Ok(vec![]),
        }
    }

    /// Reads the graphs; generated ones are determined by the seed.
    pub fn read(&self, seed: u64) -> Result<GraphExamples> {
        let drawn = || {
            let (all, half) = (self.count as u64, self.count as u64 / 2);
            let parts = [(Part::Train, all), (Part::Valid, half), (Part::Test, half)];
            let of = |(part, count)| (0..count).map(move |i| molecules::molecule(seed, part, i));
            GraphExamples::Graphs(parts.into_iter().flat_map(of).collect())
        };
        if let Some(set) = known::named("classify-graph", "data.set", &self.set)? {
            return match set.format {
                Format::Planetoid(_) => {
                    super::planetoid(&sets::find("planetoid")?, set.name).map(GraphExamples::Nodes)
                }
                Format::Molecules => Ok(drawn()),
                _ => known::unread(set),
            };
        }
        // Missing keys are reported before missing files.
        let nodes = self.nodes.as_ref().ok_or_else(|| own::missing("nodes", "a file of nodes"))?;
        let edges = self.edges.as_ref().ok_or_else(|| own::missing("edges", "a file of edges"))?;
        own::there("nodes", nodes)?;
        own::there("edges", edges)?;
        if let Some(graphs) = &self.graphs {
            own::there("graphs", graphs)?;
        }
        match &self.graphs {
            Some(graphs) => graphs::read(graphs, nodes, edges).map(GraphExamples::Graphs),
            None => GraphData::read(nodes, edges).map(GraphExamples::Nodes),
        }
    }
}

impl Recipe {
    pub(super) fn read(&self, device: &Device) -> Result<(GraphDataset, Made, About)> {
        let given = self.data.read(self.seed)?;
        let made = given.made(self.data.wiring);
        let about = given.about(&self.data);
        Ok((given.book(&made, device)?, made, about))
    }
}

impl Task for Recipe {
    fn decides(&self) -> &str {
        match self.best_by {
            BestBy::Both | BestBy::Accuracy => "accuracy, percent",
            BestBy::Loss => "loss",
        }
    }

    fn prepare(&self) -> Result<Prepared> {
        let learner = GraphObjective::new(self)?;
        let about = learner.objective().about(learner.millions());
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        let mut recipe = self.clone();
        let part = match on {
            EvaluationData::File(_) => {
                return Err(Error::invalid(
                    "--data: a graph is more than one file; name them by --set data.set=files \
                     --set data.nodes=FILE --set data.edges=FILE",
                ));
            }
            EvaluationData::Set { set, part } => {
                if let Some(set) = set {
                    recipe.data.set = set.clone();
                }
                part.unwrap_or(Part::Test)
            }
        };
        let device = Device::flex();
        let (labeller, given) =
            (GraphClassifier::load(model.clone())?, recipe.data.read(recipe.seed)?);
        let of_graphs = matches!(given, GraphExamples::Graphs(_));
        if of_graphs != labeller.reads_graphs() {
            let what = |graphs| if graphs { "whole graphs" } else { "nodes" };
            return Err(Error::invalid(format!(
                "{} has labels of {}, the model labels {}",
                recipe.data.set,
                what(of_graphs),
                what(!of_graphs)
            )));
        }
        let ids = recipe.data.ids()?;
        // Labels, wiring and widths are those that the model was trained with.
        let made = labeller.made();
        if recipe.data.set == own::FILES {
            given.check_named(&made.labels)?;
        }
        let book = given.book(&made, &device)?;
        let source = Source::Set(&recipe.data.set, part);
        let sheet = EvaluationSet::new(&source, book.asked(part), "labels");
        Report::detailed(sheet, labeller.model().parameters(), || {
            let (mut judged, mut places) = (vec![], vec![]);
            let see = &mut |at: usize, label: JudgedLabel| {
                judged.push(label);
                places.push(at);
            };
            let marks = mark_each(labeller.model(), &book, part, &device, see);
            let marks = vec![
                Metric { name: "accuracy", value: marks.accuracy, unit: "%" },
                Metric { name: "loss", value: marks.loss, unit: "nats" },
            ];
            let show = |at: usize| {
                let text = match of_graphs {
                    true => format!("graph {} of part {}", places[at] + 1, part.name()),
                    // Files number nodes from 0; imported tables have ids.
                    false => match ids.get(places[at]) {
                        Some(id) => format!("node {}", say::short(id, 60)),
                        None => format!("node {}", places[at]),
                    },
                };
                ShownInput { number: None, text }
            };
            Ok((marks, Some(Details::of_labels(labeller.labels(), &judged, show))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_no_label_that_has_a_name() {
        let given = |labels: &[&str]| {
            let labels = labels.iter().map(|label| Some(label.to_string()));
            let network = GraphData {
                features: vec![],
                columns: 0,
                labels: labels.chain([None]).collect(),
                parts: vec![],
                edges: vec![],
                edge_features: vec![],
            };
            GraphExamples::Nodes(network)
        };
        let names = ["cat", "dog"].map(String::from);
        assert!(given(&["dog", "cat"]).check_named(&names).is_ok());
        let error = given(&["dog", "0"]).check_named(&names).unwrap_err().to_string();
        assert!(error.contains("label \"0\": the model has cat, dog"), "{error}");
        // Numbers that the model was trained with are labels; other names have their own message.
        assert!(given(&["1", "0"]).check_named(&["0", "1"].map(String::from)).is_ok());
        assert!(given(&["cow"]).check_named(&names).is_ok());
    }
}
