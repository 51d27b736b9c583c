//! Options of one call of an attention layer. All of them can be combined.

use super::{Dropout, Intervention, KvCache, Rotary, Tap};
use crate::attention::{Attention, Dims};
use crate::init::Mode;
use crate::ops::TokenPositions;
use burn::tensor::Tensor;

/// Options of one call of an attention layer.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::layers::{KvCache, Call, Rotary, SelfAttentionConfig, Tap};
/// use regard_attention::{Attention, Init, mask::causal};
///
/// let layer = SelfAttentionConfig::new(32, 4).init(&mut Init::new(0, &Device::flex()));
/// let x = Tensor::<3>::ones([2, 5, 32], &Device::flex());
/// let attention = Attention::dot().mask(causal());
/// let (rotary, mut cache, mut tap) = (Rotary::new(16, 8), KvCache::new(), Tap::new());
/// let call = Call::new(&attention).rotary(&rotary).cache(&mut cache).tap(&mut tap);
/// assert_eq!(layer.forward(x, call).dims(), [2, 5, 32]);
/// assert_eq!(tap.weights().unwrap().dims(), [2, 4, 5, 5]);
/// ```
#[derive(Debug)]
pub struct Call<'a> {
    pub(super) attention: &'a Attention,
    pub(super) mode: Mode,
    pub(super) rotary: Option<&'a Rotary>,
    pub(super) positions: Option<&'a TokenPositions>,
    pub(super) cache: Option<&'a mut KvCache>,
    pub(super) intervention: Option<&'a Intervention>,
    pub(super) tap: Option<&'a mut Tap>,
}

impl<'a> Call<'a> {
    /// Creates a call with this attention, in evaluation mode.
    pub fn new(attention: &'a Attention) -> Call<'a> {
        Call {
            attention,
            mode: Mode::Eval,
            rotary: None,
            positions: None,
            cache: None,
            intervention: None,
            tap: None,
        }
    }

    /// Sets the mode. In training, dropout is applied to the attention weights.
    pub fn mode(self, mode: Mode) -> Call<'a> {
        Call { mode, ..self }
    }

    /// Applies rotary position embeddings to queries and keys. Positions count from 0, or from the
    /// end of the cache, unless [`Call::positions`] gives them.
    pub fn rotary(self, rotary: impl Into<Option<&'a Rotary>>) -> Call<'a> {
        Call { rotary: rotary.into(), ..self }
    }

    /// Sets the positions of tokens for rotary embeddings, for instance when a row packs several
    /// sequences.
    pub fn positions(self, positions: impl Into<Option<&'a TokenPositions>>) -> Call<'a> {
        Call { positions: positions.into(), ..self }
    }

    /// Continues the sequence whose earlier keys and values are in the cache. By default queries
    /// are aligned with the last keys, so a causal mask works unchanged.
    pub fn cache(self, cache: impl Into<Option<&'a mut KvCache>>) -> Call<'a> {
        Call { cache: cache.into(), ..self }
    }

    /// Applies an intervention: scaled heads, a mask, a temperature or another normaliser.
    pub fn intervention(self, change: impl Into<Option<&'a Intervention>>) -> Call<'a> {
        Call { intervention: change.into(), ..self }
    }

    /// Records the attention weights in `tap`, and their gradient if the tap was created with
    /// [`Tap::with_gradient`].
    pub fn tap(self, tap: impl Into<Option<&'a mut Tap>>) -> Call<'a> {
        Call { tap: tap.into(), ..self }
    }

    /// Returns the context of heads that the caller has projected, for layers with custom
    /// projections. In training, `dropout` is applied to the attention weights.
    ///
    /// # Shapes
    /// `q: [B, H, T, D]`, `k: [B, Hk, S, D]`, `v: [B, Hk, S, E]` → `[B, T, H·E]`
    ///
    /// # Panics
    /// With a cache or rotary embeddings, which belong to the projections.
    pub fn attend(self, parts: [Tensor<4>; 3], dropout: &Dropout) -> Tensor<3> {
        let of_projections = self.cache.is_some() || self.rotary.is_some();
        assert!(!of_projections, "attend: takes no cache and no rotary positions");
        let attention = self.attention(dropout.p, dropout.site, dims(&parts));
        self.context(&attention, parts)
    }

    /// The attention with this layer's dropout and the call's intervention.
    pub(super) fn attention(&self, dropout: f32, site: u64, dims: Dims) -> Attention {
        let attention = dropped(self.attention, dropout, self.mode, site);
        match self.intervention {
            Some(change) => change.change(attention, &dims),
            None => attention,
        }
    }

    /// The context of all heads, merged.
    ///
    /// # Shapes
    /// `q: [B, H, T, D]`, `k: [B, Hk, S, D]`, `v: [B, Hk, S, E]` → `[B, T, H·E]`
    pub(super) fn context(self, attention: &Attention, [q, k, v]: [Tensor<4>; 3]) -> Tensor<3> {
        let heads = q.dims()[1];
        let out = match self.tap {
            None => attention.attend(q, k, v),
            Some(tap) => tap.attend(attention, [q, k, v]),
        };
        scaled(self.intervention, merge(out), heads)
    }
}

/// Sizes of queries, keys and values.
pub(super) fn dims([q, k, v]: &[Tensor<4>; 3]) -> Dims {
    let ([b, h, t, d], [_, hk, s, dk]) = (q.dims(), k.dims());
    Dims { b, h, hk, t, s, d, dk, e: v.dims()[3] }
}

/// Contexts of heads, scaled if there is an intervention.
pub(super) fn scaled(change: Option<&Intervention>, context: Tensor<3>, heads: usize) -> Tensor<3> {
    match change {
        Some(change) => change.scale(context, heads),
        None => context,
    }
}

/// The attention with dropout of its weights, in training.
pub(super) fn dropped(attention: &Attention, p: f32, mode: Mode, site: u64) -> Attention {
    match mode.stream(site) {
        Some(stream) if p > 0.0 => attention.clone().dropout(p, stream),
        _ => attention.clone(),
    }
}

/// Splits heads, without copying.
///
/// # Shapes
/// `[B, T, H·D]` → `[B, H, T, D]`
pub(super) fn split(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [b, t, m] = x.dims();
    x.reshape([b, t, heads, m / heads]).swap_dims(1, 2)
}

/// Merges heads.
///
/// # Shapes
/// `[B, H, T, D]` → `[B, T, H·D]`
pub(super) fn merge(x: Tensor<4>) -> Tensor<3> {
    let [b, h, t, d] = x.dims();
    x.swap_dims(1, 2).reshape([b, t, h * d])
}
