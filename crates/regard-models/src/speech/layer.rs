//! One layer of the encoder: truncated self-attention and a feed-forward part, norms before each.

use super::config::{Config, Places};
use crate::checkpoint::Binder;
use crate::text::activation;
use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::layers::{
    Call, Dropout, FeedForward, FeedForwardConfig, Norm, NormConfig, Reach, RelativeTable,
    SelfAttention, SelfAttentionConfig, Stream, StreamPast, alibi_slopes,
};
use regard_attention::{Attention, Init, Mode, Weights};

/// The layer.
#[derive(Module, Debug)]
pub(super) struct Layer {
    attention_norm: Norm,
    attention: SelfAttention,
    distances: Option<RelativeTable>,
    forward_norm: Norm,
    forward: FeedForward,
    /// Of what attention adds, and of what the feed-forward part adds.
    dropout: [Dropout; 2],
}

/// What a layer keeps of a sequence that is not over.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerPast {
    attention: StreamPast,
    /// Rows that wait for what attention adds to them.
    waiting: Option<Tensor<3>>,
}

impl Layer {
    pub fn new(config: &Config, init: &mut Init) -> Layer {
        let Config { hidden_size: m, num_attention_heads: heads, .. } = *config;
        let (weights, dropout) = (Weights::Xavier, config.attention_dropout);
        let relative = config.position_embedding_type == Places::Relative;
        let attention =
            SelfAttentionConfig { weights, dropout, ..SelfAttentionConfig::new(m, heads) };
        let forward = FeedForwardConfig {
            hidden: config.intermediate_size,
            activation: activation("hidden_act", &config.hidden_act).expect("it was checked"),
            dropout: config.dropout,
            weights,
            ..FeedForwardConfig::new(m)
        };
        Layer {
            attention_norm: NormConfig::layer(m).init(init),
            attention: attention.init(init),
            distances: relative.then(|| RelativeTable::new(heads, config.farthest(), init)),
            forward_norm: NormConfig::layer(m).init(init),
            forward: forward.init(init),
            dropout: [(); 2].map(|()| Dropout::new(config.dropout, init)),
        }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        b.norm("attention_norm", &mut self.attention_norm);
        let names = ["attention.query", "attention.key", "attention.value"];
        b.packed(&names, &mut self.attention.qkv);
        b.linear("attention.output", &mut self.attention.out);
        if let Some(distances) = &mut self.distances {
            b.tensor("attention.distances", &mut distances.table);
        }
        b.norm("forward_norm", &mut self.forward_norm);
        b.linear("up", &mut self.forward.up);
        b.linear("down", &mut self.forward.down);
    }

    /// An attention with what tells where others stand.
    fn placed(&self, attention: &Attention) -> Attention {
        match &self.distances {
            Some(distances) => distances.forward(attention.clone()),
            None => {
                let (heads, device) =
                    (self.attention.heads.queries, self.attention.out.weight.device());
                attention.clone().alibi(alibi_slopes(heads, &device))
            }
        }
    }

    /// # Shapes
    /// `x: [B, T, M]` → the same
    pub fn forward(&self, x: Tensor<3>, attention: &Attention, mode: Mode) -> Tensor<3> {
        let y = self.attention_norm.forward(x.clone());
        let seen = self.attention.forward(y, Call::new(&self.placed(attention)).mode(mode));
        self.after(seen, x, mode)
    }

    /// The rows that more rows complete.
    pub fn forward_streamed(
        &self,
        x: Option<Tensor<3>>,
        reach: Reach,
        past: &mut LayerPast,
        last: bool,
    ) -> Option<Tensor<3>> {
        let y = x.clone().map(|x| self.attention_norm.forward(x));
        let waiting: Vec<Tensor<3>> = past.waiting.take().into_iter().chain(x).collect();
        past.waiting = (!waiting.is_empty()).then(|| Tensor::cat(waiting, 1));
        let attention = self.placed(&Attention::dot());
        let stream = Stream { reach, past: &mut past.attention, last };
        let seen = self.attention.forward_streamed(y, Call::new(&attention), stream)?;
        let waiting = past.waiting.take().expect("as many wait as are asked about");
        let ([b, ready, m], [_, all, _]) = (seen.dims(), waiting.dims());
        past.waiting = (ready < all).then(|| waiting.clone().slice([0..b, ready..all, 0..m]));
        Some(self.after(seen, waiting.slice([0..b, 0..ready, 0..m]), Mode::Eval))
    }

    /// What comes after attention.
    fn after(&self, seen: Tensor<3>, x: Tensor<3>, mode: Mode) -> Tensor<3> {
        let [looked, added] = &self.dropout;
        let (x, y) = self.forward_norm.forward_sum(looked.forward(seen, mode), x);
        x + added.forward(self.forward.forward(y, mode), mode)
    }
}
