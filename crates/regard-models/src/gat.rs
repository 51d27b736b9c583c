//! Attention along the edges of graphs: GAT (Veličković et al. 2018) and GATv2 (Brody et al.
//! 2022), to classify each node, or whole graphs by attention pooling over all nodes.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use regard_attention::layers::{GraphEdges, NodeFeatures};
//! use regard_attention::{Graph, Mode};
//! use regard_models::zoo;
//! use regard_models::gat::{Gat, Nodes};
//! use serde_json::json;
//!
//! let config = json!({ "model_type": "gat", "features": 5, "num_labels": 3 });
//! let device = Device::flex();
//! let model = zoo::create::<Gat>(&config, 7, &device).unwrap();
//! let nodes = Nodes {
//!     features: Tensor::<2>::ones([2, 5], &device).into(),
//!     along: GraphEdges::new(Graph::new(&[0, 2, 4], &[0, 1, 0, 1]), None),
//!     graphs: vec![2],
//! };
//! assert_eq!(model.forward(&nodes, Mode::Eval).dims(), [2, 3]);
//! ```

use crate::checkpoint::{Arrays, Binder};
use crate::labels::Labels;
use crate::network::{Definition, Description, InputKind};
use crate::sizes;
use crate::text::activation;
use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::layers::{
    Dropout, GraphAttention, GraphAttentionConfig, GraphEdges, GraphScore, Linear, LinearConfig,
    NodeFeatures, Pool, Pooling, PoolingConfig, Sequences,
};
use regard_attention::ops::{Activation, activate};
use regard_attention::{Init, Mode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `model_type` in `config.json`.
pub const MODEL_TYPE: &str = "gat";

/// Configuration of [`Gat`], as in `config.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Number of features of a node.
    pub features: usize,
    /// Number of features of an edge; 0 for none.
    pub edge_features: usize,
    /// Width of each head; default 8.
    pub hidden_size: usize,
    /// Heads of each layer, except the last one when nodes are classified; default 8.
    pub num_attention_heads: usize,
    /// Heads of the last layer when nodes are classified, averaged; default 1.
    pub output_heads: usize,
    /// Number of layers; default 2.
    pub num_layers: usize,
    /// Score function: `gat` or `gatv2`.
    pub score: String,
    /// Activation between layers; default `elu`.
    pub hidden_act: String,
    /// Negative slope of LeakyReLU in the score; default 0.2.
    pub negative_slope: f32,
    /// Dropout of each layer's inputs; default 0.6.
    pub dropout: f32,
    /// Dropout of attention weights; default 0.6.
    pub attention_dropout: f32,
    /// Width of the attention pooling over a graph; 0 to classify each node.
    pub readout: usize,
    /// Names or number of the labels; two unnamed ones by default.
    #[serde(flatten)]
    pub labels: Labels,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            features: 0,
            edge_features: 0,
            hidden_size: 8,
            num_attention_heads: 8,
            output_heads: 1,
            num_layers: 2,
            score: "gat".into(),
            hidden_act: "elu".into(),
            negative_slope: 0.2,
            dropout: 0.6,
            attention_dropout: 0.6,
            readout: 0,
            labels: Labels::default(),
        }
    }
}

impl Config {
    fn check(&self) -> Result<(), String> {
        let labels = self.labels.count()?;
        sizes::check_depth("num_layers", self.num_layers)?;
        let (features, heads) = ("features", "num_attention_heads");
        let wide = self.hidden_size.saturating_mul(self.num_attention_heads);
        sizes::check(&[
            (features, self.features),
            ("hidden_size", self.hidden_size),
            (heads, self.num_attention_heads),
            ("output_heads", self.output_heads),
        ])?;
        // Sizes that may be 0.
        sizes::check(&[
            ("edge_features", self.edge_features.max(1)),
            ("readout", self.readout.max(1)),
            ("output_heads · num_labels", self.output_heads.saturating_mul(labels)),
        ])?;
        let of_heads = ("hidden_size · num_attention_heads", wide);
        let of_labels = ("output_heads · num_labels", self.output_heads.saturating_mul(labels));
        sizes::check_matrices(&[
            [(features, self.features), of_heads],
            [of_heads, of_heads],
            [of_heads, of_labels],
            [("edge_features", self.edge_features), of_heads],
            [("edge_features", self.edge_features), of_labels],
            [("readout", self.readout), of_heads],
        ])?;
        sizes::check_shares(&[
            ("dropout", self.dropout),
            ("attention_dropout", self.attention_dropout),
        ])?;
        activation("hidden_act", &self.hidden_act)?;
        self.score().map(|_| ())
    }

    fn score(&self) -> Result<GraphScore, String> {
        match self.score.as_str() {
            "gat" => Ok(GraphScore::Gat),
            "gatv2" => Ok(GraphScore::Gatv2),
            other => Err(format!("score: got {other:?}, need gat or gatv2")),
        }
    }
}

/// Nodes of one or several graphs, concatenated: edges stay within their graph.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// Features, `[N, features]`.
    pub features: NodeFeatures,
    /// Edges, with their features if any.
    pub along: GraphEdges,
    /// Number of nodes of each graph; the sum is `N`.
    pub graphs: Vec<usize>,
}

/// The graph attention network.
#[derive(Module, Debug)]
pub struct Gat {
    layers: Vec<GraphAttention>,
    dropout: Vec<Dropout>,
    readout: Option<Pooling>,
    classifier: Option<Linear>,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    config: Config,
}

impl Definition for Gat {
    const READS: InputKind = InputKind::Other;

    fn types() -> Vec<&'static str> {
        vec![MODEL_TYPE]
    }

    fn task(_config: &Value) -> Result<&'static str, String> {
        Ok("classify-graph")
    }

    fn make(json: &Value, _weights: Option<&Arrays>, init: &mut Init) -> Result<Gat, String> {
        let config: Config = crate::parse(json)?;
        config.check()?;
        let labels = config.labels.count()?;
        let of_nodes = config.readout == 0;
        let wide = config.hidden_size * config.num_attention_heads;
        let layer = |i: usize| {
            let last = of_nodes && i + 1 == config.num_layers;
            GraphAttentionConfig {
                inputs: if i == 0 { config.features } else { wide },
                width: if last { labels } else { config.hidden_size },
                heads: if last { config.output_heads } else { config.num_attention_heads },
                concat: !last,
                score: config.score().expect("it was checked"),
                slope: config.negative_slope,
                dropout: config.attention_dropout,
                edge: config.edge_features,
            }
        };
        let pool = Pool::Attention { hidden: config.readout };
        Ok(Gat {
            layers: (0..config.num_layers).map(|i| layer(i).init(init)).collect(),
            dropout: (0..config.num_layers).map(|_| Dropout::new(config.dropout, init)).collect(),
            readout: (!of_nodes).then(|| PoolingConfig { width: wide, pool }.init(init)),
            classifier: (!of_nodes).then(|| LinearConfig::new(wide, labels).init(init)),
            activation: activation("hidden_act", &config.hidden_act)?,
            config,
        })
    }

    fn bind(&mut self, b: &mut Binder) {
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("layers.{i}"), |b| b.graph_attention(layer));
        }
        if let (Some(readout), Some(classifier)) = (&mut self.readout, &mut self.classifier) {
            b.pooling("readout", readout);
            b.linear("classifier", classifier);
        }
    }

    fn config(&self) -> Value {
        crate::config_json(MODEL_TYPE, &self.config)
    }

    fn describe(&self) -> Description {
        let (reads, attention) = (self.reads(), self.attention());
        Description { reads, attention, ..Description::default() }
    }
}

impl Gat {
    fn reads(&self) -> String {
        let Config { features, edge_features, readout, .. } = self.config;
        let edges = match edge_features {
            0 => String::new(),
            numbers => format!(", edges {numbers}"),
        };
        let what = if readout > 0 { "whole graphs" } else { "the nodes of graphs" };
        format!("{what}; a node has {features} features{edges}")
    }

    fn attention(&self) -> Vec<String> {
        let of_layer = |layer: &GraphAttention| {
            let ([heads, each], score) = (layer.a_source.dims(), &self.config.score);
            format!("{heads} heads of {each}, {score}, along edges")
        };
        let readout = self.readout.as_ref().map(|_| "one head over all nodes of a graph".into());
        self.layers.iter().map(of_layer).chain(readout).collect()
    }
}

impl Gat {
    /// Configuration of the model.
    pub fn settings(&self) -> &Config {
        &self.config
    }

    /// Returns the logits: `[N, labels]` for nodes, `[graphs, labels]` for a model that classifies
    /// graphs.
    pub fn forward(&self, nodes: &Nodes, mode: Mode) -> Tensor<2> {
        let each = |layer: &GraphAttention, x: &NodeFeatures| layer.forward(x, &nodes.along, mode);
        self.logits(self.nodes(nodes, mode, each), nodes)
    }

    /// Like [`Gat::forward`], and returns the attention weight of each edge, and for a model that
    /// classifies graphs the pooling weight of each node.
    pub fn forward_with_attention(&self, nodes: &Nodes) -> GatAttention {
        let mut layers = vec![];
        let x = self.nodes(nodes, Mode::Eval, |layer, x| {
            let (y, weights) = layer.forward_with_weights(x, &nodes.along);
            layers.push(weights);
            y
        });
        let pooled = self.readout.as_ref();
        let readout =
            pooled.and_then(|readout| readout.weights(x.clone(), &Sequences::new(&nodes.graphs)));
        GatAttention { scores: self.logits(x, nodes), layers, readout }
    }

    /// Logits of node vectors.
    fn logits(&self, x: Tensor<2>, nodes: &Nodes) -> Tensor<2> {
        match (&self.readout, &self.classifier) {
            (Some(readout), Some(classifier)) => {
                classifier.forward(readout.forward(x, &Sequences::new(&nodes.graphs)))
            }
            _ => x,
        }
    }

    /// Node vectors after all layers, each of which `each` applies.
    fn nodes(
        &self,
        nodes: &Nodes,
        mode: Mode,
        mut each: impl FnMut(&GraphAttention, &NodeFeatures) -> Tensor<2>,
    ) -> Tensor<2> {
        let mut x = nodes.features.clone();
        for (i, layer) in self.layers.iter().enumerate() {
            let Dropout { p, site } = self.dropout[i];
            x = x.dropped(p, mode, site);
            let y = each(layer, &x);
            let last = self.readout.is_none() && i + 1 == self.layers.len();
            x = if last { y } else { activate(y, self.activation) }.into();
        }
        match x {
            NodeFeatures::Dense(x) => *x,
            NodeFeatures::Sparse(..) => unreachable!("there is at least one layer"),
        }
    }

    /// Half the sum of the squares of all weight matrices, for L2 regularisation.
    pub fn squares(&self) -> Tensor<1> {
        let linear = |layer: &Linear| layer.weight.val();
        let of_layer = |layer: &GraphAttention| {
            let mut all = vec![linear(&layer.source), layer.a_source.val()];
            all.extend(layer.target.iter().chain(&layer.edge).map(linear));
            all.extend(layer.a_target.iter().chain(&layer.a_edge).map(|a| a.val()));
            all
        };
        let matrices = self.layers.iter().flat_map(of_layer);
        let matrices = matrices.chain(self.classifier.iter().map(linear));
        let square = |x: Tensor<2>| (x.clone() * x).sum() * 0.5;
        matrices.map(square).reduce(|a, b| a + b).expect("there is at least one layer")
    }
}

/// Logits and attention weights.
#[derive(Clone, Debug)]
pub struct GatAttention {
    /// Logits, as [`Gat::forward`] returns them.
    pub scores: Tensor<2>,
    /// Attention weights of each layer, `[H·edges]`, head by head, edges in the graph's order.
    pub layers: Vec<Vec<f32>>,
    /// Pooling weights `[N]`; `None` if nodes are classified.
    pub readout: Option<Tensor<1>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zoo;
    use burn::tensor::Device;
    use serde_json::json;

    #[test]
    fn sizes_are_turned_down_before_memory_is_asked_for() {
        for key in ["features", "edge_features", "readout", "output_heads", "num_labels"] {
            let mut config = json!({ "model_type": "gat", "features": 5, "num_labels": 3 });
            config[key] = json!(1u64 << 40);
            let error = zoo::create::<Gat>(&config, 0, &Device::flex()).unwrap_err().to_string();
            assert!(error.contains(key), "{key}: {error}");
        }
    }
}
