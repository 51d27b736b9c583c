//! `config.json` of an image model.

use crate::labels::Labels;
use crate::sizes;
use crate::text::activation;
use regard_attention::ops::Activation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// `model_type` of models that Hugging Face's `vit` can express.
pub const VIT: &str = "vit";
/// `model_type` of others: with a stem, mean pooling, or sinusoidal positions.
pub const EXTENDED: &str = "vision_transformer";

/// Numbers of rows and columns: one number for both, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "need a whole number, or a list of two: rows and columns")]
pub enum Sides {
    /// A square.
    Equal(usize),
    /// Rows, then columns.
    Each([usize; 2]),
}

impl Sides {
    /// Returns rows and columns.
    pub fn both(self) -> [usize; 2] {
        match self {
            Sides::Equal(side) => [side; 2],
            Sides::Each(sides) => sides,
        }
    }
}

/// Downsampling by 2 in each convolution of the stem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halving {
    /// Stride 2 (Xiao et al. 2021, arXiv:2106.14881).
    #[default]
    Stride,
    /// Stride 1, then 2×2 max pooling (Hassani et al. 2021, arXiv:2104.05704).
    Max,
}

/// Vector that represents the image (pooling).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VitPooling {
    /// Vector of the class token, which precedes the patches.
    #[default]
    Cls,
    /// Mean of the patches.
    Mean,
}

/// Position encoding of patches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatchPositions {
    /// A learned vector for each position.
    #[default]
    Learned,
    /// Sines and cosines: the first half of the vector encodes the row, the second the column.
    Sinusoidal,
}

/// Configuration of [`Vit`](super::Vit): the keys of Hugging Face's `vit`, and four more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Width `M`; default 768.
    pub hidden_size: usize,
    /// Number of layers; default 12.
    pub num_hidden_layers: usize,
    /// Number of heads `H`; default 12.
    pub num_attention_heads: usize,
    /// Hidden width of the feed-forward part; default 3072.
    pub intermediate_size: usize,
    /// Activation of the feed-forward part and the stem; default `gelu`.
    pub hidden_act: String,
    /// Dropout of embeddings and of each sublayer's output; default 0.
    pub hidden_dropout_prob: f32,
    /// Dropout of attention weights; default 0.
    pub attention_probs_dropout_prob: f32,
    /// Standard deviation of the initial values; default 0.02.
    pub initializer_range: f32,
    /// `ε` of the norms; default 1e-12.
    pub layer_norm_eps: f32,
    /// Rows and columns of an image; default 224.
    pub image_size: Sides,
    /// Rows and columns of a patch, in pixels or in positions of the stem's output; default 16.
    pub patch_size: Sides,
    /// Channels of a pixel: 1 for grey, 3 for colour (default).
    pub num_channels: usize,
    /// Whether queries, keys and values have biases; default true.
    pub qkv_bias: bool,
    /// Width of the pooler's output, in a model without labels; default `M`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooler_output_size: Option<usize>,
    /// Activation of the pooler; default `tanh`.
    pub pooler_act: String,
    /// Names or number of the labels; two unnamed ones by default.
    #[serde(flatten)]
    pub labels: Labels,
    /// Channels of 3×3 convolutions before the patches, each with `hidden_act`: each halves the
    /// sides of the image. Empty by default.
    pub stem_channels: Vec<usize>,
    /// Downsampling in the stem; default stride 2.
    pub stem_halving: Halving,
    /// Vector that represents the image; default the class token.
    pub pooling: VitPooling,
    /// Position encoding; default learned.
    pub positions: PatchPositions,
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
            pooling: VitPooling::Cls,
            positions: PatchPositions::Learned,
        }
    }
}

impl Config {
    /// Reads `config.json`, and checks every size before memory is allocated.
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
        if config.positions == PatchPositions::Sinusoidal && !width.is_multiple_of(4) {
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

    /// Checks that images, stem and patches fit each other.
    fn check_sides(&self) -> Result<(), String> {
        let (image, patch) = (self.image_size.both(), self.patch_size.both());
        sizes::check(&[
            ("image_size", image[0]),
            ("image_size", image[1]),
            ("patch_size", patch[0]),
            ("patch_size", patch[1]),
        ])?;
        sizes::check_depth("stem_channels: length", self.stem_channels.len().max(1))?;
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
            return Err(format!(
                "patch_size: got {patch:?}, need at most {before:?}, the size of the image after \
                 the stem"
            ));
        }
        let [rows, columns] = self.grid();
        sizes::check_matrices(&[[("patches", rows * columns), ("hidden_size", self.hidden_size)]])
    }

    /// Rows and columns of the stem's output, or of the image.
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

    /// Number of tokens before the patches: 1 or 0.
    pub fn first_patch(&self) -> usize {
        usize::from(self.pooling == VitPooling::Cls)
    }

    /// Width of the pooler's output.
    pub(super) fn pooled(&self) -> usize {
        self.pooler_output_size.unwrap_or(self.hidden_size)
    }

    pub(super) fn activation(&self) -> Result<Activation, String> {
        activation("hidden_act", &self.hidden_act)
    }

    /// Whether Hugging Face's `vit` can express it.
    fn is_plain(&self) -> bool {
        let Config { stem_channels, pooling, positions, .. } = self;
        stem_channels.is_empty()
            && *pooling == VitPooling::Cls
            && *positions == PatchPositions::Learned
    }

    /// Configuration as `config.json`, of a model with labels or without.
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
