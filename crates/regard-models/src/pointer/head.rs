//! The pointer: its attention weights are the network's output.

use super::{Config, PointerScore};
use crate::checkpoint::Binder;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use regard_attention::layers::{Linear, LinearConfig};
use regard_attention::mask::Mask;
use regard_attention::{Attention, Init, WeightInit};

/// `softmax_j(score(q_i, k_j))` over the encoder states.
#[derive(Module, Debug)]
pub(super) struct Head {
    query: Linear,
    key: Linear,
    /// `[1, M]`, of the additive score.
    v: Option<Param<Tensor<2>>>,
}

impl Head {
    pub fn new(config: &Config, init: &mut Init) -> Head {
        let m = config.hidden_size;
        let linear =
            LinearConfig { bias: false, weights: WeightInit::Xavier, ..LinearConfig::new(m, m) };
        let additive = config.score == PointerScore::Additive;
        Head {
            query: linear.init(init),
            key: linear.init(init),
            v: additive.then(|| init.uniform([1, m], (6.0 / m as f32).sqrt())),
        }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        b.linear("query", &mut self.query);
        b.linear("key", &mut self.key);
        if let Some(v) = &mut self.v {
            b.tensor("v", v);
        }
    }

    /// Projects encoder states to keys, once for all steps.
    ///
    /// # Shapes
    /// `[B, S, M]` → `[B, S, M]`
    pub fn keys(&self, memory: Tensor<3>) -> Tensor<3> {
        self.key.forward(memory)
    }

    /// Computes the pointer's weights.
    ///
    /// # Shapes
    /// `x: [B, T, M]`, keys `[B, S, M]` → `[B, T, S]`
    pub fn forward(&self, x: Tensor<3>, keys: Tensor<3>, mask: Mask) -> Tensor<3> {
        let attention = match &self.v {
            Some(v) => Attention::additive(v.val()),
            None => Attention::dot(),
        };
        let [q, k] = [self.query.forward(x), keys].map(|x| x.unsqueeze_dim(1));
        attention.mask(mask).weights(q, k).squeeze_dim(1)
    }
}
