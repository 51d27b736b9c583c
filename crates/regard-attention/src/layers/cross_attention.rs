//! Multi-head cross-attention.

use super::call::{merge, scaled, split};
use super::{Call, Linear, LinearConfig};
use crate::attention::{Dims, Heads};
use crate::init::{Init, WeightInit};
use burn::module::Module;
use burn::tensor::Tensor;

/// Configuration of [`CrossAttention`].
#[derive(Clone, Debug)]
pub struct CrossAttentionConfig {
    /// `M`, the model width.
    pub width: usize,
    /// Width of the sequence that is attended to.
    pub memory: usize,
    /// `H` query heads and `Hk` key-value heads.
    pub heads: Heads,
    /// `D`, the width of a head.
    pub head_width: usize,
    /// Whether the projections have biases. Default true.
    pub bias: bool,
    /// Dropout probability of the attention weights. Default 0.
    pub dropout: f32,
    /// Initialisation of the projections.
    pub weights: WeightInit,
}

/// Multi-head attention with queries from one sequence, keys and values from another.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::{Call, CrossAttentionConfig};
/// use regard_attention::{Attention, Init, mask::lengths};
///
/// let device = Device::flex();
/// let layer = CrossAttentionConfig::new(32, 4).init(&mut Init::new(0, &device));
/// let (x, memory) = (Tensor::ones([2, 5, 32], &device), Tensor::ones([2, 7, 32], &device));
/// let attention = Attention::dot().mask(lengths(&[7, 4]));
/// let y = layer.forward(x, layer.remember(memory), Call::new(&attention));
/// assert_eq!(y.dims(), [2, 5, 32]);
/// ```
#[derive(Module, Debug)]
pub struct CrossAttention {
    /// Query projection `[M, H·D]`.
    pub q: Linear,
    /// Key and value projection `[memory, 2·Hk·D]`: all keys, then all values.
    pub kv: Linear,
    /// Output projection `[H·D, M]`.
    pub out: Linear,
    /// Numbers of query heads and key-value heads.
    #[module(skip)]
    pub heads: Heads,
    /// Dropout probability of the attention weights.
    #[module(skip)]
    pub dropout: f32,
    /// Site of the dropout's random stream.
    #[module(skip)]
    pub site: u64,
}

impl CrossAttentionConfig {
    /// Creates a configuration with as many key-value heads as query heads, a memory of the model
    /// width, and biases.
    ///
    /// # Panics
    /// If `width` is not a multiple of `heads`.
    pub fn new(width: usize, heads: usize) -> CrossAttentionConfig {
        assert!(
            heads > 0 && width.is_multiple_of(heads),
            "cross-attention: a width of {width} is no multiple of {heads} heads"
        );
        CrossAttentionConfig {
            width,
            memory: width,
            heads: Heads { queries: heads, keys: heads },
            head_width: width / heads,
            bias: true,
            dropout: 0.0,
            weights: WeightInit::Uniform,
        }
    }

    /// Initialises the layer.
    pub fn init(&self, init: &mut Init) -> CrossAttention {
        let CrossAttentionConfig { width, memory, heads, head_width, bias, dropout, weights } =
            *self;
        let linear =
            |inputs, outputs| LinearConfig { bias, weights, ..LinearConfig::new(inputs, outputs) };
        CrossAttention {
            q: linear(width, heads.queries * head_width).init(init),
            kv: linear(memory, 2 * heads.keys * head_width).init(init),
            out: linear(heads.queries * head_width, width).init(init),
            heads,
            dropout,
            site: init.site(),
        }
    }
}

impl CrossAttention {
    /// Projects the memory (the encoder's output) to keys and values, once for all decoding steps.
    ///
    /// # Shapes
    /// `[B, S, memory]` → `[B, S, 2·Hk·D]`
    pub fn remember(&self, memory: Tensor<3>) -> Tensor<3> {
        self.kv.forward(memory)
    }

    /// Applies the layer; `remembered` is the output of [`CrossAttention::remember`].
    ///
    /// # Shapes
    /// `x: [B, T, M]`, `remembered: [B, S, 2·Hk·D]` → `[B, T, M]`
    ///
    /// # Panics
    /// With a cache or rotary embeddings: the keys are projected once for all steps, and queries
    /// and keys have no common positions.
    pub fn forward(&self, x: Tensor<3>, remembered: Tensor<3>, call: Call) -> Tensor<3> {
        let of_itself = call.cache.is_some() || call.rotary.is_some();
        assert!(!of_itself, "cross-attention: takes no cache and no rotary positions");
        let (q, heads) = (self.q.forward(x), self.heads);
        let ([b, t, m], [_, s, _]) = (q.dims(), remembered.dims());
        let (h, d) = (heads.queries, m / heads.queries);
        let dims = Dims { b, h, hk: heads.keys, t, s, d, dk: d, e: d };
        let attention = call.attention(self.dropout, self.site, dims);
        let context = match call {
            Call { tap: None, intervention, .. } => {
                scaled(intervention, attention.attend_packed_kv(q, remembered, heads), h)
            }
            call => call.context(&attention, self.parts(q, remembered)),
        };
        self.out.forward(context)
    }

    /// Returns queries, keys and values split into heads.
    ///
    /// # Shapes
    /// `x: [B, T, M]`, `remembered: [B, S, 2·Hk·D]` → `[B, H, T, D]` and twice `[B, Hk, S, D]`
    pub fn split(&self, x: Tensor<3>, remembered: Tensor<3>) -> [Tensor<4>; 3] {
        self.parts(self.q.forward(x), remembered)
    }

    fn parts(&self, q: Tensor<3>, remembered: Tensor<3>) -> [Tensor<4>; 3] {
        let Heads { queries: h, keys: hk } = self.heads;
        let [b, s, wide] = remembered.dims();
        let half = wide / 2;
        let part =
            |from: usize| remembered.clone().slice([0..b, 0..s, from * half..(from + 1) * half]);
        [split(q, h), split(part(0), hk), split(part(1), hk)]
    }

    /// Merges the heads of a context and applies the output projection.
    ///
    /// # Shapes
    /// `[B, H, T, D]` → `[B, T, M]`
    pub fn merge(&self, context: Tensor<4>) -> Tensor<3> {
        self.out.forward(merge(context))
    }
}
