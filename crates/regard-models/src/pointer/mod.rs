//! Pointer networks (Vinyals et al. 2015, arXiv:1506.03134): the output is a sequence of positions
//! of the input.
//!
//! A set of points is encoded, and each step of a decoder returns a distribution over the points
//! and an end marker: the weights of an attention are the output. So one model serves sets of any
//! size.
//!
//! ```
//! use burn::tensor::Device;
//! use regard_attention::Mode;
//! use regard_models::zoo;
//! use regard_models::pointer::{PointerNet, Points};
//! use serde_json::json;
//!
//! let config = json!({ "model_type": "pointer-network", "hidden_size": 16,
//!     "num_attention_heads": 2, "intermediate_size": 32 });
//! let net = zoo::create::<PointerNet>(&config, 7, &Device::flex()).unwrap();
//! let mut points = Points::new(2);
//! points.push(&[0.1, 0.2, 0.9, 0.1, 0.5, 0.7]);
//! points.push(&[0.3, 0.4, 0.6, 0.6]);
//! // Two steps and the end; the marker and three points.
//! let weights = net.forward(&points, &[vec![0, 1], vec![1]], Mode::Eval);
//! assert_eq!(weights.dims(), [2, 3, 4]);
//! ```

mod config;
mod head;
mod points;
mod recurrent;
mod walk;

pub use config::{Config, EncoderKind, PointerScore, SelectionRule};
pub use points::{MARKER, Points};
pub use walk::PointerDecoding;

use crate::checkpoint::{Arrays, Binder};
use crate::network::{Definition, Description, InputKind};
use crate::transformer::stack::{Ask, Decoder, Encoder};
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use head::Head;
use recurrent::Lstm;
use regard_attention::layers::{LayerStates, Linear, LinearConfig};
use regard_attention::ops::{self, Activation};
use regard_attention::{Init, Mode, WeightInit};
use serde_json::Value;

/// `model_type` in `config.json`.
pub const MODEL_TYPE: &str = "pointer-network";

/// The pointer network.
#[derive(Module, Debug)]
pub struct PointerNet {
    /// From the features of a point to its vector, with `down`.
    up: Linear,
    down: Linear,
    /// `[1, M]`: start of an answer as an input, end of an answer as an output.
    marker: Param<Tensor<2>>,
    attention: Option<Layers>,
    lstm: Option<Lstm>,
    head: Head,
    #[module(skip)]
    config: Config,
}

/// Transformer encoder and decoder.
#[derive(Module, Debug)]
struct Layers {
    encoder: Encoder,
    decoder: Decoder,
}

/// Encoded points.
struct Read {
    /// `[B, S, M]`: the marker and the points.
    memory: Tensor<3>,
    /// `[B]`: rows that are not padding.
    lengths: Vec<i64>,
    /// Initial states of an LSTM decoder.
    states: Option<LayerStates>,
}

impl PointerNet {
    fn new(config: &Config, init: &mut Init) -> PointerNet {
        let (m, inner, weights) =
            (config.hidden_size, config.intermediate_size, WeightInit::Xavier);
        let activation = Activation::Gelu;
        let up =
            LinearConfig { activation, weights, ..LinearConfig::new(config.features(), inner) };
        let down = LinearConfig { weights, ..LinearConfig::new(inner, m) };
        let layers = |init: &mut Init| {
            let config = config.layers();
            Layers { encoder: Encoder::new(&config, init), decoder: Decoder::new(&config, init) }
        };
        PointerNet {
            up: up.init(init),
            down: down.init(init),
            marker: init.normal([1, m], 1.0),
            attention: (config.encoder == EncoderKind::Transformer).then(|| layers(init)),
            lstm: (config.encoder == EncoderKind::Lstm).then(|| Lstm::new(config, init)),
            head: Head::new(config, init),
            config: config.clone(),
        }
    }

    /// Configuration of the model.
    pub fn settings(&self) -> &Config {
        &self.config
    }

    fn read(&self, points: &Points, mode: Mode) -> Read {
        let (b, m, lengths) = (points.len(), self.config.hidden_size, points.lengths());
        let told = points.features(&self.config, &self.marker.device());
        let x = self.down.forward(self.up.forward(told));
        let marker = self.marker.val().reshape([1, 1, m]).expand([b, 1, m]);
        let x = Tensor::cat(vec![marker, x], 1);
        match (&self.attention, &self.lstm) {
            (Some(layers), _) => {
                Read { memory: layers.encoder.forward(x, &lengths, mode), lengths, states: None }
            }
            (_, lstm) => {
                let lstm = lstm.as_ref().expect("either a Transformer or an LSTM");
                let (memory, states) = lstm.read(x, &lengths, mode);
                Read { memory, lengths, states: Some(states) }
            }
        }
    }

    /// Returns the pointer's weights of all steps with teacher forcing. The step after the last of
    /// an answer should select the marker. Rows after that are meaningless.
    ///
    /// # Shapes
    /// `answers`: indices of points, from 0 → `[B, T, S]`, `T` the longest answer plus one, `S` the
    /// marker and the points of the largest set
    ///
    /// # Panics
    /// If there are not as many answers as sets, or an answer has an index that no point has.
    pub fn forward(&self, points: &Points, answers: &[Vec<u32>], mode: Mode) -> Tensor<3> {
        assert_eq!(points.len(), answers.len(), "an answer for each set of points");
        let (s, t) = (points.most() + 1, 1 + answers.iter().map(Vec::len).max().unwrap_or(0));
        for (answer, count) in answers.iter().zip(points.counts()) {
            let known = answer.iter().all(|at| (*at as usize) < *count);
            assert!(known, "an answer {answer:?} about {count} points, counted from 0");
        }
        let Read { memory, lengths, states } = self.read(points, mode);
        let ([b, _, m], device) = (memory.dims(), memory.device());
        let told = answers.iter().enumerate().flat_map(|(set, answer)| {
            let before = std::iter::once(MARKER).chain(answer.iter().map(|at| at + 1));
            before.chain(std::iter::repeat(MARKER)).take(t).map(move |at| (set, at))
        });
        let told = points::rows(told, s, [b, t], &device);
        let x = ops::embedding(memory.clone().reshape([b * s, m]), told, None);
        let x = match (&self.attention, &self.lstm, &states) {
            (_, Some(lstm), Some(states)) => lstm.point(x, states, mode).0,
            (layers, ..) => {
                let ask = Ask { lengths: &lengths, mode, look: None };
                let decoder = &layers.as_ref().expect("a Transformer or an LSTM").decoder;
                decoder.forward(x, memory.clone(), &ask).0
            }
        };
        let mask = points::taught_mask(points, answers, t, self.config.choice);
        self.head.forward(x, self.head.keys(memory), mask)
    }

    /// Encodes points and starts decoding, one row for each set.
    pub fn walk(&self, points: &Points) -> PointerDecoding<'_> {
        PointerDecoding::new(self, points)
    }
}

impl Definition for PointerNet {
    const READS: InputKind = InputKind::Other;

    fn types() -> Vec<&'static str> {
        vec![MODEL_TYPE]
    }

    fn task(_config: &Value) -> Result<&'static str, String> {
        Ok("point")
    }

    fn make(
        json: &Value,
        _weights: Option<&Arrays>,
        init: &mut Init,
    ) -> Result<PointerNet, String> {
        let config: Config = crate::parse(json)?;
        config.check()?;
        Ok(PointerNet::new(&config, init))
    }

    fn bind(&mut self, b: &mut Binder) {
        b.at("points", |b| {
            b.linear("up", &mut self.up);
            b.linear("down", &mut self.down);
        });
        b.tensor("marker", &mut self.marker);
        if let Some(Layers { encoder, decoder }) = &mut self.attention {
            b.at("encoder", |b| encoder.bind(b));
            b.at("decoder", |b| decoder.bind(b));
        }
        if let Some(lstm) = &mut self.lstm {
            b.at("lstm", |b| lstm.bind(b));
        }
        b.at("head", |b| self.head.bind(b));
    }

    fn config(&self) -> Value {
        crate::config_json(MODEL_TYPE, &self.config)
    }

    fn describe(&self) -> Description {
        let (reads, attention) = (self.reads(), self.attention());
        Description { reads, attention, ..Description::default() }
    }
}

impl PointerNet {
    fn reads(&self) -> String {
        let Config { input_size, problem, .. } = &self.config;
        format!("sets of points with {input_size} coordinates, for {problem}")
    }

    fn attention(&self) -> Vec<String> {
        let Config { encoder_layers, decoder_layers, num_attention_heads: heads, .. } = self.config;
        let each = self.config.hidden_size / heads;
        let mut parts = vec![];
        if self.attention.is_some() {
            let over = |what: &str| format!("{heads} heads of {each}, dot product, {what}");
            parts.extend(vec![over("every point sees all"); encoder_layers]);
            let step = [over("a step sees those before"), over("a step sees the points")];
            (0..decoder_layers).for_each(|_| parts.extend(step.clone()));
        }
        parts.push("the pointer: its weights over the points are the output".into());
        parts
    }
}
