//! A recipe with `task = "language"`.

use super::Language;
use crate::data::{Characters, Running, sets};
use crate::filling::Filling;
use crate::recipe::{Prepared, Published, Task, task_fields};
use crate::text::{Form, Kind, Normalise, Spaces, Tokenizer, Train};
use crate::{decode, train};
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

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
    pub result: Option<Published>,
    /// Which text.
    pub data: Data,
    /// Which tokens.
    pub vocabulary: Vocabulary,
    /// `config.json` of the model, without the size of the vocabulary.
    pub model: Value,
    /// Tokens that are read at once.
    #[serde(default = "context")]
    pub context: usize,
    /// How to train.
    #[serde(default)]
    pub train: train::Options,
    /// Spans of the held-out text that the model is asked to fill, if any, from what stands
    /// before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filling: Option<Filling>,
    /// How the model likes to write.
    #[serde(default)]
    pub decode: decode::Options,
}

fn context() -> usize {
    256
}

/// Which text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// The name of a known data set, or `files`.
    pub set: String,
    /// With `files`: what is learned from. The last tenth is held out if there is no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<PathBuf>,
    /// With `files`: what decisions are made on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<PathBuf>,
}

impl Data {
    /// Reads the text, and what is held out of it.
    pub fn read(&self) -> Result<Running> {
        match (self.set.as_str(), &self.train) {
            ("tinyshakespeare", None) => {
                let file = sets::find("tinyshakespeare")?.join("input.txt");
                Ok(Characters::read(file)?.into())
            }
            ("wikitext-2", None) => Running::wikitext2(),
            ("files", Some(train)) => {
                let split = Characters::read(train)?;
                let Some(valid) = &self.valid else { return Ok(split.into()) };
                let whole = |parts: Characters| parts.train + &parts.valid;
                let valid = whole(Characters::read(valid)?);
                Ok(Characters { train: whole(split), valid }.into())
            }
            ("files", None) => Err(Error::invalid("data.train: need a file with `files`")),
            (other, _) => Err(Error::invalid(format!(
                "data.set: got {other:?}, need tinyshakespeare or wikitext-2 (without \
                 data.train), or files"
            ))),
        }
    }
}

/// How the text is cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vocabulary {
    /// `char`, or `bytes` for byte-level BPE.
    pub kind: String,
    /// At most so many rows, with the special ones.
    #[serde(default = "size")]
    pub size: usize,
}

fn size() -> usize {
    1000
}

impl Vocabulary {
    /// Learns the vocabulary. Nothing is made equal: what is written shall be the text itself.
    pub fn train<S: AsRef<str>>(&self, texts: &[S]) -> Result<Tokenizer> {
        let kind: Kind =
            self.kind.parse().map_err(|e| Error::invalid(format!("vocabulary.kind: {e}")))?;
        let normalise = Normalise { form: Form::Keep, spaces: Spaces::Keep, simplify: false };
        Train { normalise, ..Train::new(kind, self.size) }.run(texts)
    }
}

impl Recipe {
    /// From what was read.
    pub fn from_table(table: toml::Table) -> Result<Recipe, String> {
        let recipe: Recipe =
            table.try_into().map_err(|e: toml::de::Error| e.message().to_string())?;
        if !["char", "bytes"].contains(&recipe.vocabulary.kind.as_str()) {
            let kind = &recipe.vocabulary.kind;
            return Err(format!("vocabulary.kind: got {kind:?}, need char or bytes here"));
        }
        if recipe.context == 0 {
            return Err("context: got 0, need at least 1 token".into());
        }
        recipe.filling.map_or(Ok(()), |filling| filling.check(recipe.context))?;
        Ok(recipe)
    }
}

impl Task for Recipe {
    task_fields!();

    fn decides(&self) -> &str {
        "loss"
    }

    fn prepare(&self) -> Result<Prepared> {
        let learner = Language::new(self, &self.data.read()?)?;
        let about = learner.about();
        Ok(Prepared { learner: Box::new(learner), about })
    }
}
