//! Bahdanau's translator (Bahdanau et al. 2015, arXiv:1409.0473).
//!
//! In every step the query is the decoder's last-layer state of the previous step; additive
//! attention runs over all encoder states, padding excluded, and the context is concatenated with
//! the token's embedding to form the decoder's input. Each decoder layer starts from the state of
//! the same encoder layer, or from a learned vector.

use crate::checkpoint::{Arrays, Binder};
use crate::cross_attention::{
    AttendOptions, ConfiguredAttention, CrossAttentionKind, QueryPositions,
};
use crate::network::{Definition, Description, InputKind};
use crate::recurrent::{
    Advanced, Beside, Body, EncoderDecoderConfig, PlannedAdditive, PlannedStep, Read, Step,
    Stepwise, Writing, describe,
};
use crate::seq2seq::Seq2Seq;
use crate::sizes;
use burn::module::Module;
use burn::tensor::Tensor;
use regard_attention::layers::{AdditiveAttention, AdditiveAttentionConfig};
use regard_attention::{Attention, Init};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `model_type` in `config.json`.
pub const MODEL_TYPE: &str = "bahdanau";

/// Configuration of Bahdanau's translator, as in `config.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Configuration shared by the recurrent translators.
    #[serde(flatten)]
    pub shape: EncoderDecoderConfig,
    /// Width of the additive score's hidden layer; by default `hidden_size`.
    pub attention_size: Option<usize>,
    /// Kind of attention over the encoder states; by default a softmax over all of them.
    #[serde(default)]
    pub attention: CrossAttentionKind,
}

#[derive(Module, Debug)]
pub(crate) struct Bahdanau {
    body: Body,
    score: AdditiveAttention,
    looking: ConfiguredAttention,
    #[module(skip)]
    config: Config,
}

impl Config {
    /// Checks sizes before any tensor is allocated.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.shape.check()?;
        let wide = ("attention_size", self.attention_size.unwrap_or(self.shape.hidden_size));
        sizes::check(&[wide])?;
        sizes::check_matrices(&[[wide, ("hidden_size", self.shape.memory())]])
    }
}

impl Bahdanau {
    pub fn new(config: &Config, init: &mut Init) -> Bahdanau {
        let shape = &config.shape;
        let (h, memory) = (shape.hidden_size, shape.memory());
        let hidden = config.attention_size.unwrap_or(h);
        let score = AdditiveAttentionConfig { query: h, key: memory, hidden, dropout: 0.0 };
        Bahdanau {
            body: Body::new(shape, memory, memory, init),
            score: score.init(init),
            looking: config.attention.init(1, hidden, init),
            config: config.clone(),
        }
    }
}

impl Definition for Bahdanau {
    const READS: InputKind = InputKind::Pairs;

    fn types() -> Vec<&'static str> {
        vec![MODEL_TYPE]
    }

    fn make(json: &Value, _weights: Option<&Arrays>, init: &mut Init) -> Result<Bahdanau, String> {
        let config: Config = crate::parse(json)?;
        config.check()?;
        Ok(Bahdanau::new(&config, init))
    }

    fn config(&self) -> Value {
        crate::config_json(MODEL_TYPE, &self.config)
    }

    fn bind(&mut self, b: &mut Binder) {
        self.body.bind(b, |b| {
            b.linear("query", &mut self.score.query);
            b.linear("key", &mut self.score.key);
            b.tensor("v", &mut self.score.v);
            self.looking.bind(b);
        });
    }

    fn describe(&self) -> Description {
        describe(self)
    }

    fn into_seq2seq(self: Box<Self>) -> Option<Box<dyn Seq2Seq>> {
        Some(self)
    }
}

impl Stepwise for Bahdanau {
    fn look_in_words(&self) -> String {
        format!("additive score; {}", self.config.attention.in_words())
    }

    fn body(&self) -> &Body {
        &self.body
    }

    fn at_once(&self) -> bool {
        false
    }

    fn begin(&self, read: Read) -> Writing {
        let keys = self.score.keys(read.states.clone());
        Writing::new(read, keys)
    }

    fn advance(&self, writing: &mut Writing, words: Tensor<3>, options: AttendOptions) -> Advanced {
        let [layers, r, h] = writing.hidden.h.dims();
        let (b, beams) = (writing.lengths.len(), writing.rows.beams());
        let asks = writing.hidden.h.clone().slice([layers - 1..layers, 0..r, 0..h]);
        let q = self.score.query.forward(asks.reshape([b, beams, h]));
        let qkv = [q, writing.keys.clone(), writing.values.clone()].map(|x| x.unsqueeze_dim(1));
        let place =
            QueryPositions { lengths: &writing.lengths, first: writing.number, one_number: true };
        let score = Attention::additive(self.score.v.val());
        let looked = self.looking.attend(score, qkv, &place, options);
        let [_, _, _, e] = looked.context.dims();
        let context = looked.context.reshape([r, 1, e]);
        let input = Tensor::cat(vec![words, context.clone()], 2);
        let (state, hidden) =
            self.body.decoder.forward(input, Some(&writing.hidden), None, options.mode);
        writing.hidden = hidden;
        writing.number += 1;
        let weights = looked.weights.map(|weights| {
            let s = weights.dims()[3];
            weights.reshape([r, 1, s])
        });
        let log_prob = looked.log_prob.map(|log_prob| log_prob.reshape([r, 1]));
        Advanced { state, context, weights, log_prob }
    }

    fn plan(&self) -> Option<Box<dyn PlannedStep>> {
        let plain = self.looking.is_plain();
        plain.then(|| Box::new(Planned(PlannedAdditive::new(&self.score, None))) as _)
    }
}

/// A step on slices.
struct Planned(PlannedAdditive);

impl PlannedStep for Planned {
    fn has_keys(&self) -> bool {
        true
    }

    fn advance(&mut self, step: &mut Step) {
        self.0.attend(step, &[], None);
        step.advance_cells(Beside::Context);
        step.state.copy_from(step.rows.last());
    }
}
