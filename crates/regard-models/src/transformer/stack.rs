//! The layers: those that read, those that write, and the vectors that go into them.

use super::{Config, Norms, Places};
use crate::checkpoint::Binder;
use crate::look::{Look, Looked, Looking, Place};
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::layers::{
    Call, CrossAttention, CrossAttentionConfig, Dropout, Embedding, FeedForward, FeedForwardConfig,
    Norm, NormConfig, SelfAttention, SelfAttentionConfig,
};
use regard_attention::mask::{Mask, causal, expanded, global_tokens, lengths, window};
use regard_attention::{Attention, Init, Mode, Weights};

/// Words and their positions as vectors.
#[derive(Module, Debug)]
pub(crate) struct Vectors {
    /// `[L, M]`
    learned: Option<Param<Tensor<2>>>,
    dropout: Dropout,
    #[module(skip)]
    scale: f32,
}

impl Vectors {
    fn new(config: &Config, init: &mut Init) -> Vectors {
        let (m, length) = (config.d_model, config.max_position_embeddings);
        let learned = config.positions == Places::Learned;
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
            None => sines(first..first + t, m, &x.device()),
        };
        self.dropout.forward(x + places.unsqueeze(), mode)
    }
}

/// All sines, then all cosines, as Marian has them: the paper's columns in another order.
fn sines(rows: std::ops::Range<usize>, width: usize, device: &Device) -> Tensor<2> {
    let (n, half) = (rows.len(), width.div_ceil(2));
    let number = |row: usize, column: usize| {
        let pair = if column < half { column } else { column - half };
        let angle = row as f64 / 10000f64.powf(2.0 * pair as f64 / width as f64);
        if column < half { angle.sin() as f32 } else { angle.cos() as f32 }
    };
    let values: Vec<f32> = rows.flat_map(|r| (0..width).map(move |c| number(r, c))).collect();
    Tensor::from_data(TensorData::new(values, [n, width]), device)
}

/// A layer that reads.
#[derive(Module, Debug)]
pub(crate) struct EncoderLayer {
    attention: SelfAttention,
    attention_norm: Norm,
    forward: FeedForward,
    forward_norm: Norm,
    dropout: [Dropout; 2],
}

/// The layers that read.
#[derive(Module, Debug)]
pub(crate) struct Encoder {
    pub vectors: Vectors,
    layers: Vec<EncoderLayer>,
    last: Option<Norm>,
    #[module(skip)]
    norms: Norms,
    #[module(skip)]
    look: Look,
}

/// A layer that writes.
#[derive(Module, Debug)]
pub(crate) struct DecoderLayer {
    pub attention: SelfAttention,
    pub attention_norm: Norm,
    pub cross: CrossAttention,
    pub cross_norm: Norm,
    pub looking: Looking,
    pub forward: FeedForward,
    pub forward_norm: Norm,
    pub dropout: [Dropout; 3],
}

/// The layers that write.
#[derive(Module, Debug)]
pub(crate) struct Decoder {
    pub vectors: Vectors,
    pub layers: Vec<DecoderLayer>,
    pub last: Option<Norm>,
    #[module(skip)]
    pub norms: Norms,
    #[module(skip)]
    pub alignment: usize,
}

/// What is asked of layers that write.
pub(crate) struct Ask<'a> {
    /// `[B]`: what of the memory is not padding.
    pub lengths: &'a [i64],
    pub mode: Mode,
    /// The layer whose weights are wanted.
    pub look: Option<usize>,
}

/// What was seen besides.
#[derive(Default)]
pub(crate) struct Seen {
    /// `[B, T, S]`: the mean over heads.
    pub weights: Option<Tensor<3>>,
    /// `[B, T]`: the sum over layers and heads.
    pub log_prob: Option<Tensor<2>>,
}

fn feed_forward(config: &Config, hidden: usize, init: &mut Init) -> FeedForward {
    let activation = config.activation().expect("the configuration was checked");
    let (dropout, weights) = (config.activation_dropout, Weights::Xavier);
    let width = config.d_model;
    FeedForwardConfig { hidden, activation, dropout, weights, ..FeedForwardConfig::new(width) }
        .init(init)
}

fn self_attention(config: &Config, heads: usize, init: &mut Init) -> SelfAttention {
    let (dropout, weights) = (config.attention_dropout, Weights::Xavier);
    SelfAttentionConfig { dropout, weights, ..SelfAttentionConfig::new(config.d_model, heads) }
        .init(init)
}

fn norm(config: &Config, init: &mut Init) -> Norm {
    NormConfig::layer(config.d_model).init(init)
}

fn last_norm(config: &Config, init: &mut Init) -> Option<Norm> {
    (config.norms == Norms::Pre).then(|| norm(config, init))
}

fn drops<const N: usize>(config: &Config, init: &mut Init) -> [Dropout; N] {
    std::array::from_fn(|_| Dropout::new(config.dropout, init))
}

impl Encoder {
    pub fn new(config: &Config, init: &mut Init) -> Encoder {
        let layer = |init: &mut Init| EncoderLayer {
            attention: self_attention(config, config.encoder_attention_heads, init),
            attention_norm: norm(config, init),
            forward: feed_forward(config, config.encoder_ffn_dim, init),
            forward_norm: norm(config, init),
            dropout: drops(config, init),
        };
        Encoder {
            vectors: Vectors::new(config, init),
            layers: (0..config.encoder_layers).map(|_| layer(init)).collect(),
            last: last_norm(config, init),
            norms: config.norms,
            look: config.encoder_attention,
        }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        self.vectors.bind(b);
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("layers.{i}"), |b| {
                bind_self_attention(b, &mut layer.attention);
                b.norm("self_attn_layer_norm", &mut layer.attention_norm);
                bind_feed_forward(b, &mut layer.forward, &mut layer.forward_norm);
            });
        }
        if let Some(last) = &mut self.last {
            b.norm("layer_norm", last);
        }
    }

    fn mask(&self, valid: &[i64], s: usize) -> Mask {
        let near = match self.look {
            Look::Window { left, right } => window(left, right),
            Look::Expanded { left, right, stride } => expanded(left, right, stride),
            Look::GlobalTokens { count, left, right } => {
                let first: Vec<usize> = (0..count.min(s)).collect();
                window(left, right) | global_tokens(&first)
            }
            _ => return lengths(valid),
        };
        lengths(valid) & near
    }

    pub fn forward(&self, x: Tensor<3>, valid: &[i64], mode: Mode) -> Tensor<3> {
        let attention = Attention::dot().mask(self.mask(valid, x.dims()[1]));
        let norms: Vec<&Norm> = self
            .layers
            .iter()
            .flat_map(|layer| [&layer.attention_norm, &layer.forward_norm])
            .chain(&self.last)
            .collect();
        let mut sum = Sum::new(self.norms, norms, x);
        for layer in &self.layers {
            let attended = layer.attention.forward(sum.input(), Call::new(&attention).mode(mode));
            sum.add(layer.dropout[0].forward(attended, mode));
            let fed = layer.forward.forward(sum.input(), mode);
            sum.add(layer.dropout[1].forward(fed, mode));
        }
        sum.input()
    }
}

impl Decoder {
    pub fn new(config: &Config, init: &mut Init) -> Decoder {
        let (m, heads) = (config.d_model, config.decoder_attention_heads);
        let (dropout, weights) = (config.attention_dropout, Weights::Xavier);
        let layer = |init: &mut Init| DecoderLayer {
            attention: self_attention(config, heads, init),
            attention_norm: norm(config, init),
            cross: CrossAttentionConfig { dropout, weights, ..CrossAttentionConfig::new(m, heads) }
                .init(init),
            cross_norm: norm(config, init),
            looking: config.attention.init(heads, m / heads, init),
            forward: feed_forward(config, config.decoder_ffn_dim, init),
            forward_norm: norm(config, init),
            dropout: drops(config, init),
        };
        Decoder {
            vectors: Vectors::new(config, init),
            layers: (0..config.decoder_layers).map(|_| layer(init)).collect(),
            last: last_norm(config, init),
            norms: config.norms,
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

    /// The norms in the order in which they come.
    pub fn all_norms(&self) -> Vec<&Norm> {
        self.layers
            .iter()
            .flat_map(|l| [&l.attention_norm, &l.cross_norm, &l.forward_norm])
            .chain(&self.last)
            .collect()
    }

    pub fn forward(&self, x: Tensor<3>, memory: Tensor<3>, ask: &Ask) -> (Tensor<3>, Seen) {
        let past = Attention::dot().mask(causal());
        let place = Place { lengths: ask.lengths, first: 0, one_number: false };
        let mut sum = Sum::new(self.norms, self.all_norms(), x);
        let mut seen = Seen::default();
        for (i, layer) in self.layers.iter().enumerate() {
            let attended = layer.attention.forward(sum.input(), Call::new(&past).mode(ask.mode));
            sum.add(layer.dropout[0].forward(attended, ask.mode));
            let remembered = layer.cross.remember(memory.clone());
            let look = (ask.mode, ask.look == Some(i));
            let out = layer.look(sum.input(), remembered, &place, look, &mut seen);
            sum.add(layer.dropout[1].forward(out, ask.mode));
            let fed = layer.forward.forward(sum.input(), ask.mode);
            sum.add(layer.dropout[2].forward(fed, ask.mode));
        }
        (sum.input(), seen)
    }
}

impl DecoderLayer {
    /// From what is being written to what was read.
    ///
    /// # Shapes
    /// `x: [B, T, M]`, `remembered: [B, S, 2·M]` → `[B, T, M]`
    pub fn look(
        &self,
        x: Tensor<3>,
        remembered: Tensor<3>,
        place: &Place,
        (mode, weights): (Mode, bool),
        seen: &mut Seen,
    ) -> Tensor<3> {
        if self.looking.is_plain() && !weights {
            let attention = Attention::dot().mask(lengths(place.lengths));
            return self.cross.forward(x, remembered, Call::new(&attention).mode(mode));
        }
        let mut attention = Attention::dot();
        // One place is there or not; dropping it would be another estimator.
        if let (Some(noise), false) = (mode.stream(self.cross.site), self.looking.is_hard()) {
            attention = attention.dropout(self.cross.dropout, noise);
        }
        let parts = self.cross.split(x, remembered);
        let looked: Looked = self.looking.attend(attention, parts, place, (mode, weights));
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

/// The sum that parts are added to, with its norms before or after each part.
pub(crate) struct Sum<'a> {
    norms: Vec<&'a Norm>,
    next: usize,
    kind: Norms,
    /// Before the next norm.
    sum: Tensor<3>,
    /// What the next part is given.
    input: Tensor<3>,
}

impl<'a> Sum<'a> {
    pub fn new(kind: Norms, norms: Vec<&'a Norm>, x: Tensor<3>) -> Sum<'a> {
        let (next, input) = match kind {
            Norms::Pre => (1, norms[0].forward(x.clone())),
            Norms::Post => (0, x.clone()),
        };
        Sum { norms, next, kind, sum: x, input }
    }

    /// What the next part is given; after the last part, the result.
    pub fn input(&self) -> Tensor<3> {
        self.input.clone()
    }

    /// Adds what a part said.
    pub fn add(&mut self, part: Tensor<3>) {
        let norm = self.norms[self.next];
        self.next += 1;
        let (sum, input) = match self.kind {
            Norms::Pre => norm.forward_sum(self.sum.clone(), part),
            Norms::Post => norm.forward_sum(self.input.clone(), part),
        };
        (self.sum, self.input) = (sum, input);
    }
}
