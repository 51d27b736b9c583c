//! What the families of [`Decoder`](super::Decoder) have in common in `config.json`.

use crate::keys::Keys;
use crate::rope::Rope;
use crate::sizes;
use crate::text::{Biases, Family, Sizes};
use regard_attention::layers::{
    BlockConfig, EmbeddingConfig, FeedForwardConfig, NormConfig, NormPlacement, RotaryConfig,
    SelfAttentionConfig,
};
use regard_attention::{Heads, WeightInit};
use serde::Deserialize;
use serde_json::Value;

/// Keys that a layer attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum LayerType {
    /// All tokens before it.
    #[serde(rename = "full_attention")]
    Full,
    /// The tokens of a sliding window.
    #[serde(rename = "sliding_attention")]
    Sliding,
}

/// A layer's attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LayerAttention {
    /// Number of the last tokens that a token attends to, itself included; `None` for all.
    pub window: Option<usize>,
    /// Index of its rotary positions; `None` if it has no positions.
    pub rotary: Option<usize>,
}

/// Configuration of any family.
#[derive(Debug)]
pub(crate) struct Config {
    pub(super) family: &'static Family,
    pub(super) words: EmbeddingConfig,
    /// Dropout of the embeddings and of the sublayers' outputs.
    pub(super) dropout: f32,
    /// Factor of the embeddings.
    pub(super) embedding_scale: Option<f32>,
    pub(super) block: BlockConfig,
    pub(super) layers: Vec<LayerAttention>,
    pub(super) rotary: Vec<RotaryConfig>,
    /// Scale of the scores; `None` for `1/√D`.
    pub(super) scale: Option<f32>,
    /// Soft limit of the scores.
    pub(super) cap: Option<f32>,
    pub(super) sizes: Sizes,
}

/// Defaults of a family.
pub(super) struct Defaults {
    pub words: usize,
    pub width: usize,
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    /// Key-value heads; `None` for as many as query heads.
    pub keys: Option<usize>,
    /// Width of a head; `None` for the model's width divided by the heads.
    pub head_width: Option<usize>,
    pub positions: usize,
    pub tied: bool,
    /// Name and default of the activation.
    pub activation: (&'static str, &'static str),
}

impl Config {
    /// Reads the keys that all families have. Layers attend to all tokens before them.
    pub(super) fn read(
        keys: &Keys,
        family: &'static Family,
        defaults: &Defaults,
    ) -> Result<Config, String> {
        let words = keys.size("vocab_size", defaults.words)?;
        let width = keys.size("hidden_size", defaults.width)?;
        let hidden = keys.size("intermediate_size", defaults.hidden)?;
        let layers = keys.size("num_hidden_layers", defaults.layers)?;
        let heads = keys.size("num_attention_heads", defaults.heads)?;
        let few = keys.get("num_key_value_heads", defaults.keys)?.unwrap_or(heads.1);
        let few = ("num_key_value_heads", few);
        let own = keys.get("head_dim", defaults.head_width)?;
        let head = ("head_dim", own.unwrap_or(width.1 / heads.1));
        let positions = keys.size("max_position_embeddings", defaults.positions)?;
        sizes::check(&[few, head])?;
        if own.is_none() && !width.1.is_multiple_of(heads.1) {
            return Err(format!(
                "num_attention_heads: got {}, need a divisor of hidden_size = {}, or head_dim",
                heads.1, width.1
            ));
        }
        if !heads.1.is_multiple_of(few.1) {
            return Err(format!(
                "num_key_value_heads: got {}, need a divisor of num_attention_heads = {}",
                few.1, heads.1
            ));
        }
        let rows = ("num_attention_heads · head_dim", heads.1.saturating_mul(head.1));
        sizes::check(&[rows])?;
        sizes::check_matrices(&[[words, width], [width, hidden], [width, rows]])?;
        let deviation = keys.get("initializer_range", 0.02)?;
        let eps = keys.get("rms_norm_eps", 1e-6)?;
        let norm = NormConfig { eps, ..NormConfig::rms(width.1) };
        // Not a key of transformers, which ignores it: only training needs it.
        let dropout = keys.share("hidden_dropout_prob", 0.0)?;
        let activation = keys.activation(defaults.activation.0, defaults.activation.1)?;
        let weights = WeightInit::Normal(deviation);
        let block = BlockConfig {
            norms: NormPlacement::Pre,
            norm: norm.clone(),
            output_norms: false,
            attention: SelfAttentionConfig {
                width: width.1,
                heads: Heads { queries: heads.1, keys: few.1 },
                head_width: head.1,
                bias: false,
                head_norm: None,
                dropout: keys.share("attention_dropout", 0.0)?,
                weights,
            },
            distances: None,
            forward: FeedForwardConfig {
                hidden: hidden.1,
                activation,
                gated: true,
                bias: false,
                weights,
                ..FeedForwardConfig::new(width.1)
            },
            dropout: [dropout; 2],
        };
        let padding = keys.token("pad_token_id", None, words.1)?.map(i64::from);
        Ok(Config {
            family,
            words: EmbeddingConfig { padding, deviation, ..EmbeddingConfig::new(words.1, width.1) },
            dropout,
            embedding_scale: None,
            layers: vec![LayerAttention { window: None, rotary: Some(0) }; layers.1],
            rotary: vec![RotaryConfig::new(positions.1, head.1)],
            scale: None,
            cap: None,
            sizes: Sizes {
                width: width.1,
                words: words.1,
                labels: 0,
                eps,
                deviation,
                activation,
                dropout: 0.0,
                tied: keys.get("tie_word_embeddings", defaults.tied)?,
                cap: None,
                pool: None,
                biases: Biases { dense: false, norm: false, words: false },
            },
            block,
        })
    }

    /// Reads whether the attention has biases.
    pub fn attention_bias(&mut self, keys: &Keys) -> Result<(), String> {
        self.block.attention.bias = keys.get("attention_bias", false)?;
        Ok(())
    }

    /// Adds norms of each head's queries and keys.
    pub fn head_norms(&mut self) {
        let width = self.block.attention.head_width;
        self.block.attention.head_norm = Some(NormConfig { width, ..self.block.norm.clone() });
    }

    /// Gemma's embeddings, norms, scale of the scores and soft limits.
    pub fn gemma(&mut self, keys: &Keys, caps: [Option<f32>; 2]) -> Result<(), String> {
        let positive = |name: &'static str, default: Option<f32>| {
            let found: Option<f32> = keys.get(name, default)?;
            match found {
                Some(x) if !(x > 0.0 && x.is_finite()) => {
                    Err(format!("{name}: got {x}, need a positive number"))
                }
                found => Ok(found),
            }
        };
        self.attention_bias(keys)?;
        self.block.norm.offset = 1.0;
        self.block.output_norms = true;
        self.embedding_scale = Some((self.sizes.width as f32).sqrt());
        let of = positive("query_pre_attn_scalar", Some(256.0))?;
        self.scale = of.map(|of| 1.0 / of.sqrt());
        self.cap = positive("attn_logit_softcapping", caps[0])?;
        self.sizes.cap = positive("final_logit_softcapping", caps[1])?;
        match keys.get("use_bidirectional_attention", Some(false))? {
            Some(true) => Err("use_bidirectional_attention: got true, need false: encoders of \
                               this family are not supported"
                .into()),
            _ => Ok(()),
        }
    }

    /// Reads which layers have a sliding window; `usual` says it for a layer's number if
    /// `layer_types` does not.
    pub(super) fn windows(
        &mut self,
        keys: &Keys,
        window: Option<usize>,
        usual: impl Fn(usize) -> bool,
    ) -> Result<Vec<LayerType>, String> {
        let count = self.layers.len();
        let types: Option<Vec<LayerType>> = keys.get("layer_types", None)?;
        let usual = |i: usize| if usual(i) { LayerType::Sliding } else { LayerType::Full };
        let types = types.unwrap_or_else(|| (0..count).map(usual).collect());
        if types.len() != count {
            let got = types.len();
            return Err(format!("layer_types: got {got}, need one for each of {count} layers"));
        }
        for (layer, of) in self.layers.iter_mut().zip(&types) {
            layer.window = match (of, window) {
                (LayerType::Full, _) => None,
                (LayerType::Sliding, Some(size @ 1..)) => {
                    sizes::check(&[("sliding_window", size)])?;
                    window
                }
                (LayerType::Sliding, _) => {
                    return Err("sliding_window: need a number of at least 1 for the layers of \
                                type sliding_attention"
                        .into());
                }
            };
        }
        Ok(types)
    }
}

/// The keys of rotary positions: `rope_parameters`, and before it `rope_theta` and `rope_scaling`.
pub(super) struct RopeKeys {
    parameters: Value,
    scaling: Value,
    theta: f32,
}

impl RopeKeys {
    /// Reads the keys; `theta` is the family's default.
    pub fn read(keys: &Keys, theta: f32) -> Result<RopeKeys, String> {
        Ok(RopeKeys {
            parameters: keys.get("rope_parameters", Value::Null)?,
            scaling: keys.get("rope_scaling", Value::Null)?,
            theta: keys.get("rope_theta", None)?.unwrap_or(theta),
        })
    }

    /// Configuration for all layers. As in transformers, a `rope_scaling` that is not empty counts
    /// more than `rope_parameters`, and the top level says what they leave out.
    pub fn all(&self, config: &Config) -> Result<RotaryConfig, String> {
        let scaled = self.scaling.as_object().is_some_and(|keys| !keys.is_empty());
        match scaled || self.parameters.is_null() {
            true => self.config(&self.scaling, config, self.theta),
            false => self.config(&self.parameters, config, self.theta),
        }
    }

    /// Configuration for layers of a type, `full_attention` or `sliding_attention`. `theta` is that
    /// of configurations without `rope_parameters`, where `scaled` says whether `rope_scaling` is
    /// for these layers.
    pub fn of_type(
        &self,
        name: &str,
        config: &Config,
        theta: f32,
        scaled: bool,
    ) -> Result<RotaryConfig, String> {
        match &self.parameters {
            Value::Null if scaled => self.config(&self.scaling, config, theta),
            Value::Null => self.config(&Value::Null, config, theta),
            all if all[name].is_null() => Err(format!("rope_parameters: has no {name}")),
            all => self.config(&all[name], config, theta),
        }
    }

    /// `θ` of configurations without `rope_parameters`.
    pub fn theta(&self) -> f32 {
        self.theta
    }

    fn config(&self, json: &Value, config: &Config, theta: f32) -> Result<RotaryConfig, String> {
        let RotaryConfig { length, head_width, .. } = config.rotary[0];
        Rope::read(json)?.config(length, head_width, theta)
    }
}
