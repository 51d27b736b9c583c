//! The Vision Transformer (Dosovitskiy et al. 2021, arXiv:2010.11929): images as sets of patches,
//! encoded by a pre-norm Transformer.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use regard_attention::Mode;
//! use regard_models::zoo;
//! use regard_models::vit::Vit;
//! use serde_json::json;
//!
//! let config = json!({
//!     "model_type": "vit", "image_size": 12, "patch_size": 4, "num_channels": 1,
//!     "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
//!     "intermediate_size": 32, "num_labels": 5,
//! });
//! let model = zoo::create::<Vit>(&config, 7, &Device::flex()).unwrap();
//! let pixels = Tensor::<4>::zeros([3, 1, 12, 12], &Device::flex());
//! assert_eq!(model.forward(pixels, Mode::Eval).logits.unwrap().dims(), [3, 5]);
//! ```

mod config;
mod layer;
mod tokens;

pub use config::{Config, Halving, PatchPositions, Sides, VitPooling};

use crate::checkpoint::{Arrays, Binder};
use crate::network::{Definition, Description, InputKind};
use crate::text::{with_prefix, without_prefix};
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use layer::norm;
use regard_attention::layers::{
    Block, Call, Dropout, ImageConvolution, ImageConvolutionConfig, Linear, LinearConfig, Norm,
    NormPlacement, Residual, Tap,
};
use regard_attention::ops::{Activation, Windows};
use regard_attention::{Attention, Init, Mode, WeightInit};
use serde_json::Value;

/// Output for a batch of images.
#[derive(Debug)]
pub struct Seen {
    /// `[B, T, M]`: hidden states of all tokens, the patches row by row.
    pub hidden: Tensor<3>,
    /// `[B, P]`: output of the pooler, if the model has no labels.
    pub pooled: Option<Tensor<2>>,
    /// `[B, labels]`: logits, if it has labels.
    pub logits: Option<Tensor<2>>,
}

/// The Vision Transformer, with a classifier or a pooler.
#[derive(Module, Debug)]
pub struct Vit {
    stem: Vec<ImageConvolution>,
    patches: ImageConvolution,
    /// Class token, `[1, M]`.
    cls: Option<Param<Tensor<2>>>,
    /// `[T, M]`, if they are learned.
    positions: Option<Param<Tensor<2>>>,
    dropout: Dropout,
    layers: Vec<Block>,
    last: Norm,
    pooler: Option<Linear>,
    classifier: Option<Linear>,
    #[module(skip)]
    config: Config,
}

impl Vit {
    fn build(config: Config, labelled: bool, init: &mut Init) -> Result<Vit, String> {
        let (m, activation) = (config.hidden_size, config.activation()?);
        let weights = WeightInit::Normal(config.initializer_range);
        let mut channels = config.num_channels;
        let mut stem = vec![];
        for outputs in config.stem_channels.iter().copied() {
            let stride = match config.stem_halving {
                Halving::Stride => [2, 2],
                Halving::Max => [1, 1],
            };
            let windows = Windows { size: [3, 3], stride, padding: [1, 1] };
            // There is no norm before the end of the stem, so the scale must not shrink.
            let (inputs, weights) = (channels, WeightInit::Uniform);
            let layer = ImageConvolutionConfig { inputs, outputs, windows, activation, weights };
            stem.push(layer.init(init));
            channels = outputs;
        }
        let size = config.patch_size.both();
        let patches = ImageConvolutionConfig {
            inputs: channels,
            outputs: m,
            windows: Windows { size, stride: size, padding: [0, 0] },
            activation: Activation::Identity,
            weights,
        };
        let (grid, first) = (config.grid(), config.first_patch());
        let tokens = grid[0] * grid[1] + first;
        let table = |rows: usize, init: &mut Init| init.normal([rows, m], config.initializer_range);
        let linear = |outputs: usize| LinearConfig { weights, ..LinearConfig::new(m, outputs) };
        let pooler = LinearConfig {
            activation: crate::text::activation("pooler_act", &config.pooler_act)?,
            ..linear(config.pooled())
        };
        let labels = config.labels.count()?;
        Ok(Vit {
            stem,
            patches: patches.init(init),
            cls: (first > 0).then(|| table(1, init)),
            positions: (config.positions == PatchPositions::Learned).then(|| table(tokens, init)),
            dropout: Dropout::new(config.hidden_dropout_prob, init),
            layers: (0..config.num_hidden_layers)
                .map(|_| layer::block(&config, activation, init))
                .collect(),
            last: norm(&config).init(init),
            pooler: (!labelled).then(|| pooler.init(init)),
            classifier: labelled.then(|| linear(labels).init(init)),
            config,
        })
    }

    /// Runs the model on images.
    ///
    /// # Shapes
    /// `pixels: [B, C, H, W]`
    ///
    /// # Panics
    /// If the images do not have the model's size.
    pub fn forward(&self, pixels: Tensor<4>, mode: Mode) -> Seen {
        self.read(pixels, mode, None)
    }

    /// Runs the model on images, and returns the attention weights of each layer, `[B, H, T, T]`.
    ///
    /// # Panics
    /// As [`Vit::forward`].
    pub fn forward_with_attention(&self, pixels: Tensor<4>) -> (Seen, Vec<Tensor<4>>) {
        let mut looks = vec![];
        let seen = self.read(pixels, Mode::Eval, Some(&mut looks));
        (seen, looks)
    }

    fn read(&self, pixels: Tensor<4>, mode: Mode, mut looks: Option<&mut Vec<Tensor<4>>>) -> Seen {
        let x = self.embed(pixels, mode);
        let attention = Attention::dot();
        let mut residual = Residual::new(NormPlacement::Pre, self.layers[0].entry(), x);
        for (i, layer) in self.layers.iter().enumerate() {
            let next = self.layers.get(i + 1).map_or(Some(&self.last), Block::entry);
            let mut tap = Tap::new();
            let call = Call::new(&attention).mode(mode).tap(looks.is_some().then_some(&mut tap));
            layer.forward_residual(&mut residual, call, next);
            if let Some(looks) = &mut looks {
                looks.extend(tap.into_weights());
            }
        }
        let hidden = residual.input();
        let [b, t, m] = hidden.dims();
        let speaker = match self.config.pooling {
            VitPooling::Cls if t == 1 => hidden.clone().reshape([b, m]),
            VitPooling::Cls => hidden.clone().slice([0..b, 0..1, 0..m]).reshape([b, m]),
            VitPooling::Mean => hidden.clone().mean_dim(1).reshape([b, m]),
        };
        let pooled = self.pooler.as_ref().map(|pooler| pooler.forward(speaker.clone()));
        let logits = self.classifier.as_ref().map(|classifier| classifier.forward(speaker));
        Seen { hidden, pooled, logits }
    }

    /// Whether it has a classifier.
    pub fn has_labels(&self) -> bool {
        self.classifier.is_some()
    }

    /// Configuration of the model.
    pub fn settings(&self) -> &Config {
        &self.config
    }
}

impl Definition for Vit {
    const READS: InputKind = InputKind::Other;

    fn types() -> Vec<&'static str> {
        vec![config::VIT, config::EXTENDED]
    }

    fn task(_config: &Value) -> Result<&'static str, String> {
        Ok("classify-image")
    }

    fn make(json: &Value, _weights: Option<&Arrays>, init: &mut Init) -> Result<Vit, String> {
        let labelled = match json["architectures"][0].as_str() {
            None | Some("ViTForImageClassification") => true,
            Some("ViTModel") => false,
            Some(other) => {
                return Err(format!(
                    "architectures: got {other:?}, need ViTForImageClassification or ViTModel"
                ));
            }
        };
        Vit::build(Config::read(json)?, labelled, init)
    }

    fn bind(&mut self, b: &mut Binder) {
        b.at("vit", |b| {
            b.at("embeddings", |b| self.bind_embeddings(b));
            for (i, layer) in self.layers.iter_mut().enumerate() {
                b.at(&format!("encoder.layer.{i}"), |b| layer::bind(b, layer));
            }
            b.norm("layernorm", &mut self.last);
            if let Some(pooler) = &mut self.pooler {
                b.linear("pooler.dense", pooler);
            }
        });
        if let Some(classifier) = &mut self.classifier {
            b.linear("classifier", classifier);
        }
    }

    fn config(&self) -> Value {
        self.config.json(self.classifier.is_some())
    }

    fn rename_on_load(&mut self, weights: Arrays) -> Arrays {
        let weights = with_prefix(weights, "vit");
        if !weights.contains_key("vit.pooler.dense.weight") {
            self.pooler = None;
        }
        weights
    }

    fn rename_on_save(&self, weights: Arrays) -> Arrays {
        // Without labels, tensors are saved without the body's prefix.
        if self.has_labels() { weights } else { without_prefix(weights, "vit") }
    }

    fn ignores(&self, name: &str) -> bool {
        let heads = ["vit.pooler.", "vit.embeddings.mask_token", "classifier."];
        heads.iter().any(|head| name.starts_with(head))
    }
    fn describe(&self) -> Description {
        let (reads, attention) = (self.reads(), self.attention());
        Description { reads, attention, ..Description::default() }
    }
}

impl Vit {
    fn reads(&self) -> String {
        let ([rows, columns], channels) = (self.config.image_size.both(), self.config.num_channels);
        format!("images of {rows} × {columns} pixels, {channels} channels")
    }

    fn attention(&self) -> Vec<String> {
        let [rows, columns] = self.config.grid();
        let (heads, width) = (self.config.num_attention_heads, self.config.hidden_size);
        let token = if self.cls.is_some() { ", and the class token," } else { "" };
        let words = format!(
            "{heads} heads of {}, dot product; every patch of {rows} × {columns}{token} sees all",
            width / heads
        );
        vec![words; self.layers.len()]
    }
}
