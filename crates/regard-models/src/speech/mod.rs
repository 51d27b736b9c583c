//! A speech model: strided convolutions, layers of truncated self-attention, and a label for the
//! whole sound or a character for each frame (Graves et al. 2006; Zhang et al. 2020,
//! arXiv:2002.02562).
//!
//! A frame attends to a fixed number of frames before and after it, so time and memory are linear
//! in the length, there is no maximum length, and sound can be processed as a stream:
//! [`Speech::hear`], fed with pieces of any size, returns the rows of [`Speech::encode`].
//!
//! ```
//! use burn::tensor::Device;
//! use regard_attention::Mode;
//! use regard_models::zoo;
//! use regard_models::speech::{Sounds, Speech};
//! use serde_json::json;
//!
//! let config = json!({
//!     "model_type": "speech", "feature_size": 6, "num_labels": 3, "hidden_size": 16,
//!     "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 2,
//! });
//! let model = zoo::create::<Speech>(&config, 7, &Device::flex()).unwrap();
//! let mut sounds = Sounds::new(6);
//! sounds.push(&[0.5; 6 * 20]);
//! sounds.push(&[0.1; 6 * 31]);
//! assert_eq!(model.forward(&sounds, Mode::Eval).logits.dims(), [2, 3]);
//! ```

mod config;
mod layer;

pub use config::{Config, SpeechHead, SpeechPositions};

use crate::checkpoint::{Arrays, Binder};
use crate::network::{Definition, Description, InputKind};
use crate::text::activation;
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use regard_attention::layers::{
    Block, BlockStreamState, Call, Convolution, ConvolutionConfig, ConvolutionState, Dropout,
    Linear, LinearConfig, Norm, NormConfig, Pool, Pooling, PoolingConfig, PoolingState, Reach,
    Sequences, StreamPart,
};
use regard_attention::mask::segments;
use regard_attention::{Attention, Init, Mode};
use serde_json::Value;

/// `model_type` in `config.json`.
pub const MODEL_TYPE: &str = "speech";

/// A batch of sounds as rows of features (frames), concatenated without padding.
#[derive(Clone, Debug, PartialEq)]
pub struct Sounds {
    width: usize,
    rows: Vec<f32>,
    lengths: Vec<usize>,
}

impl Sounds {
    /// Creates an empty batch, whose frames have `width` features.
    pub fn new(width: usize) -> Sounds {
        Sounds { width, rows: vec![], lengths: vec![] }
    }

    /// Adds a sound, given by its frames in sequence.
    ///
    /// # Panics
    /// If it has no frames, or the number of values is not a multiple of the width.
    pub fn push(&mut self, rows: &[f32]) {
        let (n, width) = (rows.len(), self.width);
        assert!(n > 0 && n.is_multiple_of(width), "a sound of {n} values has no rows of {width}");
        self.rows.extend_from_slice(rows);
        self.lengths.push(n / width);
    }

    /// Number of sounds.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no sounds.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }
}

/// Prediction for a batch of sounds.
#[derive(Clone, Debug)]
pub struct SpeechLogits {
    /// Logits: `[B, labels]`, or with CTC `[N, characters]`, the frames of all sounds
    /// concatenated.
    pub logits: Tensor<2>,
    /// Output frames of each sound.
    pub lengths: Vec<usize>,
}

/// The speech model.
#[derive(Module, Debug)]
pub struct Speech {
    convolutions: Vec<Convolution>,
    front_norm: Norm,
    front_dropout: Dropout,
    layers: Vec<Block>,
    last_norm: Norm,
    /// For one label per sound; `None` with CTC.
    pooling: Option<Pooling>,
    head_dropout: Dropout,
    head: Linear,
    #[module(skip)]
    config: Config,
}

/// State of a stream: the past that convolutions and layers still need.
#[derive(Clone, Debug)]
pub struct SpeechStream {
    convolutions: Vec<ConvolutionState>,
    layers: Vec<BlockStreamState>,
}

impl Speech {
    fn new(config: &Config, init: &mut Init) -> Speech {
        let m = config.hidden_size;
        let activation = activation("hidden_act", &config.hidden_act).expect("it was checked");
        let labels = config.labels.count().expect("it was checked");
        let inputs = [config.feature_size].into_iter().chain(std::iter::repeat(m));
        let convolutions = inputs.zip(&config.conv_kernel).map(|(inputs, width)| {
            ConvolutionConfig { inputs, outputs: m, width: *width, activation }.init(init)
        });
        let convolutions = convolutions.collect();
        let pool = Pool::Attention { hidden: config.pooling_size };
        let one = config.head == SpeechHead::Labels;
        Speech {
            convolutions,
            front_norm: NormConfig::layer(m).init(init),
            front_dropout: Dropout::new(config.dropout, init),
            layers: (0..config.num_hidden_layers).map(|_| layer::block(config, init)).collect(),
            last_norm: NormConfig::layer(m).init(init),
            pooling: one.then(|| PoolingConfig { width: m, pool }.init(init)),
            head_dropout: Dropout::new(config.dropout, init),
            head: LinearConfig::new(m, labels).init(init),
            config: config.clone(),
        }
    }

    /// Configuration of the model.
    pub fn settings(&self) -> &Config {
        &self.config
    }

    /// Number of labels, or of characters with the blank.
    pub fn labels(&self) -> usize {
        self.head.weight.dims()[1]
    }

    fn tensor(&self, rows: &[f32]) -> Tensor<2> {
        let width = self.config.feature_size;
        assert!(
            rows.len().is_multiple_of(width),
            "speech: got {} values, need rows of {width}",
            rows.len()
        );
        let data = TensorData::new(rows.to_vec(), [rows.len() / width, width]);
        Tensor::from_data(data, &self.head.weight.device())
    }

    /// Encodes sounds: returns the last layer's states `[N, M]`, and the lengths of the sounds.
    ///
    /// # Panics
    /// If there are no sounds, or their frames do not have the model's width.
    pub fn encode(&self, sounds: &Sounds, mode: Mode) -> (Tensor<2>, Sequences) {
        assert_eq!(sounds.width, self.config.feature_size, "speech: rows of another width");
        assert!(!sounds.is_empty(), "speech: got no sounds");
        let (mut x, mut sequences) = (self.tensor(&sounds.rows), Sequences::new(&sounds.lengths));
        for (convolution, stride) in self.convolutions.iter().zip(&self.config.conv_stride) {
            (x, sequences) = convolution.forward_apart(x, &sequences, *stride);
        }
        let x = self.front_dropout.forward(self.front_norm.forward(x), mode);
        let mut mask = self.config.reach().mask();
        if sequences.len() > 1 {
            let each = sequences.lengths().iter().enumerate();
            let owners = each.flat_map(|(i, n)| std::iter::repeat_n(i as i64, *n));
            mask = mask & segments(&owners.collect::<Vec<_>>());
        }
        let attention = Attention::dot().mask(mask);
        let mut x: Tensor<3> = x.unsqueeze_dim(0);
        for layer in &self.layers {
            let attention = layer::placed(layer, attention.clone());
            x = layer.forward(x, Call::new(&attention).mode(mode));
        }
        (self.last_norm.forward(x.squeeze_dim::<2>(0)), sequences)
    }

    /// Computes the logits of sounds.
    ///
    /// # Panics
    /// As [`Speech::encode`].
    pub fn forward(&self, sounds: &Sounds, mode: Mode) -> SpeechLogits {
        let (x, sequences) = self.encode(sounds, mode);
        let lengths = sequences.lengths().to_vec();
        SpeechLogits { logits: self.judge(x, &sequences, mode), lengths }
    }

    fn judge(&self, x: Tensor<2>, sequences: &Sequences, mode: Mode) -> Tensor<2> {
        let x = match &self.pooling {
            Some(pooling) => pooling.forward(x, sequences),
            None => x,
        };
        self.head.forward(self.head_dropout.forward(x, mode))
    }

    /// Computes the logits of encoded frames: of one whole sound, or with CTC of any frames.
    ///
    /// # Shapes
    /// `encoded: [n, M]` → `[1, labels]` or `[n, characters]`
    pub fn say(&self, encoded: Tensor<2>) -> Tensor<2> {
        let sequences = Sequences::new(&[encoded.dims()[0]]);
        self.judge(encoded, &sequences, Mode::Eval)
    }

    /// Adds more encoded frames of one sound to a running pooling.
    ///
    /// # Panics
    /// If the model has no labels for whole sounds (CTC).
    pub fn pool(&self, encoded: Tensor<2>, pooled: &mut PoolingState) {
        self.pooling.as_ref().expect("a model with labels pools").update(encoded, pooled);
    }

    /// Computes the logits of the frames pooled so far, `[1, labels]`; `None` if there are none.
    pub fn say_pooled(&self, pooled: &PoolingState) -> Option<Tensor<2>> {
        Some(self.head.forward(pooled.vector(&self.head.weight.device())?))
    }

    /// Starts a stream.
    pub fn begin(&self) -> SpeechStream {
        SpeechStream {
            convolutions: vec![ConvolutionState::default(); self.convolutions.len()],
            layers: vec![BlockStreamState::default(); self.layers.len()],
        }
    }

    /// Processes more frames of a stream: returns the last layer's states that are complete, with
    /// `last` all remaining ones. The state does not grow with the length.
    ///
    /// # Shapes
    /// `rows: [n, features]` → `[n′, M]`; `None` if no state is complete
    pub fn hear(&self, rows: &[f32], hearing: &mut SpeechStream, last: bool) -> Option<Tensor<2>> {
        let mut x = (!rows.is_empty()).then(|| self.tensor(rows));
        let strides = self.convolutions.iter().zip(&self.config.conv_stride);
        for ((convolution, stride), past) in strides.zip(&mut hearing.convolutions) {
            x = convolution.forward_streamed(x, *stride, past, last);
        }
        let mut x: Option<Tensor<3>> = x.map(|x| self.front_norm.forward(x).unsqueeze_dim(0));
        let dot = Attention::dot();
        for (layer, past) in self.layers.iter().zip(&mut hearing.layers) {
            let stream = StreamPart { reach: self.config.reach(), past, last };
            x = layer.forward_streamed(x, Call::new(&layer::placed(layer, dot.clone())), stream);
        }
        x.map(|x| self.last_norm.forward(x.squeeze_dim::<2>(0)))
    }
}

impl Definition for Speech {
    const READS: InputKind = InputKind::Other;

    fn types() -> Vec<&'static str> {
        vec![MODEL_TYPE]
    }

    fn task(_config: &Value) -> Result<&'static str, String> {
        Ok("recognize")
    }

    fn make(json: &Value, _weights: Option<&Arrays>, init: &mut Init) -> Result<Speech, String> {
        let config: Config = crate::parse(json)?;
        config.check()?;
        Ok(Speech::new(&config, init))
    }

    fn bind(&mut self, b: &mut Binder) {
        b.convolutions("convolutions", &mut self.convolutions);
        b.norm("front_norm", &mut self.front_norm);
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("layers.{i}"), |b| layer::bind(b, layer));
        }
        b.norm("last_norm", &mut self.last_norm);
        if let Some(pooling) = &mut self.pooling {
            b.pooling("pooling", pooling);
        }
        b.linear("head", &mut self.head);
    }

    fn config(&self) -> Value {
        crate::config_json(MODEL_TYPE, &self.config)
    }

    fn describe(&self) -> Description {
        let (reads, attention) = (self.reads(), self.attention());
        Description { reads, attention, ..Description::default() }
    }
}

impl Speech {
    fn reads(&self) -> String {
        format!("sounds of any length, as frames of {} features", self.config.feature_size)
    }

    fn attention(&self) -> Vec<String> {
        let Reach { left, right } = self.config.reach();
        let heads = self.config.num_attention_heads;
        let each = self.config.hidden_size / heads;
        let words =
            format!("{heads} heads of {each}, dot product, {left} frames before and {right} after");
        vec![words; self.config.num_hidden_layers]
    }
}
