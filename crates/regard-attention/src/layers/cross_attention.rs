//! Multi-head attention from one sequence to another.

use super::call::{merge, scaled, split};
use super::{Call, Linear, LinearConfig};
use crate::attention::{Dims, Heads};
use crate::init::{Init, Weights};
use burn::module::Module;
use burn::tensor::Tensor;

/// Of a [`CrossAttention`] layer.
#[derive(Clone, Debug)]
pub struct CrossAttentionConfig {
    /// `M`
    pub width: usize,
    /// Width of what is attended to.
    pub memory: usize,
    /// `H` query heads, and `Hk` heads of keys and values.
    pub heads: Heads,
    /// `D`, the width of a head.
    pub head_width: usize,
    /// Whether the projections have biases.
    pub bias: bool,
    /// The share of the weights that is dropped in training.
    pub dropout: f32,
    /// How the projections begin.
    pub weights: Weights,
}

/// Queries from one sequence, keys and values from another.
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
    /// `[M, H·D]`
    pub q: Linear,
    /// `[memory, 2·Hk·D]`: all keys, then all values.
    pub kv: Linear,
    /// `[H·D, M]`
    pub out: Linear,
    /// How many of each.
    #[module(skip)]
    pub heads: Heads,
    /// The share of the weights that is dropped in training.
    #[module(skip)]
    pub dropout: f32,
    /// Where its randomness comes from.
    #[module(skip)]
    pub site: u64,
}

impl CrossAttentionConfig {
    /// As many key heads as query heads, a memory as wide as the model, with biases.
    pub fn new(width: usize, heads: usize) -> CrossAttentionConfig {
        assert!(
            heads > 0 && width.is_multiple_of(heads),
            "cross-attention: a width of {width} cannot be cut into {heads} heads"
        );
        CrossAttentionConfig {
            width,
            memory: width,
            heads: Heads { queries: heads, keys: heads },
            head_width: width / heads,
            bias: true,
            dropout: 0.0,
            weights: Weights::Uniform,
        }
    }

    /// The layer with its first values.
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
    /// Keys and values of what is attended to, which a decoder computes once for all its steps.
    ///
    /// # Shapes
    /// `[B, S, memory]` → `[B, S, 2·Hk·D]`
    pub fn remember(&self, memory: Tensor<3>) -> Tensor<3> {
        self.kv.forward(memory)
    }

    /// # Shapes
    /// `x: [B, T, M]`, remembered `[B, S, 2·Hk·D]` → `[B, T, M]`
    ///
    /// # Panics
    /// With a cache or rotary positions: keys are those of the memory, once for all steps, and
    /// their distance to queries is not one of positions.
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

    /// Queries, keys and values of each head.
    ///
    /// # Shapes
    /// `x: [B, T, M]`, remembered `[B, S, 2·Hk·D]` → `[B, H, T, D]` and twice `[B, Hk, S, D]`
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

    /// The output of a context of heads.
    ///
    /// # Shapes
    /// `[B, H, T, D]` → `[B, T, M]`
    pub fn merge(&self, context: Tensor<4>) -> Tensor<3> {
        self.out.forward(merge(context))
    }
}
