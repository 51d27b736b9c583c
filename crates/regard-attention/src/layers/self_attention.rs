//! Multi-head self-attention.

use super::call::{scaled, split};
use super::{Call, Linear, LinearConfig, Norm, NormConfig};
use crate::attention::{Dims, Heads};
use crate::init::{Init, WeightInit};
use crate::ops::TokenPositions;
use burn::module::Module;
use burn::tensor::Tensor;

/// Configuration of [`SelfAttention`].
#[derive(Clone, Debug)]
pub struct SelfAttentionConfig {
    /// `M`, the model width.
    pub width: usize,
    /// `H` query heads and `Hk` key-value heads: `Hk = H` is multi-head, `1 < Hk < H`
    /// grouped-query, `Hk = 1` multi-query attention.
    pub heads: Heads,
    /// `D`, the width of a head.
    pub head_width: usize,
    /// Whether the projections have biases. Default true.
    pub bias: bool,
    /// Norm of each head's queries and keys, before rotary positions (Dehghani et al. 2023). Default
    /// `None`.
    pub head_norm: Option<NormConfig>,
    /// Dropout probability of the attention weights. Default 0.
    pub dropout: f32,
    /// Initialisation of the projections.
    pub weights: WeightInit,
}

/// Multi-head self-attention with input and output projections.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::{Call, SelfAttentionConfig};
/// use regard_attention::{Attention, Init, mask::causal};
///
/// let layer = SelfAttentionConfig::new(32, 4).init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<3>::ones([2, 5, 32], &Device::flex());
/// let y = layer.forward(x, Call::new(&Attention::dot().mask(causal())));
/// assert_eq!(y.dims(), [2, 5, 32]);
/// ```
#[derive(Module, Debug)]
pub struct SelfAttention {
    /// Packed projection `[M, (H + 2·Hk)·D]`: all queries, then all keys, then all values.
    pub qkv: Linear,
    /// Output projection `[H·D, M]`.
    pub out: Linear,
    /// Norms of each head's queries and keys.
    pub head_norms: Option<[Norm; 2]>,
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

impl SelfAttentionConfig {
    /// Creates a configuration with as many key-value heads as query heads, biases and no dropout.
    ///
    /// # Panics
    /// If `width` is not a multiple of `heads`.
    pub fn new(width: usize, heads: usize) -> SelfAttentionConfig {
        assert!(
            heads > 0 && width.is_multiple_of(heads),
            "self-attention: a width of {width} is no multiple of {heads} heads"
        );
        SelfAttentionConfig {
            width,
            heads: Heads { queries: heads, keys: heads },
            head_width: width / heads,
            bias: true,
            head_norm: None,
            dropout: 0.0,
            weights: WeightInit::Uniform,
        }
    }

    /// Initialises the layer.
    pub fn init(&self, init: &mut Init) -> SelfAttention {
        let SelfAttentionConfig { width, heads, head_width, bias, dropout, weights, .. } = *self;
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
            head_norms: self.head_norm.as_ref().map(|norm| [norm.init(init), norm.init(init)]),
            heads,
            dropout,
            site: init.site(),
        }
    }
}

impl SelfAttention {
    /// Applies the layer.
    ///
    /// # Shapes
    /// `x: [B, T, M]` → the same
    pub fn forward(&self, x: Tensor<3>, call: Call) -> Tensor<3> {
        let first = call.cache.as_ref().map_or(0, |cache| cache.len());
        let qkv = self.project(x, &call, first);
        let ([b, t, wide], Heads { queries: h, keys: hk }) = (qkv.dims(), self.heads);
        let d = wide / (h + 2 * hk);
        let dims = Dims { b, h, hk, t, s: first + t, d, dk: d, e: d };
        let attention = call.attention(self.dropout, self.site, dims);
        let context = match call {
            Call { cache: None, tap: None, intervention, .. } => {
                scaled(intervention, attention.attend_packed(qkv, self.heads), h)
            }
            mut call => {
                let [q, k, v] = self.split(qkv);
                let [k, v] = match call.cache.take() {
                    Some(cache) => cache.append(k, v),
                    None => [k, v],
                };
                call.context(&attention, [q, k, v])
            }
        };
        self.out.forward(context)
    }

    /// Projects rows to queries, keys and values. Rotary positions begin at `first`, unless the
    /// call gives them.
    ///
    /// # Shapes
    /// `x: [B, T, M]` → `[B, T, (H + 2·Hk)·D]`
    pub(super) fn project(&self, x: Tensor<3>, call: &Call, first: usize) -> Tensor<3> {
        let qkv = self.normalized(self.qkv.forward(x));
        let Some(rotary) = call.rotary else { return qkv };
        let turned = self.heads.queries + self.heads.keys;
        match call.positions {
            Some(positions) => rotary.forward(qkv, turned, positions),
            None => rotary.forward(qkv, turned, &TokenPositions::From(vec![first])),
        }
    }

    /// Widths of all queries, all keys and all values.
    pub fn widths(&self) -> [usize; 3] {
        let Heads { queries: h, keys: hk } = self.heads;
        let d = self.qkv.weight.dims()[1] / (h + 2 * hk);
        [h * d, hk * d, hk * d]
    }

    /// Normalises each head's queries and keys, if the layer has norms for them.
    ///
    /// # Shapes
    /// `[B, T, (H + 2·Hk)·D]` → the same
    fn normalized(&self, qkv: Tensor<3>) -> Tensor<3> {
        let Some([q_norm, k_norm]) = &self.head_norms else { return qkv };
        let ([b, t, _], [q, k, v]) = (qkv.dims(), self.widths());
        let part = |from: usize, wide: usize| qkv.clone().slice([0..b, 0..t, from..from + wide]);
        let each = |from: usize, wide: usize, norm: &Norm| {
            let d = norm.gamma.dims()[0];
            let heads: Tensor<4> = part(from, wide).reshape([b, t, wide / d, d]);
            norm.forward(heads).reshape([b, t, wide])
        };
        Tensor::cat(vec![each(0, q, q_norm), each(q, k, k_norm), part(q + k, v)], 2)
    }

    /// Splits `[B, T, (H + 2·Hk)·D]` into `[B, H, T, D]` and twice `[B, Hk, T, D]`, without
    /// copying.
    pub(super) fn split(&self, qkv: Tensor<3>) -> [Tensor<4>; 3] {
        let Heads { queries: h, keys: hk } = self.heads;
        let [b, t, m] = qkv.dims();
        let d = m / (h + 2 * hk);
        [(0, h), (h, hk), (h + hk, hk)].map(|(from, heads)| {
            split(qkv.clone().slice([0..b, 0..t, from * d..(from + heads) * d]), heads)
        })
    }
}
