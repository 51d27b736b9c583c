//! A trained model that labels, and tells what it looked at.

use super::recipe::Made;
use super::wiring::{Wiring, wire};
use crate::data::Network;
use crate::logits::{Label, ranked};
use crate::train;
use burn::tensor::{Device, Tensor};
use regard_attention::{Mode, backend};
use regard_models::gat::{Gat, Nodes};
use regard_models::{Error, ModelFiles, Network as _, Result, checkpoint, zoo};
use serde::Deserialize;

/// What a model says of a graph, and along which edges it looked.
#[derive(Clone, Debug)]
pub struct Look {
    /// For each node, or the one graph: labels, the likeliest first.
    pub labels: Vec<Vec<Label>>,
    /// For each layer: `(from, to, weight of each head)`, by the node that looks.
    pub layers: Vec<Vec<(usize, usize, Vec<f32>)>>,
    /// How much of each node went into the label of a graph.
    pub nodes: Option<Vec<f32>>,
}

/// A model that labels nodes or graphs.
pub struct Labeller {
    model: Gat,
    labels: Vec<String>,
    wiring: Wiring,
}

impl Labeller {
    /// Opens a model: of a folder, which may be a training run's, or of a part of the program.
    pub fn load(model: impl Into<ModelFiles>) -> Result<Labeller> {
        let files = train::files(model)?;
        let mut config = files.config()?;
        let wrong = |message: String| Error::file(files.path(checkpoint::CONFIG), message);
        let wiring = match config.as_object_mut().and_then(|config| config.remove("wiring")) {
            Some(json) => Wiring::deserialize(json).map_err(|e| wrong(format!("wiring: {e}")))?,
            None => Wiring::default(),
        };
        let model = *zoo::open::<Gat>(files.clone(), &Device::flex())?;
        let names = &model.config()["id2label"];
        let count = model.config()["id2label"].as_object().map_or(0, serde_json::Map::len);
        let name = |i: usize| names[i.to_string()].as_str().map(str::to_string);
        let labels: Option<Vec<String>> = (0..count).map(name).collect();
        let labels = labels.filter(|labels| !labels.is_empty());
        let labels = labels.ok_or_else(|| wrong("id2label: need a name for each label".into()))?;
        Ok(Labeller { model, labels, wiring })
    }

    /// Its model.
    pub fn model(&self) -> &Gat {
        &self.model
    }

    /// Its labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// What it was made for.
    pub(super) fn made(&self) -> Made {
        let sizes = self.model.settings();
        let widths = (sizes.features, sizes.edge_features);
        Made { labels: self.labels.clone(), wiring: self.wiring, widths }
    }

    /// Whether it labels whole graphs.
    pub fn reads_graphs(&self) -> bool {
        self.model.settings().readout > 0
    }

    /// The labels of a graph's nodes, or of the graph.
    pub fn label(&self, network: &Network) -> Result<Vec<Vec<Label>>> {
        let logits = self.model.forward(&self.wire(network)?, Mode::Eval);
        self.named(logits)
    }

    /// The same, and what it looked at.
    pub fn look(&self, network: &Network) -> Result<Look> {
        let nodes = self.wire(network)?;
        let looks = self.model.look_inside(&nodes);
        let graph = nodes.along.graph();
        let edges = graph.edges();
        let named = |weights: &Vec<f32>| {
            let target = |edge: usize| graph.indptr().partition_point(|at| *at <= edge as i64) - 1;
            let heads = |edge: usize| weights.iter().skip(edge).step_by(edges).copied().collect();
            let each = |edge: usize| (graph.indices()[edge] as usize, target(edge), heads(edge));
            (0..edges).map(each).collect()
        };
        let nodes = looks.readout.map(|weights| {
            let mut numbers = vec![];
            backend::numbers(weights, &mut numbers);
            numbers
        });
        let layers = looks.layers.iter().map(named).collect();
        Ok(Look { labels: self.named(looks.scores)?, layers, nodes })
    }

    fn wire(&self, network: &Network) -> Result<Nodes> {
        wire(&[network], self.wiring, self.made().widths, &Device::flex())
    }

    fn named(&self, logits: Tensor<2>) -> Result<Vec<Vec<Label>>> {
        let ([_, labels], mut numbers) = (logits.dims(), vec![]);
        backend::numbers(logits, &mut numbers);
        let rows = numbers.chunks_exact(labels).enumerate();
        let what = if self.reads_graphs() { "graph" } else { "node" };
        rows.map(|(at, scores)| {
            let ranked = ranked(scores, |label| self.labels[label].clone());
            ranked.map_err(|e| Error::invalid(format!("{what} {at}: {e}")))
        })
        .collect()
    }
}
