//! One layer of an image model: norms stand before each part.

use super::Config;
use crate::checkpoint::Binder;
use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::layers::{
    Call, Dropout, FeedForward, FeedForwardConfig, Norm, NormConfig, SelfAttention,
    SelfAttentionConfig, Tap,
};
use regard_attention::ops::Activation;
use regard_attention::{Attention, Init, Mode, Weights};

#[derive(Module, Debug)]
pub(super) struct Layer {
    pub attention_norm: Norm,
    attention: SelfAttention,
    forward_norm: Norm,
    forward: FeedForward,
    dropout: [Dropout; 2],
}

impl Layer {
    pub fn new(config: &Config, activation: Activation, init: &mut Init) -> Layer {
        let weights = Weights::Normal(config.initializer_range);
        let attention = SelfAttentionConfig {
            dropout: config.attention_probs_dropout_prob,
            weights,
            ..SelfAttentionConfig::new(config.hidden_size, config.num_attention_heads)
        };
        let forward = FeedForwardConfig {
            hidden: config.intermediate_size,
            activation,
            weights,
            ..FeedForwardConfig::new(config.hidden_size)
        };
        let mut layer = Layer {
            attention_norm: norm(config).init(init),
            attention: attention.init(init),
            forward_norm: norm(config).init(init),
            forward: forward.init(init),
            dropout: [(); 2].map(|()| Dropout::new(config.hidden_dropout_prob, init)),
        };
        if !config.qkv_bias {
            layer.attention.qkv.bias = None;
        }
        layer
    }

    pub fn bind(&mut self, b: &mut Binder) {
        b.norm("layernorm_before", &mut self.attention_norm);
        let names = ["query", "key", "value"].map(|name| format!("attention.attention.{name}"));
        b.packed(&names.each_ref().map(String::as_str), &mut self.attention.qkv);
        b.linear("attention.output.dense", &mut self.attention.out);
        b.norm("layernorm_after", &mut self.forward_norm);
        b.linear("intermediate.dense", &mut self.forward.up);
        b.linear("output.dense", &mut self.forward.down);
    }

    /// From the stream and its norm to the stream and its norm, which is `next`: each sum is made
    /// together with the norm that comes after it. Keeps where the layer looked if somebody wants
    /// to know.
    pub fn read(
        &self,
        (x, y): (Tensor<3>, Tensor<3>),
        next: &Norm,
        mode: Mode,
        looks: Option<&mut Vec<Tensor<4>>>,
    ) -> (Tensor<3>, Tensor<3>) {
        let attention = Attention::dot();
        let looked = match looks {
            None => self.attention.forward(y, Call::new(&attention).mode(mode)),
            Some(looks) => {
                let mut tap = Tap::new();
                let y = self.attention.forward(y, Call::new(&attention).mode(mode).tap(&mut tap));
                looks.extend(tap.into_weights());
                y
            }
        };
        let (x, y) = self.forward_norm.forward_sum(self.dropout[0].forward(looked, mode), x);
        let thought = self.dropout[1].forward(self.forward.forward(y, mode), mode);
        next.forward_sum(thought, x)
    }
}

pub(super) fn norm(config: &Config) -> NormConfig {
    NormConfig { eps: config.layer_norm_eps, ..NormConfig::layer(config.hidden_size) }
}
