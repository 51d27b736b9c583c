//! `config.json` of an image model.

use crate::labels::Labels;
use crate::sizes;
use crate::text::activation;
use regard_attention::ops::Activation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name of what Hugging Face can say.
pub const VIT: &str = "vit";
/// The name of what it cannot: a stem, the mean of all patches, positions that are not learned.
pub const EXTENDED: &str = "vision_transformer";

/// Rows and columns: one number for both, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sides {
    /// A square.
    Equal(usize),
    /// Rows, then columns.
    Each([usize; 2]),
}

impl Sides {
    /// Rows and columns.
    pub fn both(self) -> [usize; 2] {
        match self {
            Sides::Equal(side) => [side; 2],
            Sides::Each(sides) => sides,
        }
    }
}

/// How a convolution of the stem halves the sides of what it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halving {
    /// Its windows go by steps of 2 (Xiao et al. 2021, arXiv:2106.14881).
    #[default]
    Stride,
    /// Its windows go by steps of 1, and of each square of four the largest number is kept
    /// (Hassani et al. 2021, arXiv:2104.05704).
    Max,
}

/// Which vector speaks for the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// That of a token of its own, which stands before the patches.
    #[default]
    Cls,
    /// The mean of the patches.
    Mean,
}

/// How patches are told where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Positions {
    /// By a learned vector for each place.
    #[default]
    Learned,
    /// By sines and cosines: the first half of the vector of the row, the second of the column.
    Sinusoidal,
}

/// The keys of Hugging Face's `vit`, and four of our own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `M`
    pub hidden_size: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// `H`
    pub num_attention_heads: usize,
    /// Of the middle of the feed-forward part.
    pub intermediate_size: usize,
    /// Its function.
    pub hidden_act: String,
    /// The share that is dropped of what each part adds.
    pub hidden_dropout_prob: f32,
    /// The share that is dropped of the weights of attention.
    pub attention_probs_dropout_prob: f32,
    /// The deviation of first values.
    pub initializer_range: f32,
    /// `ε` of the norms.
    pub layer_norm_eps: f32,
    /// Rows and columns of an image.
    pub image_size: Sides,
    /// Rows and columns of a patch: of pixels, or of what the stem makes of them.
    pub patch_size: Sides,
    /// Channels of a pixel: 1 of grey, 3 of coloured ones.
    pub num_channels: usize,
    /// Whether queries, keys and values have biases.
    pub qkv_bias: bool,
    /// The width of what a model without labels says of an image; `M` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooler_output_size: Option<usize>,
    /// The function of that.
    pub pooler_act: String,
    /// What is told apart.
    #[serde(flatten)]
    pub labels: Labels,
    /// Channels of 3×3 convolutions before the patches, each with `hidden_act`: each halves the
    /// sides of the image. None by default.
    pub stem_channels: Vec<usize>,
    /// How it does.
    pub stem_halving: Halving,
    /// Which vector speaks for the image.
    pub pooling: Pooling,
    /// How patches are told where they are.
    pub positions: Positions,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            intermediate_size: 3072,
            hidden_act: "gelu".into(),
            hidden_dropout_prob: 0.0,
            attention_probs_dropout_prob: 0.0,
            initializer_range: 0.02,
            layer_norm_eps: 1e-12,
            image_size: Sides::Equal(224),
            patch_size: Sides::Equal(16),
            num_channels: 3,
            qkv_bias: true,
            pooler_output_size: None,
            pooler_act: "tanh".into(),
            labels: Labels::default(),
            stem_channels: vec![],
            stem_halving: Halving::Stride,
            pooling: Pooling::Cls,
            positions: Positions::Learned,
        }
    }
}

impl Config {
    /// From `config.json`, with every size checked before memory is asked for.
    pub(crate) fn read(json: &Value) -> Result<Config, String> {
        let config: Config = crate::parse(json)?;
        let (width, inner) = (config.hidden_size, config.intermediate_size);
        sizes::check(&[
            ("hidden_size", width),
            ("num_hidden_layers", config.num_hidden_layers),
            ("num_attention_heads", config.num_attention_heads),
            ("intermediate_size", inner),
            ("num_channels", config.num_channels),
            ("pooler_output_size", config.pooled()),
        ])?;
        if !width.is_multiple_of(config.num_attention_heads) {
            let heads = config.num_attention_heads;
            return Err(format!(
                "num_attention_heads: got {heads}, need a divisor of hidden_size = {width}"
            ));
        }
        if config.positions == Positions::Sinusoidal && !width.is_multiple_of(4) {
            return Err(format!(
                "hidden_size: got {width}, need a multiple of 4 for sinusoidal positions: a sine \
                 and a cosine, of the row and of the column"
            ));
        }
        config.check_sides()?;
        let m = ("hidden_size", width);
        sizes::check_matrices(&[
            [m, ("intermediate_size", inner)],
            [m, m],
            [m, ("pooler_output_size", config.pooled())],
            [m, ("num_labels", config.labels.count()?)],
        ])?;
        sizes::check_shares(&[
            ("hidden_dropout_prob", config.hidden_dropout_prob),
            ("attention_probs_dropout_prob", config.attention_probs_dropout_prob),
        ])?;
        config.activation()?;
        activation("pooler_act", &config.pooler_act)?;
        Ok(config)
    }

    /// Images, patches and what is between them fit each other.
    fn check_sides(&self) -> Result<(), String> {
        let (image, patch) = (self.image_size.both(), self.patch_size.both());
        sizes::check(&[
            ("image_size", image[0]),
            ("image_size", image[1]),
            ("patch_size", patch[0]),
            ("patch_size", patch[1]),
        ])?;
        sizes::check_depth("stem_channels: so many", self.stem_channels.len().max(1))?;
        let mut channels = self.num_channels;
        for next in &self.stem_channels {
            sizes::check(&[("stem_channels", *next)])?;
            sizes::check_matrices(&[[
                ("channels", 9usize.saturating_mul(channels)),
                ("stem_channels", *next),
            ]])?;
            channels = *next;
        }
        let pixels = image[0].saturating_mul(image[1]);
        let wide = patch[0].saturating_mul(patch[1]).saturating_mul(channels);
        sizes::check_matrices(&[
            [("image_size", pixels), ("channels", self.num_channels)],
            [("patch_size", wide), ("hidden_size", self.hidden_size)],
        ])?;
        let before = self.before_patches();
        if (0..2).any(|axis| patch[axis] > before[axis]) {
            return Err(format!("patch_size: got {patch:?}, need at most {before:?}"));
        }
        let [rows, columns] = self.grid();
        sizes::check_matrices(&[[("patches", rows * columns), ("hidden_size", self.hidden_size)]])
    }

    /// Rows and columns of what patches are cut from.
    fn before_patches(&self) -> [usize; 2] {
        let half = |side: usize| match self.stem_halving {
            Halving::Stride => side.div_ceil(2),
            Halving::Max => side / 2,
        };
        let halved = |side: usize| self.stem_channels.iter().fold(side, |n, _| half(n));
        self.image_size.both().map(halved)
    }

    /// Rows and columns of patches.
    pub fn grid(&self) -> [usize; 2] {
        let (before, patch) = (self.before_patches(), self.patch_size.both());
        [before[0] / patch[0], before[1] / patch[1]]
    }

    /// Tokens before the patches: 1 or 0.
    pub fn first_patch(&self) -> usize {
        usize::from(self.pooling == Pooling::Cls)
    }

    /// The width of what a model without labels says of an image.
    pub(super) fn pooled(&self) -> usize {
        self.pooler_output_size.unwrap_or(self.hidden_size)
    }

    pub(super) fn activation(&self) -> Result<Activation, String> {
        activation("hidden_act", &self.hidden_act)
    }

    /// Whether Hugging Face has a word for it.
    fn is_plain(&self) -> bool {
        let Config { stem_channels, pooling, positions, .. } = self;
        stem_channels.is_empty() && *pooling == Pooling::Cls && *positions == Positions::Learned
    }

    /// `config.json` of a model with labels, or without.
    pub(super) fn json(&self, labelled: bool) -> Value {
        let plain = self.is_plain();
        let mut json = crate::config_json(if plain { VIT } else { EXTENDED }, self);
        let class = if labelled { "ViTForImageClassification" } else { "ViTModel" };
        json["architectures"] = json!([class]);
        if let Some(keys) = json.as_object_mut().filter(|_| plain) {
            let own = ["stem_channels", "stem_halving", "pooling", "positions"];
            keys.retain(|key, _| !own.contains(&key.as_str()));
        }
        json
    }
}
