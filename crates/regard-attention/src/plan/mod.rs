//! Layers on slices, for decoding token by token.
//!
//! A decoding step is a few dozen small operations. As tensor operations, each of them allocates
//! its result and passes through Burn's dispatch, which takes as long as the arithmetic of a small
//! model. A plan is made when decoding begins: it holds the weights as the kernels take them and
//! works on slices that are reused from step to step.
//!
//! Products, norms and embeddings are computed by the same kernels as in [`layers`](crate::layers),
//! bit for bit. Attention is that of [`attend`], within rounding of the engine's.

mod cache;
mod decoder;
mod decoder_layer;
mod floats;
mod recurrent;
mod rows;
mod sequence;
mod sublayers;
mod timing;
mod weight;

pub use cache::RowCache;
pub use decoder::{Chunk, DecoderLayers, PlannedDecoder, Work};
pub use decoder_layer::DecoderLayer;
pub use floats::Floats;
pub use recurrent::{PlannedRecurrent, RecurrentRows};
pub use rows::{EncodedSentences, RowQuery, RowScore};
pub use sequence::{CacheType, SequenceCache};
pub use sublayers::{
    PlannedCrossAttention, PlannedFeedForward, PlannedResidual, PlannedSelfAttention,
};
pub use timing::{Part, PartTimes, count_step, measure, timed};
pub(crate) use weight::{PlannedWeight, WeightUse};

use crate::backend::{Dense, ok, on_cpu};
use crate::layers::{Embedding, Linear, Norm, Weight};
use crate::ops::{Activation, NormKind};
use burn::module::Param;
use burn::tensor::Tensor;
use regard_kernels::attention::{AttentionInputs, decode};
use regard_kernels::gemm::Epilogue;
use regard_kernels::ops::norm::{Norm as NormKernel, Outputs};
use regard_kernels::scratch::Scratch;
use regard_kernels::view::{View, ViewMut};

/// Linear layer, `y = f(x·W + b)`.
pub struct PlannedLinear {
    weight: PlannedWeight,
    bias: Option<Dense>,
    activation: Activation,
}

fn dense(param: &Param<Tensor<1>>) -> Dense {
    Dense::new(&on_cpu(param.val()))
}

impl PlannedLinear {
    /// Plans a layer.
    ///
    /// # Panics
    /// If it is not on the CPU in single precision.
    pub fn new(layer: &Linear) -> PlannedLinear {
        let (weight, activation) = (layer.weight.plan(WeightUse::Product), layer.activation);
        PlannedLinear { weight, bias: layer.bias.as_ref().map(dense), activation }
    }

    /// Plans a product with a weight that is stored by outputs, `x·Wᵀ + b`: the logits of tied
    /// embeddings, or the gates of a recurrent layer.
    ///
    /// # Panics
    /// As [`PlannedLinear::new`].
    pub fn scores(table: &Weight, bias: Option<&Param<Tensor<1>>>) -> PlannedLinear {
        let (weight, activation) = (table.plan(WeightUse::Scores), Activation::Identity);
        PlannedLinear { weight, bias: bias.map(dense), activation }
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.weight.dims()[1]
    }

    /// Replaces the contents of `y` by the outputs of the rows `x`.
    ///
    /// # Shapes
    /// `x: [N, I]` → `y: [N, O]`
    pub fn forward(&self, x: &[f32], y: &mut Floats) {
        y.set_len(x.len() / self.weight.dims()[0] * self.outputs());
        self.forward_into(x, y);
    }

    /// Computes the outputs of the rows `x`.
    ///
    /// # Shapes
    /// `x: [N, I]` → `y: [N, O]`
    ///
    /// # Panics
    /// If `y` has another length.
    pub fn forward_into(&self, x: &[f32], y: &mut [f32]) {
        let [i, o] = self.weight.dims();
        let rows = x.len() / i;
        assert_eq!((rows * i, rows * o), (x.len(), y.len()), "linear: needs rows of {i}");
        let (bias, activation) = (self.bias.as_deref(), self.activation);
        let rest = Epilogue { bias, activation, ..Epilogue::default() };
        timed(Part::Products, || self.weight.product(x, y, rest));
    }
}

/// Layer norm or RMS norm.
pub struct PlannedNorm {
    kind: NormKind,
    eps: f32,
    gamma: Dense,
    beta: Option<Dense>,
}

impl PlannedNorm {
    /// Plans a norm.
    pub fn new(norm: &Norm) -> PlannedNorm {
        let Norm { kind, eps, .. } = *norm;
        let gamma = Dense::new(&on_cpu(norm.scale()));
        let beta = norm.beta.as_ref().map(dense);
        PlannedNorm { kind, eps, gamma, beta }
    }

    /// Replaces the contents of `y` by the norms of the rows `x`.
    pub fn forward(&self, x: &[f32], y: &mut Floats) {
        self.run(x, None, y, None);
    }

    /// Replaces the contents of `sum` by `x + residual`, and those of `y` by its norm.
    pub fn forward_sum(&self, x: &[f32], residual: &[f32], sum: &mut Floats, y: &mut Floats) {
        sum.set_len(x.len());
        self.run(x, Some(residual), y, Some(sum));
    }

    fn run(&self, x: &[f32], with: Option<&[f32]>, y: &mut Floats, sum: Option<&mut [f32]>) {
        y.set_len(x.len());
        let rows = x.len() / self.gamma.len();
        // Statistics of rows, which only a backward would need.
        let [mut mean, mut rstd] = [Scratch::new(rows), Scratch::new(rows)];
        let to = Outputs { y, sum, mean: &mut mean, rstd: &mut rstd };
        let (gamma, beta) = (&*self.gamma, self.beta.as_deref());
        ok(NormKernel { kind: self.kind, gamma, beta, eps: self.eps }.forward(x, with, to));
    }
}

/// Embedding table.
pub struct PlannedTable(PlannedWeight);

impl PlannedTable {
    /// Plans an embedding table.
    pub fn new(embedding: &Embedding) -> PlannedTable {
        PlannedTable(embedding.table.plan(WeightUse::Rows))
    }

    /// Width of an embedding.
    pub fn width(&self) -> usize {
        self.0.dims()[1]
    }

    /// Replaces the contents of `y` by the embeddings of `ids`.
    ///
    /// # Panics
    /// If an id is not in the table.
    pub fn forward(&self, ids: &[u32], y: &mut Floats) {
        let [v, m] = self.0.dims();
        y.set_len(ids.len() * m);
        for (id, to) in ids.iter().zip(y.chunks_mut(m.max(1))) {
            assert!((*id as usize) < v, "embedding: got id {id}, need one below {v}");
            self.0.row(*id as usize, to);
        }
    }
}

/// Copies the values of a tensor in row-major order.
pub fn copied<const D: usize>(x: Tensor<D>, into: &mut Floats) {
    into.copy_from(&Dense::new(&on_cpu(x)));
}

/// Rows that hold queries, or keys and values, of all heads side by side.
#[derive(Clone, Copy)]
pub struct HeadRows<'a> {
    /// The floats.
    pub data: &'a [f32],
    /// Batch rows, and positions in each of them.
    pub shape: [usize; 2],
    /// Distances between batch rows and between positions, in floats.
    pub strides: [usize; 2],
    /// Where the first head begins.
    pub first: usize,
}

impl<'a> HeadRows<'a> {
    fn view(&self, heads: usize, width: usize) -> View<'a> {
        let HeadRows { data, shape: [b, n], strides: [row, step], first } = *self;
        let strides = [row, width, step, 1].map(|x| x as isize);
        ok(View::strided(data, [b, heads, n, width], strides, first))
    }
}

/// Arguments of [`attend`].
pub struct Attending<'a> {
    /// Queries.
    pub q: HeadRows<'a>,
    /// Keys.
    pub k: HeadRows<'a>,
    /// Values.
    pub v: HeadRows<'a>,
    /// Numbers of query heads and of key-value heads.
    pub heads: crate::Heads,
    /// Width of a head.
    pub width: usize,
    /// Scale of the scores; `None` for `1/√D`.
    pub scale: Option<f32>,
    /// Valid keys of each batch row; `None` for all.
    pub lengths: Option<&'a [i64]>,
}

/// Dot-product attention of a decoding step; `out` gets the merged heads.
///
/// # Shapes
/// `q: [B, T, H·D]`, `k, v: [B, S, Hk·D]` → `out: [B, T, H·D]`
pub fn attend(with: &Attending, out: &mut Floats) {
    let Attending { q, k, v, heads, width, scale, lengths } = with;
    let ([b, t], h) = (q.shape, heads.queries);
    out.set_len(b * t * h * width);
    let strides = [t * h * width, *width, h * width, 1].map(|x| x as isize);
    let room = ok(ViewMut::strided(out, [b, h, t, *width], strides));
    let [k, v] = [k, v].map(|x| x.view(heads.keys, *width));
    let inputs = AttentionInputs::new(q.view(h, *width), k, v);
    timed(Part::Attention, || ok(decode(&inputs, *lengths, *scale, &room)));
}

#[cfg(test)]
mod tests;
