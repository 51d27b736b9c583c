//! Multi-head attention from one sequence to another.

use super::self_attention::dropped;
use super::{Linear, LinearConfig};
use crate::attention::{Attention, Heads};
use crate::init::{Init, Mode, Weights};
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
/// use regard_attention::{Attention, Init, Mode, layers::CrossAttentionConfig, mask::lengths};
///
/// let device = Device::flex();
/// let layer = CrossAttentionConfig::new(32, 4).init(&mut Init::new(0, &device));
/// let (x, memory) = (Tensor::ones([2, 5, 32], &device), Tensor::ones([2, 7, 32], &device));
/// let attention = Attention::dot().mask(lengths(&[7, 4]));
/// let y = layer.forward(x, layer.remember(memory), &attention, Mode::Eval);
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
    pub fn forward(
        &self,
        x: Tensor<3>,
        remembered: Tensor<3>,
        attention: &Attention,
        mode: Mode,
    ) -> Tensor<3> {
        let attention = dropped(attention, self.dropout, mode, self.site);
        let q = self.q.forward(x);
        self.out.forward(attention.attend_packed_kv(q, remembered, self.heads))
    }

    /// The output and the weights of every head.
    ///
    /// # Shapes
    /// as [`CrossAttention::forward`] → `[B, T, M]`, `[B, H, T, S]`
    pub fn forward_with_weights(
        &self,
        x: Tensor<3>,
        remembered: Tensor<3>,
        attention: &Attention,
    ) -> (Tensor<3>, Tensor<4>) {
        let Heads { queries: h, keys: hk } = self.heads;
        let q = self.q.forward(x);
        let ([b, t, m], [_, s, wide]) = (q.dims(), remembered.dims());
        let q = q.reshape([b, t, h, m / h]).swap_dims(1, 2);
        let split = |from: usize| {
            let half = wide / 2;
            let part = remembered.clone().slice([0..b, 0..s, from * half..(from + 1) * half]);
            part.reshape([b, s, hk, half / hk]).swap_dims(1, 2)
        };
        let (out, weights) = attention.attend_with_weights(q, split(0), split(1));
        (self.out.forward(out.swap_dims(1, 2).reshape([b, t, m])), weights)
    }
}
