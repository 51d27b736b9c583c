//! Luong's translator (Luong et al. 2015, arXiv:1508.04025).
//!
//! The query is the decoder's new state; the score over the encoder's states is `dot`, `general` or
//! `concat`, globally or in a window around the position with the same index as the target token
//! (local-m) or around a predicted one (local-p), there weighted with a Gaussian. Context and state
//! make `h̃ = tanh(W_c [c; h])`, from which the token is predicted. With input feeding, `h̃` is
//! also part of the next step's input.

mod plan;

use crate::checkpoint::{Arrays, Binder};
use crate::cross_attention::{
    AttendOptions, Attended, ConfiguredAttention, CrossAttentionKind, QueryPositions,
};
use crate::network::{Definition, Description, InputKind};
use crate::recurrent::{
    Advanced, Body, EncoderDecoderConfig, PlannedStep, Read, Stepwise, Writing, describe,
};
use crate::seq2seq::Seq2Seq;
use crate::sizes;
use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData, activation};
use regard_attention::layers::{Linear, LinearConfig};
use regard_attention::mask::{around, lengths};
use regard_attention::ops::Activation;
use regard_attention::{Attention, Init};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `model_type` in `config.json`.
pub const MODEL_TYPE: &str = "luong";

/// Configuration of Luong's translator, as in `config.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Configuration shared by the recurrent translators.
    #[serde(flatten)]
    pub shape: EncoderDecoderConfig,
    /// Score function; default `general`.
    #[serde(default)]
    pub score: LuongScore,
    /// Global or local attention; default global.
    #[serde(default)]
    pub locality: Locality,
    /// Kind of attention over the encoder states, if `locality` is global.
    #[serde(default)]
    pub attention: CrossAttentionKind,
    /// Whether `h̃` of each step is part of the next step's input; default true.
    #[serde(default = "yes")]
    pub input_feeding: bool,
}

fn yes() -> bool {
    true
}

/// Score function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LuongScore {
    /// `hᵀ s`; needs an encoder as wide as the decoder.
    Dot,
    /// `hᵀ W s`
    #[default]
    General,
    /// `v·tanh(W [h; s])`
    Concat,
}

/// Positions that are attended to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Locality {
    /// Positions as `attention` defines.
    #[default]
    Global,
    /// Within `width` positions of the one with the same index as the target token.
    LocalM {
        /// `D` of the paper.
        width: usize,
    },
    /// Within `width` positions of `(S − 1)·σ(v·tanh(W h))`, with a Gaussian of standard deviation
    /// `width / 2`. (The paper has `S`, and counts positions from 1.)
    LocalP {
        /// `D` of the paper.
        width: usize,
    },
}

#[derive(Module, Debug)]
pub(crate) struct Luong {
    body: Body,
    /// `[1, H, W]`, for the general score.
    general: Option<Param<Tensor<3>>>,
    /// For the `concat` score: projections of query and keys, and `v`.
    query: Option<Linear>,
    key: Option<Linear>,
    v: Option<Param<Tensor<2>>>,
    /// Predict the centre, for local-p.
    centre: Option<Linear>,
    centre_v: Option<Linear>,
    looking: ConfiguredAttention,
    combine: Linear,
    #[module(skip)]
    config: Config,
}

impl Luong {
    pub fn new(config: &Config, init: &mut Init) -> Luong {
        let shape = &config.shape;
        let (h, memory) = (shape.hidden_size, shape.memory());
        let fed = if config.input_feeding { h } else { 0 };
        let plain = |i, o| LinearConfig { bias: false, ..LinearConfig::new(i, o) };
        let tanh = |i, o| LinearConfig { activation: Activation::Tanh, ..plain(i, o) };
        let concat = config.score == LuongScore::Concat;
        let predicted = matches!(config.locality, Locality::LocalP { .. });
        let bound = 1.0 / (h as f32).sqrt();
        Luong {
            body: Body::new(shape, fed, memory, init),
            general: (config.score == LuongScore::General)
                .then(|| init.uniform([1, h, memory], bound)),
            query: concat.then(|| plain(h, h).init(init)),
            key: concat.then(|| plain(memory, h).init(init)),
            v: concat.then(|| init.uniform([1, h], bound)),
            centre: predicted.then(|| tanh(h, h).init(init)),
            centre_v: predicted.then(|| plain(h, 1).init(init)),
            looking: config.attention.init(1, h, init),
            combine: tanh(memory + h, h).init(init),
            config: config.clone(),
        }
    }

    /// Checks a configuration before any tensor is allocated.
    pub fn check(config: &Config) -> Result<(), String> {
        config.shape.check()?;
        if config.score == LuongScore::Dot && config.shape.bidirectional {
            return Err("score: \"dot\" needs an encoder as wide as the decoder, so it cannot be \
                        bidirectional; take \"general\""
                .to_string());
        }
        if config.locality != Locality::Global && config.attention != CrossAttentionKind::Global {
            let got = &serde_json::json!(config.attention)["kind"];
            return Err(format!(
                "attention: got {got}, need \"global\" if locality is local-m or local-p, which \
                 set the window"
            ));
        }
        if config.locality == (Locality::LocalP { width: 0 }) {
            return Err(
                "locality: local-p needs a width of at least 1: its Gaussian has a standard \
                        deviation of width / 2"
                    .to_string(),
            );
        }
        match config.locality {
            Locality::LocalM { width: width @ 1.. } | Locality::LocalP { width } => {
                sizes::check(&[("locality: width", width)])
            }
            Locality::LocalM { width: 0 } | Locality::Global => Ok(()),
        }
    }

    fn score(&self) -> Attention {
        match (&self.general, &self.v) {
            (Some(w), _) => Attention::general(w.val()),
            (None, Some(v)) => Attention::additive(v.val()),
            (None, None) => Attention::dot().scale(1.0),
        }
    }

    /// Attends from `state: [B, T, H]`.
    fn look(&self, writing: &Writing, state: Tensor<3>, options: AttendOptions) -> Attended {
        let [b, t, _] = state.dims();
        let q = match &self.query {
            Some(query) => query.forward(state.clone()),
            None => state.clone(),
        };
        let [q, k, v] =
            [q, writing.keys.clone(), writing.values.clone()].map(|x| x.unsqueeze_dim(1));
        let place = QueryPositions {
            lengths: &writing.lengths,
            first: writing.number,
            one_number: !self.at_once() || writing.rows.beams() > 1,
        };
        let valid = lengths(&writing.lengths);
        let attention = match self.config.locality {
            Locality::Global => {
                return self.looking.attend(self.score(), [q, k, v], &place, options);
            }
            Locality::LocalM { width } => {
                let centres = place.numbers(t);
                self.score().mask(valid & around(&centres, width))
            }
            Locality::LocalP { width } => {
                let (Some(inner), Some(outer)) = (&self.centre, &self.centre_v) else {
                    panic!("luong: local-p has layers that predict the centre");
                };
                let share = activation::sigmoid(outer.forward(inner.forward(state)));
                let last = |n: &i64| (*n - 1).max(0) as f32;
                let last: Vec<f32> = writing.lengths.iter().map(last).collect();
                let last = Tensor::<3>::from_data(TensorData::new(last, [b, 1, 1]), &q.device());
                let centres: Tensor<2> = (share * last).reshape([b, t]);
                let here: Vec<f32> =
                    centres.clone().detach().into_data().try_to_vec().expect("single precision");
                let sigma = Tensor::from_floats([width as f32 / 2.0], &q.device());
                let near = self.score().mask(valid & around(&here, width));
                near.gaussian_bias(centres, sigma, true)
            }
        };
        let (context, weights) = match options.weights {
            false => (attention.attend(q, k, v), None),
            true => {
                let (context, weights) = attention.attend_with_weights(q, k, v);
                (context, Some(weights))
            }
        };
        Attended { context, weights, log_prob: None }
    }
}

impl Definition for Luong {
    const READS: InputKind = InputKind::Pairs;

    fn types() -> Vec<&'static str> {
        vec![MODEL_TYPE]
    }

    fn make(json: &Value, _weights: Option<&Arrays>, init: &mut Init) -> Result<Luong, String> {
        let config: Config = crate::parse(json)?;
        Luong::check(&config)?;
        Ok(Luong::new(&config, init))
    }

    fn config(&self) -> Value {
        crate::config_json(MODEL_TYPE, &self.config)
    }

    fn bind(&mut self, b: &mut Binder) {
        self.body.bind(b, |b| {
            if let Some(w) = &mut self.general {
                let [_, h, memory] = w.dims();
                b.shaped("general", &[h, memory], w);
            }
            let linears = [
                ("query", &mut self.query),
                ("key", &mut self.key),
                ("centre", &mut self.centre),
                ("centre_v", &mut self.centre_v),
            ];
            for (name, linear) in linears {
                if let Some(linear) = linear {
                    b.linear(name, linear);
                }
            }
            if let Some(v) = &mut self.v {
                b.tensor("v", v);
            }
            b.linear("combine", &mut self.combine);
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

impl Stepwise for Luong {
    fn look_in_words(&self) -> String {
        let score = match self.config.score {
            LuongScore::Dot => "dot product",
            LuongScore::General => "general score (a learned matrix)",
            LuongScore::Concat => "additive score",
        };
        let place = match self.config.locality {
            Locality::Global => self.config.attention.in_words(),
            Locality::LocalM { width } => {
                format!("within {width} positions of the target token's index")
            }
            Locality::LocalP { width } => {
                format!("within {width} positions of a predicted centre, with a Gaussian")
            }
        };
        format!("{score}; {place}")
    }

    fn body(&self) -> &Body {
        &self.body
    }

    fn at_once(&self) -> bool {
        !self.config.input_feeding
    }

    fn begin(&self, read: Read) -> Writing {
        let keys = match &self.key {
            Some(key) => key.forward(read.states.clone()),
            None => read.states.clone(),
        };
        let mut writing = Writing::new(read, keys);
        if self.config.input_feeding {
            let (r, h) = (writing.rows.len(), self.config.shape.hidden_size);
            writing.fed = Some(Tensor::zeros([r, 1, h], &writing.values.device()));
        }
        writing
    }

    fn advance(&self, writing: &mut Writing, words: Tensor<3>, options: AttendOptions) -> Advanced {
        let input = match &writing.fed {
            Some(fed) => Tensor::cat(vec![words, fed.clone()], 2),
            None => words,
        };
        let (state, hidden) =
            self.body.decoder.forward(input, Some(&writing.hidden), None, options.mode);
        let [r, t, h] = state.dims();
        let b = writing.lengths.len();
        // Beams of one sentence are queries of one attention; so are all steps taken at once.
        let looked = self.look(writing, state.clone().reshape([b, r / b * t, h]), options);
        let wide = looked.context.dims()[3];
        let context = looked.context.reshape([r, t, wide]);
        let said = self.combine.forward(Tensor::cat(vec![context.clone(), state], 2));
        writing.hidden = hidden;
        writing.number += t;
        if self.config.input_feeding {
            writing.fed = Some(said.clone());
        }
        let weights = looked.weights.map(|weights| {
            let s = weights.dims()[3];
            weights.reshape([r, t, s])
        });
        let log_prob = looked.log_prob.map(|log_prob| log_prob.reshape([r, t]));
        Advanced { state: said, context, weights, log_prob }
    }

    fn plan(&self) -> Option<Box<dyn PlannedStep>> {
        plan::Planned::new(self).map(|plan| Box::new(plan) as _)
    }
}
