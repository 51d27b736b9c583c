//! Additive attention with its projections: `v·tanh(W_q q + W_k k)` (Bahdanau et al. 2015).

use super::{Linear, LinearConfig};
use crate::attention::{Attention, mask::Mask};
use crate::init::{Init, Mode};
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// Configuration of [`AdditiveAttention`].
#[derive(Clone, Debug)]
pub struct AdditiveAttentionConfig {
    /// `Q`, the width of a query.
    pub query: usize,
    /// `K`, the width of a key.
    pub key: usize,
    /// `A`, the width that queries and keys are projected to.
    pub hidden: usize,
    /// Dropout probability of the attention weights.
    pub dropout: f32,
}

/// Single-head additive attention with projections of queries and keys.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use regard_attention::{Init, Mode, layers::AdditiveAttentionConfig, mask::lengths};
///
/// let device = Device::flex();
/// let config = AdditiveAttentionConfig { query: 6, key: 4, hidden: 8, dropout: 0.0 };
/// let layer = config.init(&mut Init::new(0, &device));
/// let (q, k) = (Tensor::<3>::ones([2, 1, 6], &device), Tensor::<3>::ones([2, 5, 4], &device));
/// let keys = layer.keys(k.clone());
/// let y = layer.forward(q, keys, k, lengths(&[5, 3]), Mode::Eval);
/// assert_eq!(y.dims(), [2, 1, 4]);
/// ```
#[derive(Module, Debug)]
pub struct AdditiveAttention {
    /// `W_q`, `[Q, A]`.
    pub query: Linear,
    /// `W_k`, `[K, A]`.
    pub key: Linear,
    /// `v`, `[1, A]`.
    pub v: Param<Tensor<2>>,
    /// Dropout probability of the attention weights.
    #[module(skip)]
    pub dropout: f32,
    /// Site of the dropout's random stream.
    #[module(skip)]
    pub site: u64,
}

impl AdditiveAttentionConfig {
    /// Initialises the layer.
    pub fn init(&self, init: &mut Init) -> AdditiveAttention {
        let AdditiveAttentionConfig { query, key, hidden, dropout } = *self;
        let linear = |inputs| LinearConfig { bias: false, ..LinearConfig::new(inputs, hidden) };
        AdditiveAttention {
            query: linear(query).init(init),
            key: linear(key).init(init),
            v: init.uniform([1, hidden], 1.0 / (hidden as f32).sqrt()),
            dropout,
            site: init.site(),
        }
    }
}

impl AdditiveAttention {
    /// Projects keys. A decoder does this once for all of its steps.
    ///
    /// # Shapes
    /// `[B, S, K]` → `[B, S, A]`
    pub fn keys(&self, keys: Tensor<3>) -> Tensor<3> {
        self.key.forward(keys)
    }

    fn attention(&self, mask: Mask, mode: Mode) -> Attention {
        let attention = Attention::additive(self.v.val()).mask(mask);
        super::call::dropped(&attention, self.dropout, mode, self.site)
    }

    /// Returns the context, the weighted mean of the values.
    ///
    /// # Shapes
    /// `queries: [B, T, Q]`, projected keys `[B, S, A]`, `values: [B, S, E]` → `[B, T, E]`
    pub fn forward(
        &self,
        queries: Tensor<3>,
        keys: Tensor<3>,
        values: Tensor<3>,
        mask: Mask,
        mode: Mode,
    ) -> Tensor<3> {
        let [q, k, v] = [self.query.forward(queries), keys, values].map(|x| x.unsqueeze_dim(1));
        self.attention(mask, mode).attend(q, k, v).squeeze_dim(1)
    }

    /// Returns the context and the attention weights.
    ///
    /// # Shapes
    /// as [`AdditiveAttention::forward`] → `[B, T, E]`, `[B, T, S]`
    pub fn forward_with_weights(
        &self,
        queries: Tensor<3>,
        keys: Tensor<3>,
        values: Tensor<3>,
        mask: Mask,
        mode: Mode,
    ) -> (Tensor<3>, Tensor<3>) {
        let [q, k, v] = [self.query.forward(queries), keys, values].map(|x| x.unsqueeze_dim(1));
        let (out, weights) = self.attention(mask, mode).attend_with_weights(q, k, v);
        (out.squeeze_dim(1), weights.squeeze_dim(1))
    }
}
