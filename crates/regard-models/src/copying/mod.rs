//! The pointer-generator (See et al. 2017, arXiv:1704.04368): each output word is generated from
//! the vocabulary, or copied from the source text, whether the vocabulary has it or not.
//!
//! ```text
//! P(w) = p_gen · softmax(words)_w + (1 − p_gen) · Σ_{i: x_i = w} a_i
//! ```
//!
//! `a` are the decoder's attention weights over the source. A source word outside the vocabulary
//! gets an id after it while its text is processed (an extended vocabulary). With coverage, the
//! score is given the sum of all previous attention weights at each position, and attending to the
//! same position again is penalised.

mod batch;
mod config;
mod plan;
mod walk;

pub use batch::CopyBatch;
pub use config::Config;
pub use walk::{CopyDecoding, Mixed};

use crate::checkpoint::{Arrays, Binder};
use crate::network::{Definition, Description, InputKind};
use crate::recurrent::{Read, Reader, Readout, Widths};
use crate::seq2seq::Source;
use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation};
use regard_attention::layers::{
    AdditiveAttention, AdditiveAttentionConfig, Dropout, Linear, LinearConfig, Recurrent,
};
use regard_attention::mask::lengths;
use regard_attention::{Init, Mode, ops};
use serde_json::Value;

/// `model_type` in `config.json`.
pub const MODEL_TYPE: &str = "pointer-generator";

/// Lower bound of probabilities, so that logarithms are finite.
const LEAST: f32 = 1e-30;

/// The pointer-generator network.
#[derive(Module, Debug)]
pub struct PointerGenerator {
    /// Its embedding table is shared with the decoder.
    reader: Reader,
    dropout: Dropout,
    decoder: Recurrent,
    score: AdditiveAttention,
    /// `[1, A]`: added to the key of a position, times its coverage.
    covered: Option<Param<Tensor<2>>>,
    readout: Readout,
    /// Logit of `p_gen` from context, state and previous word.
    gate: Option<Linear>,
    #[module(skip)]
    config: Config,
}

/// Losses of a batch: means over the target words.
#[derive(Debug)]
pub struct Cost {
    /// `[1]`: negative log-likelihood of the target word.
    pub likelihood: Tensor<1>,
    /// `[1]`: coverage loss `Σ_i min(a_i, c_i)`; `None` without coverage.
    pub coverage: Option<Tensor<1>>,
}

/// Result of the attention.
struct Looked {
    /// `[B, T, W]`
    context: Tensor<3>,
    /// `[B, T, S]`
    weights: Tensor<3>,
    /// `[B, T, S]`: sum of the attention weights of all previous steps, with coverage.
    before: Option<Tensor<3>>,
}

/// Keys and values of the attention.
struct Memory<'a> {
    /// `[B, S, A]`
    keys: Tensor<3>,
    /// `[B, S, W]`
    values: Tensor<3>,
    /// `[B]`
    lengths: &'a [i64],
}

impl PointerGenerator {
    fn new(config: &Config, init: &mut Init) -> PointerGenerator {
        let shape = &config.shape;
        let (h, e, memory) = (shape.hidden_size, shape.embedding_size, shape.memory());
        let hidden = config.attention_size.unwrap_or(h);
        let score = AdditiveAttentionConfig { query: h, key: memory, hidden, dropout: 0.0 };
        PointerGenerator {
            reader: Reader::new(shape, init),
            dropout: Dropout::new(shape.dropout, init),
            decoder: shape.writer(e).init(init),
            score: score.init(init),
            covered: config.coverage.then(|| init.uniform([1, hidden], 0.1)),
            readout: Readout::new(shape, Widths { state: h, context: memory }, init),
            gate: config.copy.then(|| LinearConfig::new(memory + h + e, 1).init(init)),
            config: config.clone(),
        }
    }

    /// Configuration of the model.
    pub fn settings(&self) -> &Config {
        &self.config
    }

    fn read(&self, batch: &CopyBatch, mode: Mode) -> Read {
        let unknown = self.config.unk_token_id;
        let device = self.score.v.device();
        let ids = batch.known(self.config.shape.vocab_size, unknown, &device);
        self.reader.read(&Source { ids, lengths: batch.lengths() }, mode)
    }

    /// Attends with all states at once, or in sequence with coverage, where each step depends on
    /// the previous ones.
    ///
    /// # Shapes
    /// `states: [B, T, H]`; `before: [B, S]`, the coverage so far
    fn look(&self, states: Tensor<3>, memory: &Memory, before: Option<Tensor<2>>) -> Looked {
        let Memory { keys, values, lengths: valid } = memory;
        let Some(covered) = &self.covered else {
            let ask = (states, keys.clone(), values.clone());
            let (context, weights) =
                self.score.forward_with_weights(ask.0, ask.1, ask.2, lengths(valid), Mode::Eval);
            return Looked { context, weights, before: None };
        };
        let ([b, t, h], [_, s, _]) = (states.dims(), keys.dims());
        let mut sum = before.unwrap_or_else(|| Tensor::zeros([b, s], &states.device()));
        let (mut contexts, mut weights, mut sums) = (vec![], vec![], vec![]);
        for i in 0..t {
            let state = states.clone().slice([0..b, i..i + 1, 0..h]);
            let more = sum.clone().reshape([b, s, 1]) * covered.val().unsqueeze();
            let (context, weight) = self.score.forward_with_weights(
                state,
                keys.clone() + more,
                values.clone(),
                lengths(valid),
                Mode::Eval,
            );
            sums.push(sum.clone().reshape([b, 1, s]));
            sum = sum + weight.clone().reshape([b, s]);
            contexts.push(context);
            weights.push(weight);
        }
        let [context, weights, before] = [contexts, weights, sums].map(|each| Tensor::cat(each, 1));
        Looked { context, weights, before: Some(before) }
    }

    /// Probability `p_gen` of generating, not copying, `[B, T, 1]`; `None` if it cannot copy.
    fn share(&self, context: Tensor<3>, state: Tensor<3>, word: Tensor<3>) -> Option<Tensor<3>> {
        let gate = self.gate.as_ref()?;
        Some(activation::sigmoid(gate.forward(Tensor::cat(vec![context, state, word], 2))))
    }

    /// Computes the losses of target texts, each ending with the end token; ids from the
    /// vocabulary's size on are words of the row's source text that the vocabulary does not have.
    ///
    /// # Panics
    /// If there are not as many rows as texts.
    pub fn cost(&self, batch: &CopyBatch, wanted: &[Vec<u32>], mode: Mode) -> Cost {
        assert_eq!(batch.len(), wanted.len(), "a row of words for each text");
        let shape = &self.config.shape;
        let Read { states, start, lengths } = self.read(batch, mode);
        let device = states.device();
        let begin = shape.decoder_start_token_id;
        let told = batch::CopyTargets::new(wanted, shape.vocab_size, self.config.unk_token_id);
        let words = self.reader.words.forward(told.inputs(begin, shape.pad_token_id, &device));
        let words = self.dropout.forward(words, mode);
        let (state, _) = self.decoder.forward(words.clone(), Some(&start), None, mode);
        let keys = self.score.keys(states.clone());
        let memory = Memory { keys, values: states, lengths: &lengths };
        let Looked { context, weights, before } = self.look(state.clone(), &memory, None);
        let [b, t, _] = state.dims();
        let n = b * t;
        let said = [state.clone(), context.clone(), words.clone()];
        let logits = self.readout.forward(said, true, &self.reader.words, mode);
        let v = logits.dims()[2];
        let logs = ops::log_likelihoods(logits.reshape([n, v]), told.targets(&device));
        let counts = told.counts(&device);
        let count = counts.clone().sum().clamp_min(1.0);
        let logs = match self.share(context, state, words) {
            None => logs,
            Some(share) => {
                // P(w) = p_gen · softmax(words)_w + (1 − p_gen) · Σ_{i: x_i = w} a_i
                let share = share.reshape([n]);
                let here = batch.places(&told, &device);
                let copied = (weights.clone() * here).sum_dim(2).reshape([n]);
                let written = logs.exp() * told.known(&device) * share.clone();
                (written + copied * (share.neg() + 1.0)).clamp_min(LEAST).log()
            }
        };
        let coverage = before.map(|before| {
            let twice = weights.min_pair(before).sum_dim(2).reshape([n]);
            (twice * counts.clone()).sum() / count.clone()
        });
        Cost { likelihood: (logs * counts).sum().neg() / count, coverage }
    }

    /// Encodes texts and starts generating, one row for each.
    pub fn walk<'a>(&'a self, batch: &'a CopyBatch) -> CopyDecoding<'a> {
        CopyDecoding::new(self, batch)
    }
}

impl Definition for PointerGenerator {
    const READS: InputKind = InputKind::Other;

    fn types() -> Vec<&'static str> {
        vec![MODEL_TYPE]
    }

    fn task(_config: &Value) -> Result<&'static str, String> {
        Ok("summarize")
    }

    fn make(
        json: &Value,
        _weights: Option<&Arrays>,
        init: &mut Init,
    ) -> Result<PointerGenerator, String> {
        Ok(PointerGenerator::new(&Config::read(json)?, init))
    }

    fn bind(&mut self, b: &mut Binder) {
        b.at("encoder", |b| self.reader.bind(b));
        b.at("decoder", |b| {
            b.recurrent("rnn", &mut self.decoder);
            b.at("attention", |b| {
                b.linear("query", &mut self.score.query);
                b.linear("key", &mut self.score.key);
                b.tensor("v", &mut self.score.v);
                if let Some(covered) = &mut self.covered {
                    b.tensor("coverage", covered);
                }
            });
            self.readout.bind(b);
            if let Some(gate) = &mut self.gate {
                b.linear("gate", gate);
            }
        });
    }

    fn config(&self) -> Value {
        crate::config_json(MODEL_TYPE, &self.config)
    }

    fn describe(&self) -> Description {
        let (reads, attention) = (self.reads(), self.attention());
        Description { reads, attention, ..Description::default() }
    }
}

impl PointerGenerator {
    fn reads(&self) -> String {
        format!("texts; vocabulary of {}", self.config.shape.vocab_size)
    }

    fn attention(&self) -> Vec<String> {
        let told = |yes: bool, words: &'static str| if yes { words } else { "" };
        vec![format!(
            "additive, over the text{}{}",
            told(self.covered.is_some(), ", with coverage"),
            told(self.gate.is_some(), "; its weights copy words")
        )]
    }
}
