//! `config.json` of a pointer network.

use crate::sizes;
use crate::transformer;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// `config.json`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The problem whose answers it points at, for whoever asks it.
    pub problem: String,
    /// Numbers of a point.
    pub input_size: usize,
    /// Octaves of sines and cosines that each number is told by, besides itself.
    pub waves: usize,
    /// `M`
    pub hidden_size: usize,
    /// What reads, and what points.
    pub encoder: Kind,
    /// Layers that read.
    pub encoder_layers: usize,
    /// Layers that point.
    pub decoder_layers: usize,
    /// `H`, of a Transformer.
    pub num_attention_heads: usize,
    /// Of the middle of a Transformer's feed-forward part.
    pub intermediate_size: usize,
    /// How a point is compared with what is looked for.
    pub score: Score,
    /// Which points may still be pointed at.
    pub choice: Choice,
    /// The share that is dropped of what each part adds.
    pub dropout: f32,
}

/// What reads, and what points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An LSTM both ways that reads and one that points (Vinyals et al. 2015, who read one way).
    Lstm,
    /// Attention alone. Points are a set: their order says nothing.
    #[default]
    Transformer,
}

/// How a point is compared with what is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Score {
    /// `v·tanh(W_q q + W_k k)`, as in the paper.
    #[default]
    Additive,
    /// `(W_q q)·(W_k k)/√M`
    Dot,
}

/// Which points may still be pointed at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// All, always.
    Free,
    /// Each once at most; at least one.
    #[default]
    Once,
    /// Each exactly once.
    All,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            problem: String::new(),
            input_size: 2,
            waves: 4,
            hidden_size: 128,
            encoder: Kind::Transformer,
            encoder_layers: 3,
            decoder_layers: 2,
            num_attention_heads: 4,
            intermediate_size: 256,
            score: Score::Additive,
            choice: Choice::Once,
            dropout: 0.0,
        }
    }
}

impl Config {
    /// Turns down what cannot be.
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
        // Beyond 2²⁴ a single-precision number has no fractions left to tell.
        if self.waves > 24 {
            return Err(format!("waves: got {}, need 0 to 24", self.waves));
        }
        // Queries, keys and values are one matrix, and so are the four gates of two directions.
        sizes::check_matrices(&[[m, (m.0, m.1.saturating_mul(8))], [m, inner]])?;
        if !m.1.is_multiple_of(heads.1) {
            return Err(format!("{}: got {}, need a divisor of {m:?}", heads.0, heads.1));
        }
        if self.encoder == Kind::Lstm {
            if self.encoder_layers != self.decoder_layers {
                let [(_, reads), (_, points)] = layers;
                return Err(format!(
                    "decoder_layers: got {points}, need as many as encoder_layers = {reads} with \
                     lstm: each begins where one has ended"
                ));
            }
            if !m.1.is_multiple_of(2) {
                return Err(format!("hidden_size: got {}, need an even one with lstm", m.1));
            }
        }
        sizes::check_shares(&[("dropout", self.dropout)])
    }

    /// Numbers that a point is told by.
    pub(super) fn features(&self) -> usize {
        self.input_size * (1 + 2 * self.waves)
    }

    /// The layers as the Transformer of texts has them.
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
