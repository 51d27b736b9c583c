//! Inference of graph and node classification, with attention weights.

use super::recipe::Made;
use super::wiring::{FeatureWidths, Wiring, wire};
use crate::data::GraphData;
use crate::logits::{Label, ranked};
use crate::train;
use burn::tensor::{Device, Tensor};
use regard_attention::{Mode, backend};
use regard_models::gat::{Gat, Nodes};
use regard_models::{Error, ModelFiles, Network as _, Result, checkpoint, zoo};
use serde::Deserialize;

/// Predicted labels of a graph with the attention weights of its edges.
#[derive(Clone, Debug)]
pub struct GraphPrediction {
    /// Labels of each node, or of the single graph, the most probable first.
    pub labels: Vec<Vec<Label>>,
    /// Attention of each layer: `(from, to, weight of each head)`, ordered by the attending node
    /// `to`.
    pub layers: Vec<Vec<(usize, usize, Vec<f32>)>>,
    /// Attention weight of each node in the graph's readout; `None` for node classification.
    pub nodes: Option<Vec<f32>>,
}

/// Graph attention model that labels nodes or graphs.
pub struct GraphClassifier {
    model: Gat,
    labels: Vec<String>,
    wiring: Wiring,
}

impl GraphClassifier {
    /// Opens a model: from a folder, which may be a training run's, or a built-in one.
    pub fn load(model: impl Into<ModelFiles>) -> Result<GraphClassifier> {
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
        Ok(GraphClassifier { model, labels, wiring })
    }

    /// Returns the model.
    pub fn model(&self) -> &Gat {
        &self.model
    }

    /// Returns the label names, in index order.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Returns labels, wiring and widths that the model was trained with.
    pub(super) fn made(&self) -> Made {
        let sizes = self.model.settings();
        let widths = FeatureWidths { node: sizes.features, edge: sizes.edge_features };
        Made { labels: self.labels.clone(), wiring: self.wiring, widths }
    }

    /// Whether the model labels whole graphs instead of nodes.
    pub fn reads_graphs(&self) -> bool {
        self.model.settings().readout > 0
    }

    /// Returns the labels of a graph's nodes or of the graph, the most probable first.
    pub fn label(&self, network: &GraphData) -> Result<Vec<Vec<Label>>> {
        let logits = self.model.forward(&self.wire(network)?, Mode::Eval);
        self.named(logits)
    }

    /// Returns the labels with the attention weights.
    pub fn look(&self, network: &GraphData) -> Result<GraphPrediction> {
        let nodes = self.wire(network)?;
        let looks = self.model.forward_with_attention(&nodes);
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
        Ok(GraphPrediction { labels: self.named(looks.scores)?, layers, nodes })
    }

    fn wire(&self, network: &GraphData) -> Result<Nodes> {
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
