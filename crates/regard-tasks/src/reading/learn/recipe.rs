//! A recipe with `task = "classify"`, `"tag"` or `"answer"`.

use super::{Goal, Study, answer, classify, tag};
use crate::data::Vectors;
use crate::recipe::{Prepared, Published, Task, task_fields};
use crate::text::{Kind, Tokenizer, Train};
use crate::train;
use regard_models::{Error, Result, checkpoint};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
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
    /// The folder of a model or of a run, whose body and vocabulary are taken; without one, both begin anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// Which examples.
    pub data: Data,
    /// Which tokens, if they are not another model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<Vocabulary>,
    /// `config.json` of the model, without the size of the vocabulary; over that of `from`.
    #[serde(default = "nothing")]
    pub model: Value,
    /// How to train.
    #[serde(default)]
    pub train: train::Options,
}

fn nothing() -> Value {
    json!({})
}

/// Which examples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// The name of a known data set, or `files`.
    pub set: String,
    /// With `files`: what is learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<PathBuf>,
    /// With `files`: what decisions are made on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<PathBuf>,
    /// Tokens of a text at most; the rest is cut, or is another window.
    #[serde(default = "longest")]
    pub max_tokens: usize,
}

fn longest() -> usize {
    128
}

impl Data {
    /// The two files of `files`.
    pub(super) fn files(&self) -> Result<[&PathBuf; 2]> {
        match (&self.train, &self.valid) {
            (Some(train), Some(valid)) => Ok([train, valid]),
            _ => Err(Error::invalid("data: `files` need data.train and data.valid")),
        }
    }
}

/// How texts are cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vocabulary {
    /// `wordpiece`, `bytes`, `bpe`, `unigram`, `word`, `char` or `treebank`.
    pub kind: String,
    /// At most so many rows, with the special ones.
    pub size: usize,
    /// Whether capital letters become small ones.
    #[serde(default)]
    pub lowercase: bool,
    /// What is rarer is left out.
    #[serde(default = "once")]
    pub min_frequency: u64,
    /// Vectors that words begin with: the name of a known data set, or a file of GloVe's or
    /// word2vec's. Words that have one belong to the vocabulary, as long as there is room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<String>,
}

fn once() -> u64 {
    1
}

impl Vocabulary {
    /// Learns it from texts.
    pub(crate) fn learn<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Result<Tokenizer> {
        let kind: Kind =
            self.kind.parse().map_err(|e| Error::invalid(format!("vocabulary.kind: {e}")))?;
        let Vocabulary { size, lowercase, min_frequency, .. } = *self;
        let known = match &self.vectors {
            Some(name) => Vectors::named(name, None)?,
            None => Vectors::default(),
        };
        let train = Train { lowercase, min_frequency, ..Train::new(kind, size) };
        train.run_beside(texts, known.words())
    }
}

impl Recipe {
    /// From what was read.
    pub fn from_table(table: toml::Table) -> Result<Recipe, String> {
        let recipe: Recipe =
            table.try_into().map_err(|e: toml::de::Error| e.message().to_string())?;
        match (&recipe.from, &recipe.vocabulary) {
            (Some(_), Some(_)) => Err("vocabulary: it is that of the model in `from`".into()),
            (None, None) => Err("vocabulary: need one, or a model in `from`".into()),
            _ => Ok(recipe),
        }
    }

    /// The tokenizer: another model's, or learned from the texts.
    pub(super) fn tokenizer<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Result<Tokenizer> {
        if let Some(folder) = &self.from {
            return Tokenizer::load(train::resolve(folder)?);
        }
        self.vocabulary.as_ref().expect("checked when it was read").learn(texts)
    }

    /// `config.json` of the model.
    pub(super) fn config(&self, tokenizer: &Tokenizer) -> Result<Value> {
        let mut config = match &self.from {
            Some(folder) => checkpoint::read_config(&train::resolve(folder)?)?,
            None => json!({
                "vocab_size": tokenizer.size(), "pad_token_id": tokenizer.special().pad,
            }),
        };
        if let (None, Some(alphabet)) = (&self.from, tokenizer.alphabet()) {
            config["alphabet_size"] = alphabet.size().into();
            config["unk_token_id"] = tokenizer.special().need_unk()?.into();
        }
        let own = self.model.as_object();
        let own = own.ok_or_else(|| Error::invalid("model: need a table"))?;
        for (key, value) in own {
            config[key] = value.clone();
        }
        Ok(config)
    }

    fn study<G: Goal + 'static>(&self, (tokenizer, goal): (Tokenizer, G)) -> Result<Prepared> {
        let learner = Study::new(self, tokenizer, goal)?;
        let about = learner.about();
        Ok(Prepared { learner: Box::new(learner), about })
    }
}

impl Task for Recipe {
    task_fields!();

    fn decides(&self) -> &str {
        match self.task.as_str() {
            "classify" => classify::Classes::DECIDES,
            "tag" => tag::Tags::DECIDES,
            _ => answer::Questions::DECIDES,
        }
    }

    fn prepare(&self) -> Result<Prepared> {
        match self.task.as_str() {
            "classify" => self.study(classify::Classes::read(self)?),
            "tag" => self.study(tag::Tags::read(self)?),
            "answer" => self.study(answer::Questions::read(self)?),
            other => {
                Err(Error::invalid(format!("task: got {other:?}, need classify, tag or answer")))
            }
        }
    }
}
