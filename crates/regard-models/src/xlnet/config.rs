//! `config.json` of XLNet, and its supported values.

use crate::sizes;
use crate::text::{Head, activation};
use regard_attention::ops::Activation;
use serde::Deserialize;
use serde_json::Value;

/// Configuration of XLNet, with transformers' keys and defaults.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Config {
    pub(super) vocab_size: usize,
    pub(super) d_model: usize,
    pub(super) n_layer: usize,
    pub(super) n_head: usize,
    pub(super) d_inner: usize,
    d_head: Option<usize>,
    ff_activation: String,
    attn_type: String,
    pub(super) initializer_range: f32,
    pub(super) layer_norm_eps: f32,
    pub(super) dropout: f32,
    mem_len: Option<usize>,
    reuse_len: Option<usize>,
    bi_data: bool,
    clamp_len: i64,
    same_length: bool,
    untie_r: bool,
    summary_type: String,
    summary_use_proj: bool,
    summary_activation: Option<String>,
    summary_first_dropout: f32,
    summary_last_dropout: f32,
    pub(super) tie_word_embeddings: bool,
    #[serde(skip)]
    pub(super) activation: Activation,
    /// Dropout before the classifier of the head.
    #[serde(skip)]
    pub(super) label_dropout: f32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            vocab_size: 32000,
            d_model: 1024,
            n_layer: 24,
            n_head: 16,
            d_inner: 4096,
            d_head: None,
            ff_activation: "gelu".into(),
            attn_type: "bi".into(),
            initializer_range: 0.02,
            layer_norm_eps: 1e-12,
            dropout: 0.1,
            mem_len: Some(512),
            reuse_len: None,
            bi_data: false,
            clamp_len: -1,
            same_length: false,
            untie_r: true,
            summary_type: "last".into(),
            summary_use_proj: true,
            summary_activation: Some("tanh".into()),
            summary_first_dropout: 0.0,
            summary_last_dropout: 0.1,
            tie_word_embeddings: true,
            activation: Activation::Gelu,
            label_dropout: 0.0,
        }
    }
}

/// Attention rules apart from sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether attention is causal, as in Transformer-XL.
    pub left_to_right: bool,
    /// Whether, with causal attention, all tokens attend to equally many.
    pub same_length: bool,
    /// Distances are clamped to this.
    pub farthest: Option<usize>,
    /// Most tokens of a memory.
    pub remembered: Option<usize>,
    /// Number of first tokens of a text that go into the memory.
    pub reused: Option<usize>,
}

impl Config {
    /// Reads and checks `config.json`, for a head.
    pub(crate) fn read(json: &Value, head: Head) -> Result<Config, String> {
        let mut config: Config = crate::parse(json)?;
        config.activation = activation("ff_activation", &config.ff_activation)?;
        config.check_sizes()?;
        config.check_kind()?;
        if head == Head::Sequence {
            config.check_summary()?;
            config.label_dropout = config.summary_last_dropout;
        }
        Ok(config)
    }

    pub(super) fn rules(&self) -> Rules {
        let some = |size: Option<usize>| size.filter(|size| *size > 0);
        Rules {
            left_to_right: self.attn_type == "uni",
            same_length: self.same_length,
            farthest: some(usize::try_from(self.clamp_len).ok()),
            remembered: some(self.mem_len),
            reused: some(self.reuse_len),
        }
    }

    fn check_sizes(&self) -> Result<(), String> {
        let (words, width) = (("vocab_size", self.vocab_size), ("d_model", self.d_model));
        let (inner, heads) = (("d_inner", self.d_inner), ("n_head", self.n_head));
        sizes::check(&[words, width, inner, heads, ("n_layer: layers", self.n_layer)])?;
        sizes::check_matrices(&[[words, width], [width, inner], [width, width]])?;
        let Config { d_model, n_head, .. } = *self;
        if !d_model.is_multiple_of(n_head) {
            return Err(format!("n_head: got {n_head}, need a divisor of d_model = {d_model}"));
        }
        if !d_model.is_multiple_of(2) {
            return Err(format!("d_model: got {d_model}, need an even number"));
        }
        if let Some(got) = self.d_head.filter(|got| *got != d_model / n_head) {
            return Err(format!("d_head: got {got}, need d_model / n_head = {}", d_model / n_head));
        }
        sizes::check_shares(&[
            ("dropout", self.dropout),
            ("summary_last_dropout", self.summary_last_dropout),
        ])
    }

    /// Checks keys that would change the computation.
    fn check_kind(&self) -> Result<(), String> {
        if !["bi", "uni"].contains(&self.attn_type.as_str()) {
            return Err(format!("attn_type: got {:?}, need \"bi\" or \"uni\"", self.attn_type));
        }
        if self.same_length && self.attn_type == "bi" {
            return Err("same_length: got true, which needs attn_type \"uni\"".into());
        }
        if !self.untie_r {
            return Err(
                "untie_r: got false, need true: no checkpoint of Hugging Face's library has \
                        biases shared by all layers"
                    .into(),
            );
        }
        if self.bi_data {
            return Err("bi_data: got true, need false: batches with a reversed half are not \
                        supported"
                .into());
        }
        Ok(())
    }

    fn check_summary(&self) -> Result<(), String> {
        // `cls_index` without an index is the last token.
        if !["last", "cls_index"].contains(&self.summary_type.as_str()) {
            return Err(format!("summary_type: got {:?}, need \"last\"", self.summary_type));
        }
        if !self.summary_use_proj {
            return Err("summary_use_proj: got false, need true".into());
        }
        if self.summary_activation.as_deref() != Some("tanh") {
            let got = &self.summary_activation;
            return Err(format!("summary_activation: got {got:?}, need \"tanh\""));
        }
        if self.summary_first_dropout > 0.0 {
            let got = self.summary_first_dropout;
            return Err(format!("summary_first_dropout: got {got}, need 0"));
        }
        Ok(())
    }
}
