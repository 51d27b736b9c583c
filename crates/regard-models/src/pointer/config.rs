//! `config.json` of a pointer network.

use crate::sizes;
use crate::transformer;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Configuration of [`PointerNet`](super::PointerNet), as in `config.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Name of the problem that it solves, for the caller.
    pub problem: String,
    /// Coordinates of a point; default 2.
    pub input_size: usize,
    /// Octaves of sines and cosines that encode each coordinate, besides its value; default 4.
    pub waves: usize,
    /// Width `M` of the hidden states; default 128.
    pub hidden_size: usize,
    /// Kind of encoder and decoder.
    pub encoder: EncoderKind,
    /// Number of encoder layers; default 3.
    pub encoder_layers: usize,
    /// Number of decoder layers; default 2.
    pub decoder_layers: usize,
    /// Number of heads `H` of a Transformer; default 4.
    pub num_attention_heads: usize,
    /// Hidden width of a Transformer's feed-forward layers; default 256.
    pub intermediate_size: usize,
    /// Score function of the pointer.
    pub score: PointerScore,
    /// Points that a step may select.
    pub choice: SelectionRule,
    /// Dropout of each sublayer's output; default 0.
    pub dropout: f32,
}

/// Kind of encoder and decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncoderKind {
    /// A bidirectional LSTM encoder and an LSTM decoder (Vinyals et al. 2015, whose encoder is
    /// unidirectional).
    Lstm,
    /// A Transformer without positions: points are a set, their order has no effect.
    #[default]
    Transformer,
}

/// Score function of the pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PointerScore {
    /// `v·tanh(W_q q + W_k k)`, as in the paper.
    #[default]
    Additive,
    /// `(W_q q)·(W_k k)/√M`
    Dot,
}

/// Points that a step may select.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelectionRule {
    /// Any point, any number of times.
    Free,
    /// Each point at most once; at least one point.
    #[default]
    Once,
    /// Each point exactly once.
    All,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            problem: String::new(),
            input_size: 2,
            waves: 4,
            hidden_size: 128,
            encoder: EncoderKind::Transformer,
            encoder_layers: 3,
            decoder_layers: 2,
            num_attention_heads: 4,
            intermediate_size: 256,
            score: PointerScore::Additive,
            choice: SelectionRule::Once,
            dropout: 0.0,
        }
    }
}

impl Config {
    /// Checks sizes before any tensor is allocated.
    pub(super) fn check(&self) -> Result<(), String> {
        let (m, inner) =
            (("hidden_size", self.hidden_size), ("intermediate_size", self.intermediate_size));
        let heads = ("num_attention_heads", self.num_attention_heads);
        let layers =
            [("encoder_layers", self.encoder_layers), ("decoder_layers", self.decoder_layers)];
        sizes::check(&[m, inner, heads, layers[0], layers[1]])?;
        if !(1..=64).contains(&self.input_size) {
            return Err(format!("input_size: got {}, need 1 to 64", self.input_size));
        }
        // Beyond 2²⁴ an `f32` has no fractional bits left.
        if self.waves > 24 {
            return Err(format!("waves: got {}, need 0 to 24", self.waves));
        }
        // Queries, keys and values are one matrix, and so are the four gates of two directions.
        sizes::check_matrices(&[[m, (m.0, m.1.saturating_mul(8))], [m, inner]])?;
        if !m.1.is_multiple_of(heads.1) {
            return Err(format!("{}: got {}, need a divisor of {m:?}", heads.0, heads.1));
        }
        if self.encoder == EncoderKind::Lstm {
            if self.encoder_layers != self.decoder_layers {
                let [(_, reads), (_, points)] = layers;
                return Err(format!(
                    "decoder_layers: got {points}, need as many as encoder_layers = {reads} with \
                     lstm: each decoder layer starts from the state of an encoder layer"
                ));
            }
            if !m.1.is_multiple_of(2) {
                return Err(format!("hidden_size: got {}, need an even number with lstm", m.1));
            }
        }
        sizes::check_shares(&[("dropout", self.dropout)])
    }

    /// Number of features that encode a point.
    pub(super) fn features(&self) -> usize {
        self.input_size * (1 + 2 * self.waves)
    }

    /// Configuration of the layers, as that of the Transformer for texts.
    pub(super) fn layers(&self) -> transformer::Config {
        let Config { hidden_size, num_attention_heads: heads, intermediate_size: inner, .. } =
            *self;
        let config = crate::parse(&json!({
            "vocab_size": 1,
            "d_model": hidden_size,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "encoder_attention_heads": heads,
            "decoder_attention_heads": heads,
            "encoder_ffn_dim": inner,
            "decoder_ffn_dim": inner,
            "dropout": self.dropout,
            "norms": "pre",
        }));
        config.expect("a configuration that was checked")
    }
}
