//! A recipe: one TOML file from which a result can be made again.

use super::{Data, Vocabularies};
use crate::{decode, train};
use regard_models::{Error, Result as Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// A reproducible result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name: that of its file and of the run's folder.
    pub name: String,
    /// What for.
    pub task: String,
    /// In a sentence.
    #[serde(default)]
    pub about: String,
    /// Where all randomness comes from.
    #[serde(default)]
    pub seed: u64,
    /// What came of it, and what others got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Result>,
    /// Which sentences.
    pub data: Data,
    /// Which tokens.
    pub vocabulary: Vocabularies,
    /// `config.json` of the model, without the sizes of vocabularies.
    pub model: Value,
    /// How to train.
    #[serde(default)]
    pub train: train::Options,
    /// How to decide which model is best.
    #[serde(default)]
    pub evaluate: Evaluate,
    /// How to translate when it is reported.
    #[serde(default)]
    pub decode: decode::Options,
}

/// What a recipe gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Result {
    /// How it is measured.
    pub metric: String,
    /// What others got, and who.
    #[serde(default)]
    pub published: String,
    /// What we got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    /// In so many minutes of training on two cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Its `metrics.jsonl`, beside the recipe.
    #[serde(default)]
    pub log: String,
}

/// How evaluations during training decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Evaluate {
    /// `bleu`, `wer` or `loss`.
    pub by: String,
    /// So many sentences of the validation part are translated, greedily; 0 for all.
    pub sentences: usize,
}

impl Default for Evaluate {
    fn default() -> Evaluate {
        Evaluate { by: "bleu".to_string(), sentences: 500 }
    }
}

impl Recipe {
    /// Reads a recipe, with values that stand in for its own: `train.steps=100`.
    pub fn read(path: &Path, overrides: &[String]) -> Outcome<Recipe> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        Recipe::parse(&text, overrides).map_err(|message| Error::file(path, message))
    }

    /// The same from text.
    pub fn parse(text: &str, overrides: &[String]) -> Outcome<Recipe, String> {
        let mut table: toml::Table = toml::from_str(text).map_err(|e| e.to_string())?;
        for each in overrides {
            let (key, value) = each
                .split_once('=')
                .ok_or_else(|| format!("{each:?}: an override is KEY=VALUE, as train.lr=0.001"))?;
            set(&mut table, key.trim(), value.trim())?;
        }
        let recipe: Recipe =
            table.try_into().map_err(|e: toml::de::Error| e.message().to_string())?;
        if recipe.task != "translate" {
            return Err(format!("task: got {:?}, need \"translate\"", recipe.task));
        }
        if !["bleu", "wer", "loss"].contains(&recipe.evaluate.by.as_str()) {
            let by = &recipe.evaluate.by;
            return Err(format!("evaluate.by: got {by:?}, need bleu, wer or loss"));
        }
        Ok(recipe)
    }

    /// As TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("recipes are plain data")
    }
}

/// Puts a value at a dotted key; what does not read as TOML is a string.
fn set(table: &mut toml::Table, key: &str, value: &str) -> Outcome<(), String> {
    let read: Outcome<toml::Table, _> = toml::from_str(&format!("x = {value}"));
    let value = match read {
        Ok(mut table) => table.remove("x").expect("it was just read"),
        Err(_) => toml::Value::String(value.to_string()),
    };
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().filter(|last| !last.is_empty());
    let last = last.ok_or_else(|| format!("{key:?} is not a key"))?;
    let mut inside = table;
    for part in parts {
        let entry = inside.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        inside = entry.as_table_mut().ok_or_else(|| format!("{key}: {part} is not a table"))?;
    }
    inside.insert(last.to_string(), value);
    Ok(())
}

impl Recipe {
    /// Whether what is written has no capital letters.
    pub fn lowercase(&self) -> bool {
        let target = self.vocabulary.target.as_ref().or(self.vocabulary.shared.as_ref());
        target.is_some_and(|vocabulary| vocabulary.lowercase)
    }
}
