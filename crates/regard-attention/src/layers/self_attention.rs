//! Multi-head self-attention.

use super::{Cache, Linear, LinearConfig, Rotary};
use crate::attention::{Attention, Heads};
use crate::init::{Init, Mode, Weights};
use burn::module::Module;
use burn::tensor::Tensor;

/// Of a [`SelfAttention`] layer.
#[derive(Clone, Debug)]
pub struct SelfAttentionConfig {
    /// `M`
    pub width: usize,
    /// `H` query heads, and `Hk` heads of keys and values: fewer are grouped, one is multi-query.
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

/// Projects to queries, keys and values, attends in all heads and projects back.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Attention, Init, Mode, layers::SelfAttentionConfig, mask::causal};
///
/// let layer = SelfAttentionConfig::new(32, 4).init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<3>::ones([2, 5, 32], &Device::flex());
/// let y = layer.forward(x, &Attention::dot().mask(causal()), Mode::Eval);
/// assert_eq!(y.dims(), [2, 5, 32]);
/// ```
#[derive(Module, Debug)]
pub struct SelfAttention {
    /// `[M, (H + 2·Hk)·D]`: all queries, then all keys, then all values.
    pub qkv: Linear,
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

impl SelfAttentionConfig {
    /// As many key heads as query heads, with biases, nothing dropped.
    pub fn new(width: usize, heads: usize) -> SelfAttentionConfig {
        assert!(
            heads > 0 && width.is_multiple_of(heads),
            "self-attention: a width of {width} cannot be cut into {heads} heads"
        );
        SelfAttentionConfig {
            width,
            heads: Heads { queries: heads, keys: heads },
            head_width: width / heads,
            bias: true,
            dropout: 0.0,
            weights: Weights::Uniform,
        }
    }

    /// The layer with its first values.
    pub fn init(&self, init: &mut Init) -> SelfAttention {
        let SelfAttentionConfig { width, heads, head_width, bias, dropout, weights } = *self;
        let Heads { queries, keys } = heads;
        assert!(
            keys > 0 && queries.is_multiple_of(keys),
            "self-attention: got {keys} key heads, need a divisor of the {queries} query heads"
        );
        let linear =
            |inputs, outputs| LinearConfig { bias, weights, ..LinearConfig::new(inputs, outputs) };
        SelfAttention {
            qkv: linear(width, (queries + 2 * keys) * head_width).init(init),
            out: linear(queries * head_width, width).init(init),
            heads,
            dropout,
            site: init.site(),
        }
    }
}

impl SelfAttention {
    /// # Shapes
    /// `x: [B, T, M]` → the same
    pub fn forward(&self, x: Tensor<3>, attention: &Attention, mode: Mode) -> Tensor<3> {
        self.forward_rotated(x, attention, None, mode)
    }

    /// With rotary positions in queries and keys.
    ///
    /// # Shapes
    /// `x: [B, T, M]` → the same
    pub fn forward_rotated(
        &self,
        x: Tensor<3>,
        attention: &Attention,
        rotary: Option<&Rotary>,
        mode: Mode,
    ) -> Tensor<3> {
        let attention = dropped(attention, self.dropout, mode, self.site);
        let mut qkv = self.qkv.forward(x);
        if let Some(rotary) = rotary {
            qkv = rotary.forward(qkv, self.heads.queries + self.heads.keys, &[0]);
        }
        self.out.forward(attention.attend_packed(qkv, self.heads))
    }

    /// The next positions of a text of which the cache holds the beginning. By default queries
    /// stand at the last keys, so a causal mask means what it says.
    ///
    /// # Shapes
    /// `x: [B, new, M]` → the same
    pub fn forward_cached(
        &self,
        x: Tensor<3>,
        attention: &Attention,
        rotary: Option<&Rotary>,
        cache: &mut Cache,
    ) -> Tensor<3> {
        let mut qkv = self.qkv.forward(x);
        if let Some(rotary) = rotary {
            let turned = self.heads.queries + self.heads.keys;
            qkv = rotary.forward(qkv, turned, &[cache.len()]);
        }
        let [q, k, v] = self.split(qkv);
        let [k, v] = cache.append(k, v);
        self.merge(attention.attend(q, k, v))
    }

    /// The output and the weights of every head.
    ///
    /// # Shapes
    /// `x: [B, T, M]` → the same, and `[B, H, T, T]`
    pub fn forward_with_weights(
        &self,
        x: Tensor<3>,
        attention: &Attention,
        rotary: Option<&Rotary>,
    ) -> (Tensor<3>, Tensor<4>) {
        let mut qkv = self.qkv.forward(x);
        if let Some(rotary) = rotary {
            qkv = rotary.forward(qkv, self.heads.queries + self.heads.keys, &[0]);
        }
        let [q, k, v] = self.split(qkv);
        let (out, weights) = attention.attend_with_weights(q, k, v);
        (self.merge(out), weights)
    }

    /// `[B, T, (H + 2·Hk)·D]` → `[B, H, T, D]` and twice `[B, Hk, T, D]`, without copying.
    pub(super) fn split(&self, qkv: Tensor<3>) -> [Tensor<4>; 3] {
        let Heads { queries: h, keys: hk } = self.heads;
        let [b, t, m] = qkv.dims();
        let d = m / (h + 2 * hk);
        [(0, h), (h, hk), (h + hk, hk)].map(|(from, heads)| {
            let part = qkv.clone().slice([0..b, 0..t, from * d..(from + heads) * d]);
            part.reshape([b, t, heads, d]).swap_dims(1, 2)
        })
    }

    pub(super) fn merge(&self, out: Tensor<4>) -> Tensor<3> {
        let [b, h, t, d] = out.dims();
        self.out.forward(out.swap_dims(1, 2).reshape([b, t, h * d]))
    }
}

/// The attention with its weights dropped, in training.
pub(super) fn dropped(attention: &Attention, p: f32, mode: Mode, site: u64) -> Attention {
    match mode.stream(site) {
        Some(stream) if p > 0.0 => attention.clone().dropout(p, stream),
        _ => attention.clone(),
    }
}
