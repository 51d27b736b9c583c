//! Attention along the edges of a graph: GAT (Veličković et al. 2018) and GATv2 (Brody et al.
//! 2022).

use super::{Linear, LinearConfig};
use crate::attention::{Attention, Graph, mask};
use crate::init::{Init, Mode, WeightInit};
use crate::ops::{self, Sparse};
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use regard_kernels::ops::dropout::Dropout as Drop;
use std::sync::Arc;

/// Node features, one row per node.
#[derive(Clone, Debug)]
pub enum NodeFeatures {
    /// Dense features `[N, I]`.
    Dense(Box<Tensor<2>>),
    /// Sparse features: the indices of the nonzero elements, and their values.
    Sparse(Arc<Sparse>, Arc<Vec<f32>>),
}

impl From<Tensor<2>> for NodeFeatures {
    fn from(x: Tensor<2>) -> NodeFeatures {
        NodeFeatures::Dense(Box::new(x))
    }
}

impl NodeFeatures {
    /// Applies dropout to the features in training.
    pub fn dropped(&self, p: f32, mode: Mode, site: u64) -> NodeFeatures {
        let Some(stream) = mode.stream(site).filter(|_| p > 0.0) else { return self.clone() };
        match self {
            NodeFeatures::Dense(x) => ops::dropout((**x).clone(), p, stream).into(),
            NodeFeatures::Sparse(x, values) => {
                let mut left = vec![0.0; values.len()];
                let done = Drop { p, stream }.forward(values, &mut left);
                done.expect("as many out as in");
                NodeFeatures::Sparse(x.clone(), Arc::new(left))
            }
        }
    }

    /// `x·W + b`
    fn through(&self, layer: &Linear) -> Tensor<2> {
        match self {
            NodeFeatures::Dense(x) => layer.forward((**x).clone()),
            NodeFeatures::Sparse(x, values) => {
                let y = ops::sparse_linear(x.clone(), values.clone(), layer.weight.val());
                match &layer.bias {
                    Some(bias) => y + bias.val().unsqueeze::<2>(),
                    None => y,
                }
            }
        }
    }
}

/// Edges of a graph with optional edge features, prepared for attention. A node attends to the
/// sources of its incoming edges.
#[derive(Clone, Debug)]
pub struct GraphEdges {
    graph: Graph,
    mask: mask::Mask,
    /// Edge features `[edges, I]`, in the graph's order of edges.
    features: Option<Tensor<2>>,
}

impl GraphEdges {
    /// Prepares a graph with `features: [edges, I]`, or without edge features.
    ///
    /// # Panics
    /// If the number of rows of `features` is not the number of edges.
    pub fn new(graph: Graph, features: Option<Tensor<2>>) -> GraphEdges {
        if let Some(features) = &features {
            assert_eq!(features.dims()[0], graph.edges(), "features: need a row for each edge");
        }
        let mask = mask::edges(graph.indptr(), graph.indices());
        GraphEdges { graph, mask, features }
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

/// Score function of a [`GraphAttention`] layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphScore {
    /// `LeakyReLU(a_t·W x_i + a_s·W x_j)`: static attention, in which the ranking of neighbours is
    /// the same for every node.
    #[default]
    Gat,
    /// `a·LeakyReLU(W_t x_i + W_s x_j)`: dynamic attention, in which it depends on the node.
    Gatv2,
}

/// Configuration of [`GraphAttention`].
#[derive(Clone, Debug)]
pub struct GraphAttentionConfig {
    /// `I`, the number of node features.
    pub inputs: usize,
    /// `D`, the output width of each head.
    pub width: usize,
    /// `H`, the number of heads.
    pub heads: usize,
    /// Whether the heads are concatenated (default), or averaged.
    pub concat: bool,
    /// Score function. Default GAT.
    pub score: GraphScore,
    /// Negative slope of LeakyReLU. Default 0.2.
    pub slope: f32,
    /// Dropout probability of the attention weights. Default 0.
    pub dropout: f32,
    /// Number of edge features; 0 for none.
    pub edge: usize,
}

/// Multi-head graph attention layer.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::{GraphEdges, NodeFeatures, GraphAttentionConfig};
/// use regard_attention::{Graph, Init, Mode};
///
/// let device = Device::flex();
/// // Node 0 attends to itself and 1, node 1 to itself, node 2 to none.
/// let along = GraphEdges::new(Graph::new(&[0, 2, 3, 3], &[0, 1, 1]), None);
/// let layer = GraphAttentionConfig::new(4, 8, 2).init(&mut Init::new(0, &device));
/// let x = NodeFeatures::from(Tensor::<2>::ones([3, 4], &device));
/// assert_eq!(layer.forward(&x, &along, Mode::Eval).dims(), [3, 16]);
/// let weights = layer.weights(&x, &along);
/// assert_eq!(weights[..3], [0.5, 0.5, 1.0]);
/// ```
#[derive(Module, Debug)]
pub struct GraphAttention {
    /// `W_s`, projection of source nodes, `[I, H·D]`.
    pub source: Linear,
    /// `W_t`, projection of target nodes, `[I, H·D]`; `None` for GAT, which uses `W_s` for both.
    pub target: Option<Linear>,
    /// `a_s` of GAT, or `a` of GATv2, `[H, D]`.
    pub a_source: Param<Tensor<2>>,
    /// `a_t` of GAT, `[H, D]`; `None` for GATv2.
    pub a_target: Option<Param<Tensor<2>>>,
    /// Projection of edge features, `[edge, H·D]`.
    pub edge: Option<Linear>,
    /// `a_e` of GAT, `[H, D]`; `None` for GATv2 or without edge features.
    pub a_edge: Option<Param<Tensor<2>>>,
    /// Bias, `[H·D]` if heads are concatenated, `[D]` if they are averaged.
    pub bias: Param<Tensor<1>>,
    /// Whether the heads are concatenated.
    #[module(skip)]
    pub concat: bool,
    /// Negative slope of LeakyReLU.
    #[module(skip)]
    pub slope: f32,
    /// Dropout probability of the attention weights.
    #[module(skip)]
    pub dropout: f32,
    /// Site of the dropout's random stream.
    #[module(skip)]
    pub site: u64,
}

impl GraphAttentionConfig {
    /// Creates a configuration of GAT with concatenated heads and a negative slope of 0.2.
    pub fn new(inputs: usize, width: usize, heads: usize) -> GraphAttentionConfig {
        let (concat, score, slope, dropout) = (true, GraphScore::Gat, 0.2, 0.0);
        GraphAttentionConfig { inputs, width, heads, concat, score, slope, dropout, edge: 0 }
    }

    /// Initialises the layer.
    pub fn init(&self, init: &mut Init) -> GraphAttention {
        let GraphAttentionConfig { inputs, width, heads, .. } = *self;
        let v2 = self.score == GraphScore::Gatv2;
        let weights = WeightInit::Xavier;
        let linear = |inputs, bias| LinearConfig {
            bias,
            weights,
            ..LinearConfig::new(inputs, heads * width)
        };
        let bound = (6.0 / (heads + width) as f32).sqrt();
        let edges = self.edge > 0;
        GraphAttention {
            source: linear(inputs, v2).init(init),
            target: v2.then(|| linear(inputs, true).init(init)),
            a_source: init.uniform([heads, width], bound),
            a_target: (!v2).then(|| init.uniform([heads, width], bound)),
            edge: edges.then(|| linear(self.edge, false).init(init)),
            a_edge: (edges && !v2).then(|| init.uniform([heads, width], bound)),
            bias: init.constant([if self.concat { heads * width } else { width }], 0.0),
            concat: self.concat,
            slope: self.slope,
            dropout: self.dropout,
            site: init.site(),
        }
    }
}

impl GraphAttention {
    /// Applies the layer.
    ///
    /// # Shapes
    /// `x: [N, I]` → `[N, H·D]`, or `[N, D]` if the heads are averaged
    pub fn forward(&self, x: &NodeFeatures, along: &GraphEdges, mode: Mode) -> Tensor<2> {
        let (attention, q, k) = self.prepare(x, along);
        let attention = super::call::dropped(&attention, self.dropout, mode, self.site);
        self.attend(&attention, q, k)
    }

    /// Like [`GraphAttention::forward`] without dropout, and returns the attention weight of each
    /// edge as [`GraphAttention::weights`] does. Projections are computed once.
    ///
    /// # Shapes
    /// `x: [N, I]` → `[N, H·D]`, or `[N, D]` if the heads are averaged; and `[H·edges]`
    pub fn forward_with_weights(
        &self,
        x: &NodeFeatures,
        along: &GraphEdges,
    ) -> (Tensor<2>, Vec<f32>) {
        let (attention, q, k) = self.prepare(x, along);
        let weights = attention.listed_weights(q.clone(), k.clone());
        (self.attend(&attention, q, k), weights.expect("a graph lists its edges"))
    }

    /// The output of the layer for queries and keys.
    fn attend(&self, attention: &Attention, q: Tensor<4>, k: Tensor<4>) -> Tensor<2> {
        let [_, h, n, d] = k.dims();
        let out = attention.attend(q, k.clone(), k);
        let out = match self.concat {
            true => out.swap_dims(1, 2).reshape([n, h * d]),
            false => out.mean_dim(1).reshape([n, d]),
        };
        out + self.bias.val().unsqueeze::<2>()
    }

    /// Returns the attention weight of each edge, head by head in the graph's order of edges:
    /// `[H·edges]`.
    pub fn weights(&self, x: &NodeFeatures, along: &GraphEdges) -> Vec<f32> {
        let (attention, q, k) = self.prepare(x, along);
        attention.listed_weights(q, k).expect("a graph lists its edges")
    }

    /// The attention, its queries, and its keys, which are also its values: `[1, H, N, D]` each.
    fn prepare(&self, x: &NodeFeatures, along: &GraphEdges) -> (Attention, Tensor<4>, Tensor<4>) {
        let [h, d] = self.a_source.dims();
        let heads = |x: Tensor<2>| {
            let [n, _] = x.dims();
            x.reshape([1, n, h, d]).swap_dims(1, 2)
        };
        let k = heads(x.through(&self.source));
        let (attention, q) = match (&self.target, &self.a_target) {
            (Some(target), _) => {
                let attention = Attention::gatv2(self.a_source.val(), self.slope);
                (attention, heads(x.through(target)))
            }
            (None, Some(a)) => {
                let attention = Attention::edge(a.val(), self.a_source.val(), self.slope);
                (attention, k.clone())
            }
            (None, None) => unreachable!("GAT has both vectors"),
        };
        let attention = match (&self.edge, &along.features) {
            (Some(layer), Some(features)) => {
                let edges = along.graph.edges();
                let seen = layer.forward(features.clone()).reshape([edges, h, d]);
                let seen = match &self.a_edge {
                    // GAT has one scalar per edge and head.
                    Some(a) => (seen * a.val().unsqueeze::<3>()).sum_dim(2),
                    None => seen,
                };
                attention.edge_features(along.graph.clone(), seen.swap_dims(0, 1))
            }
            (None, None) => attention,
            (Some(_), None) => panic!("graph attention: got no edge features, need some"),
            (None, Some(_)) => panic!("graph attention: got edge features, the layer has none"),
        };
        (attention.mask(along.mask.clone()), q, k)
    }
}
