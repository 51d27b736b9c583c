//! `config.json` of a pointer-generator.

use crate::recurrent::{Shape, Told};
use crate::sizes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// `config.json`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// What it has in common with translators. Words that are read and words that are written are
    /// the same, and the next one is told from state, context and the word before.
    #[serde(flatten)]
    pub shape: Shape,
    /// Width of the space in which states are compared; by default that of a state.
    #[serde(default)]
    pub attention_size: Option<usize>,
    /// Whether it can copy. Without, it is the same model that writes only.
    #[serde(default = "yes")]
    pub copy: bool,
    /// Whether it is told where it has looked before.
    #[serde(default = "yes")]
    pub coverage: bool,
    /// What it costs to look twice, beside the cost of words.
    #[serde(default = "one")]
    pub coverage_loss: f32,
    /// A word that the vocabulary does not have.
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
    /// Reads a configuration, with what this model always has.
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
        config.shape.readout = Told::Deep;
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
