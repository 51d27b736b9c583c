//! Encoder, decoder, and their input embeddings.

use super::sinusoids::sinusoids;
use super::{Config, NormOrder, PositionEncoding};
use crate::checkpoint::Binder;
use crate::cross_attention::{
    AttendOptions, Attended, ConfiguredAttention, CrossAttentionKind, QueryPositions,
};
use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::layers::{
    self, Block, BlockConfig, Call, CrossAttention, CrossAttentionConfig, Dropout, Embedding,
    FeedForward, FeedForwardConfig, Norm, NormConfig, Residual, SelfAttention, SelfAttentionConfig,
};
use regard_attention::mask::{Mask, causal, expanded, global_tokens, lengths, window};
use regard_attention::{Attention, Init, Mode, WeightInit};

/// Token embeddings with positions.
#[derive(Module, Debug)]
pub(crate) struct Vectors {
    /// Learned positions, `[L, M]`.
    learned: Option<Param<Tensor<2>>>,
    dropout: Dropout,
    #[module(skip)]
    scale: f32,
}

impl Vectors {
    fn new(config: &Config, init: &mut Init) -> Vectors {
        let (m, length) = (config.d_model, config.max_position_embeddings);
        let learned = config.positions == PositionEncoding::Learned;
        let scale = if config.scale_embedding { (m as f32).sqrt() } else { 1.0 };
        Vectors {
            learned: learned.then(|| init.normal([length, m], 0.02)),
            dropout: Dropout::new(config.dropout, init),
            scale,
        }
    }

    fn bind(&mut self, b: &mut Binder) {
        if let Some(learned) = &mut self.learned {
            b.tensor("embed_positions.weight", learned);
        }
    }

    /// Embeds tokens.
    ///
    /// # Shapes
    /// `ids: [B, T]`, the first of them at position `first` → `[B, T, M]`
    pub fn forward(
        &self,
        words: &Embedding,
        ids: Tensor<2, Int>,
        first: usize,
        mode: Mode,
    ) -> Tensor<3> {
        let [_, t] = ids.dims();
        let x = words.forward(ids) * self.scale;
        let [_, _, m] = x.dims();
        let places = match &self.learned {
            Some(learned) => {
                let known = learned.dims()[0];
                assert!(first + t <= known, "positions: got {}, there are {known}", first + t);
                learned.val().slice([first..first + t, 0..m])
            }
            None => {
                let mut sines = vec![];
                sinusoids(first..first + t, m, &mut sines);
                Tensor::from_data(TensorData::new(sines, [t, m]), &x.device())
            }
        };
        self.dropout.forward(x + places.unsqueeze(), mode)
    }

    /// Scale of embeddings.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Learned positions; `None` for sinusoids.
    pub fn learned(&self) -> Option<&Param<Tensor<2>>> {
        self.learned.as_ref()
    }
}

/// The encoder's layers.
#[derive(Module, Debug)]
pub(crate) struct Encoder {
    pub vectors: Vectors,
    layers: Vec<Block>,
    last: Option<Norm>,
    #[module(skip)]
    look: CrossAttentionKind,
}

/// A decoder layer. It is not the common block: cross-attention is between its two sublayers, and
/// its kind is configurable, with its own parameters.
#[derive(Module, Debug)]
pub(crate) struct DecoderLayer {
    pub attention: SelfAttention,
    pub attention_norm: Norm,
    pub cross: CrossAttention,
    pub cross_norm: Norm,
    pub looking: ConfiguredAttention,
    pub forward: FeedForward,
    pub forward_norm: Norm,
    pub dropout: [Dropout; 3],
}

/// The decoder's layers.
#[derive(Module, Debug)]
pub(crate) struct Decoder {
    pub vectors: Vectors,
    pub layers: Vec<DecoderLayer>,
    pub last: Option<Norm>,
    #[module(skip)]
    pub norms: layers::NormPlacement,
    #[module(skip)]
    pub alignment: usize,
}

/// Arguments of [`Decoder::forward`].
pub(crate) struct Ask<'a> {
    /// `[B]`: source tokens that are not padding.
    pub lengths: &'a [i64],
    pub mode: Mode,
    /// Layer whose attention weights are requested.
    pub look: Option<usize>,
}

/// Cross-attention results besides the output.
#[derive(Default)]
pub(crate) struct Seen {
    /// `[B, T, S]`: attention weights, averaged over heads.
    pub weights: Option<Tensor<3>>,
    /// `[B, T]`: log-probabilities of sampled positions, summed over layers and heads.
    pub log_prob: Option<Tensor<2>>,
}

fn feed_forward(config: &Config, hidden: usize) -> FeedForwardConfig {
    let activation = config.activation().expect("the configuration was checked");
    let (dropout, weights) = (config.activation_dropout, WeightInit::Xavier);
    let width = config.d_model;
    FeedForwardConfig { hidden, activation, dropout, weights, ..FeedForwardConfig::new(width) }
}

fn self_attention(config: &Config, heads: usize) -> SelfAttentionConfig {
    let (dropout, weights) = (config.attention_dropout, WeightInit::Xavier);
    SelfAttentionConfig { dropout, weights, ..SelfAttentionConfig::new(config.d_model, heads) }
}

fn norm(config: &Config, init: &mut Init) -> Norm {
    NormConfig::layer(config.d_model).init(init)
}

fn last_norm(config: &Config, init: &mut Init) -> Option<Norm> {
    (config.norms == NormOrder::Pre).then(|| norm(config, init))
}

/// Position of the norms.
fn norms(config: &Config) -> layers::NormPlacement {
    match config.norms {
        NormOrder::Pre => layers::NormPlacement::Pre,
        NormOrder::Post => layers::NormPlacement::Post,
    }
}

impl Encoder {
    pub fn new(config: &Config, init: &mut Init) -> Encoder {
        let heads = config.encoder_attention_heads;
        // The order of initialisation does not depend on the position of norms.
        let block = BlockConfig {
            norms: layers::NormPlacement::Post,
            attention: self_attention(config, heads),
            forward: feed_forward(config, config.encoder_ffn_dim),
            dropout: [config.dropout; 2],
            ..BlockConfig::new(config.d_model, heads)
        };
        let layer = |init: &mut Init| Block { norms: norms(config), ..block.init(init) };
        Encoder {
            vectors: Vectors::new(config, init),
            layers: (0..config.encoder_layers).map(|_| layer(init)).collect(),
            last: last_norm(config, init),
            look: config.encoder_attention,
        }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        self.vectors.bind(b);
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("layers.{i}"), |b| {
                bind_self_attention(b, &mut layer.attention);
                b.optional_norm("self_attn_layer_norm", &mut layer.attention_norm);
                bind_feed_forward(b, &mut layer.forward, &mut layer.forward_norm);
            });
        }
        if let Some(last) = &mut self.last {
            b.norm("layer_norm", last);
        }
    }

    fn mask(&self, valid: &[i64], s: usize) -> Mask {
        let near = match self.look {
            CrossAttentionKind::Window { left, right } => window(left, right),
            CrossAttentionKind::Expanded { left, right, stride } => expanded(left, right, stride),
            CrossAttentionKind::GlobalTokens { count, left, right } => {
                let first: Vec<usize> = (0..count.min(s)).collect();
                window(left, right) | global_tokens(&first)
            }
            _ => return lengths(valid),
        };
        lengths(valid) & near
    }

    pub fn forward(&self, x: Tensor<3>, valid: &[i64], mode: Mode) -> Tensor<3> {
        let attention = Attention::dot().mask(self.mask(valid, x.dims()[1]));
        let first = &self.layers[0];
        let mut residual = Residual::new(first.norms, first.entry(), x);
        for (i, layer) in self.layers.iter().enumerate() {
            let next = self.layers.get(i + 1).map_or(self.last.as_ref(), Block::entry);
            layer.forward_residual(&mut residual, Call::new(&attention).mode(mode), next);
        }
        residual.input()
    }
}

impl Decoder {
    pub fn new(config: &Config, init: &mut Init) -> Decoder {
        let (m, heads) = (config.d_model, config.decoder_attention_heads);
        let (dropout, weights) = (config.attention_dropout, WeightInit::Xavier);
        let layer = |init: &mut Init| DecoderLayer {
            attention: self_attention(config, heads).init(init),
            attention_norm: norm(config, init),
            cross: CrossAttentionConfig { dropout, weights, ..CrossAttentionConfig::new(m, heads) }
                .init(init),
            cross_norm: norm(config, init),
            looking: config.attention.init(heads, m / heads, init),
            forward: feed_forward(config, config.decoder_ffn_dim).init(init),
            forward_norm: norm(config, init),
            dropout: [(); 3].map(|()| Dropout::new(config.dropout, init)),
        };
        Decoder {
            vectors: Vectors::new(config, init),
            layers: (0..config.decoder_layers).map(|_| layer(init)).collect(),
            last: last_norm(config, init),
            norms: norms(config),
            alignment: config.alignment_layer.unwrap_or(config.decoder_layers - 1),
        }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        self.vectors.bind(b);
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("layers.{i}"), |b| {
                bind_self_attention(b, &mut layer.attention);
                b.norm("self_attn_layer_norm", &mut layer.attention_norm);
                b.at("encoder_attn", |b| {
                    b.linear("q_proj", &mut layer.cross.q);
                    b.packed(&["k_proj", "v_proj"], &mut layer.cross.kv);
                    b.linear("out_proj", &mut layer.cross.out);
                    layer.looking.bind(b);
                });
                b.norm("encoder_attn_layer_norm", &mut layer.cross_norm);
                bind_feed_forward(b, &mut layer.forward, &mut layer.forward_norm);
            });
        }
        if let Some(last) = &mut self.last {
            b.norm("layer_norm", last);
        }
    }

    /// Residual stream before the first layer.
    pub fn residual(&self, x: Tensor<3>) -> Residual {
        Residual::new(self.norms, self.entry(0), x)
    }

    /// Norm before a layer's first sublayer, or after the last layer; `None` if post-norm.
    pub fn entry(&self, layer: usize) -> Option<&Norm> {
        let norm = self.layers.get(layer).map(|layer| &layer.attention_norm);
        norm.or(self.last.as_ref()).filter(|_| self.norms == layers::NormPlacement::Pre)
    }

    /// Norms that follow the residual sums of a layer.
    pub fn norms(&self, layer: usize) -> [Option<&Norm>; 3] {
        let DecoderLayer { attention_norm, cross_norm, forward_norm, .. } = &self.layers[layer];
        match self.norms {
            layers::NormPlacement::Pre => {
                [Some(cross_norm), Some(forward_norm), self.entry(layer + 1)]
            }
            layers::NormPlacement::Post => [attention_norm, cross_norm, forward_norm].map(Some),
        }
    }

    pub fn forward(&self, x: Tensor<3>, memory: Tensor<3>, ask: &Ask) -> (Tensor<3>, Seen) {
        let past = Attention::dot().mask(causal());
        let place = QueryPositions { lengths: ask.lengths, first: 0, one_number: false };
        let mut sum = self.residual(x);
        let mut seen = Seen::default();
        for (i, layer) in self.layers.iter().enumerate() {
            let norms = self.norms(i);
            let attended = layer.attention.forward(sum.input(), Call::new(&past).mode(ask.mode));
            sum.add(layer.dropout[0].forward(attended, ask.mode), norms[0]);
            let remembered = layer.cross.remember(memory.clone());
            let options = AttendOptions { mode: ask.mode, weights: ask.look == Some(i) };
            let out = layer.look(sum.input(), remembered, &place, options, &mut seen);
            sum.add(layer.dropout[1].forward(out, ask.mode), norms[1]);
            let fed = layer.forward.forward(sum.input(), ask.mode);
            sum.add(layer.dropout[2].forward(fed, ask.mode), norms[2]);
        }
        (sum.input(), seen)
    }
}

impl DecoderLayer {
    /// Attends to the encoder states.
    ///
    /// # Shapes
    /// `x: [B, T, M]`, `remembered: [B, S, 2·M]` → `[B, T, M]`
    pub fn look(
        &self,
        x: Tensor<3>,
        remembered: Tensor<3>,
        place: &QueryPositions,
        options: AttendOptions,
        seen: &mut Seen,
    ) -> Tensor<3> {
        let mode = options.mode;
        if self.looking.is_plain() && !options.weights {
            let attention = Attention::dot().mask(lengths(place.lengths));
            return self.cross.forward(x, remembered, Call::new(&attention).mode(mode));
        }
        let mut attention = Attention::dot();
        // Hard attention has one position: dropping it would be another estimator.
        if let (Some(noise), false) = (mode.stream(self.cross.site), self.looking.is_hard()) {
            attention = attention.dropout(self.cross.dropout, noise);
        }
        let parts = self.cross.split(x, remembered);
        let looked: Attended = self.looking.attend(attention, parts, place, options);
        if let Some(weights) = looked.weights {
            seen.weights = Some(weights.mean_dim(1).squeeze_dim(1));
        }
        if let Some(log_prob) = looked.log_prob {
            let all = log_prob.sum_dim(1).squeeze_dim(1);
            seen.log_prob = Some(match seen.log_prob.take() {
                Some(before) => before + all,
                None => all,
            });
        }
        self.cross.merge(looked.context)
    }
}

fn bind_self_attention(b: &mut Binder, attention: &mut SelfAttention) {
    b.at("self_attn", |b| {
        b.packed(&["q_proj", "k_proj", "v_proj"], &mut attention.qkv);
        b.linear("out_proj", &mut attention.out);
    });
}

fn bind_feed_forward(b: &mut Binder, forward: &mut FeedForward, norm: &mut Norm) {
    b.linear("fc1", &mut forward.up);
    b.linear("fc2", &mut forward.down);
    b.norm("final_layer_norm", norm);
}
