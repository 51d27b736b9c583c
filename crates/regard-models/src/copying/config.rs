//! `config.json` of a pointer-generator.

use crate::recurrent::{EncoderDecoderConfig, ReadoutInputs};
use crate::sizes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Configuration of the pointer-generator, as in `config.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Configuration shared with the recurrent translators. Source and target have one vocabulary,
    /// and the next word is predicted from state, context and the previous word.
    #[serde(flatten)]
    pub shape: EncoderDecoderConfig,
    /// Width of the additive score's hidden layer; by default `hidden_size`.
    #[serde(default)]
    pub attention_size: Option<usize>,
    /// Whether it can copy. Without, it only generates from the vocabulary.
    #[serde(default = "yes")]
    pub copy: bool,
    /// Whether the score is given the sum of all previous attention weights (coverage).
    #[serde(default = "yes")]
    pub coverage: bool,
    /// Weight λ of the coverage loss; 0 or more.
    #[serde(default = "one")]
    pub coverage_loss: f32,
    /// Id of words that are not in the vocabulary.
    #[serde(default = "three")]
    pub unk_token_id: u32,
}

fn yes() -> bool {
    true
}

fn one() -> f32 {
    1.0
}

fn three() -> u32 {
    3
}

impl Config {
    /// Reads a configuration, with the defaults of this model.
    pub(super) fn read(json: &Value) -> Result<Config, String> {
        let mut json = json.clone();
        for (key, usual) in [("cell", json!("lstm")), ("bidirectional", json!(true))] {
            if json.get(key).is_none() {
                json[key] = usual;
            }
        }
        if json.get("decoder_vocab_size").is_none() {
            json["decoder_vocab_size"] = json["vocab_size"].clone();
        }
        let mut config: Config = crate::parse(&json)?;
        config.shape.readout = ReadoutInputs::Deep;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        self.shape.check()?;
        let (reads, writes) = (self.shape.vocab_size, self.shape.decoder_vocab_size);
        if reads != writes {
            return Err(format!("decoder_vocab_size: got {writes}, need vocab_size = {reads}"));
        }
        sizes::check_ids(&[("unk_token_id", self.unk_token_id)], reads)?;
        let width = self.attention_size.unwrap_or(self.shape.hidden_size);
        sizes::check(&[("attention_size", width)])?;
        let hidden = ("hidden_size", self.shape.hidden_size.saturating_mul(2));
        sizes::check_matrices(&[[("attention_size", width), hidden]])?;
        match self.coverage_loss.is_finite() && self.coverage_loss >= 0.0 {
            true => Ok(()),
            false => Err(format!("coverage_loss: got {}, need 0 or more", self.coverage_loss)),
        }
    }
}
