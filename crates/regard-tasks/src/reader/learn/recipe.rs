//! A recipe with `task = "classify"`, `"tag"`, `"answer"` or `"rerank"`.

use super::{Goal, Study, examine};
use crate::answer::learn as answer;
use crate::classify::learn as classify;
use crate::data::labelled::Asked;
use crate::data::{Part, Split, Vectors};
use crate::examine::{On, Report};
use crate::recipe::{Origin, Prepared, Task, known_text_keys, recipe};
use crate::rerank::learn as rerank;
use crate::tag::learn as tag;
use crate::text::{Kind, Tokenizer, Train};
use crate::{own, say, train};
use regard_models::{Error, ModelFiles, Result, text};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The set of one's own files.
const FILES: &str = own::FILES;
/// Share of the training file, in thousandths, held out if there is no validation file.
const SHARE: Split = Split { valid: 100, test: 0 };

recipe! {
    for "classify" "tag" "answer" "rerank";
    /// A model whose body and vocabulary are taken: the folder of one or of a run, or a name that
    /// somebody else resolves ([`Task::set_origin`]); without one, both begin anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Which version of that model, where it has versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Where that model was found.
    #[serde(skip)]
    found: Option<PathBuf>,
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
    /// The name of a known data set, or `files`: what is learned from, and what is held out.
    pub set: String,
    /// Another set whose validation part decides, and whose test part is reported: phrases may be
    /// learned from, and sentences decide. Nothing is ever decided on a test part, and what it
    /// has in common with what is learned from is not learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
    /// With `files`: what is learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<PathBuf>,
    /// With `files`: what decisions are made on. Without it a tenth of the training file is held
    /// out for that, by a hash of each text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<PathBuf>,
    /// With `files`: what is reported, if there is such a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// For `files` to classify: the text columns, by their names or numbers from 1,
    /// with commas between them: `title,description`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "word_or_number")]
    pub text: Option<String>,
    /// Likewise, the column that is the label.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "word_or_number")]
    pub label: Option<String>,
    /// Likewise, whether the first row has the names of columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Tokens of a text at most; the rest is cut, or is another window.
    #[serde(default = "longest")]
    pub max_tokens: usize,
}

fn longest() -> usize {
    128
}

/// The name of a column, or its number.
fn word_or_number<'d, D: serde::Deserializer<'d>>(from: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(from)? {
        Value::String(name) => Ok(Some(name)),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Array(names) => {
            let one = |name: &Value| name.as_str().map_or(name.to_string(), str::to_string);
            Ok(Some(names.iter().map(one).collect::<Vec<_>>().join(",")))
        }
        _ => Err(serde::de::Error::custom("need the name of a column, or its number from 1")),
    }
}

impl Data {
    /// Columns that the recipe chooses.
    pub(crate) fn asked(&self) -> Asked {
        Asked { text: self.text.clone(), label: self.label.clone(), header: self.header }
    }

    /// Whether what is held out is a share of the training file.
    pub(crate) fn shares(&self) -> bool {
        self.set == FILES && self.held_out.is_none() && self.valid.is_none()
    }

    /// Whether an example of the training file is of a part, by its text.
    pub(crate) fn keeps(&self, part: Part, text: &str) -> bool {
        !self.shares() || part == Part::Test || SHARE.part(text) == part
    }

    /// Where a part is from, in words.
    pub(crate) fn source(&self, part: Part) -> String {
        match (self.set_of(part), part) {
            (FILES, Part::Valid) if self.shares() => {
                let train = self.train.as_ref().map(|path| path.display().to_string());
                format!("a tenth of {} (data.valid is not set)", train.unwrap_or_default())
            }
            (FILES, part) => {
                self.path(part).as_ref().map_or(FILES.into(), |path| path.display().to_string())
            }
            (set, _) => set.to_string(),
        }
    }

    fn path(&self, part: Part) -> &Option<PathBuf> {
        part.of([&self.train, &self.valid, &self.test])
    }

    /// The key that names the set of a part, and its name.
    pub(crate) fn named(&self, part: Part) -> (&'static str, &str) {
        match (part, &self.held_out) {
            (Part::Valid | Part::Test, Some(set)) => ("data.held_out", set),
            _ => ("data.set", &self.set),
        }
    }

    /// That every file which is named is there, before any is read.
    fn check_files(&self) -> Result<()> {
        for part in [Part::Train, Part::Valid, Part::Test] {
            if let (Some(path), FILES) = (self.path(part), self.set_of(part)) {
                own::there(part.name(), path)?;
            }
        }
        Ok(())
    }

    /// The set that a part is taken from.
    pub(crate) fn set_of(&self, part: Part) -> &str {
        self.named(part).1
    }

    /// With `files`, the file of a part.
    pub(crate) fn file(&self, part: Part) -> Result<&Path> {
        // Without a file of its own, a share of the training file.
        let part = if part == Part::Valid && self.shares() { Part::Train } else { part };
        own::file(part.name(), self.path(part), "a file of examples")
    }

    /// Whether a set has a test part; all that are known do.
    pub(crate) fn has_test(&self, set: &str) -> bool {
        set != FILES || self.test.is_some()
    }

    /// Whether it is known what was learned from.
    pub(crate) fn has_train(&self) -> bool {
        self.set != FILES || self.train.is_some()
    }

    /// The same with other parts held out, if a set is asked for.
    pub(crate) fn on(&self, on: &On) -> Data {
        match on {
            On::Set { set: Some(set), .. } => Data { held_out: Some(set.clone()), ..self.clone() },
            _ => self.clone(),
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
        let known = match &self.vectors {
            Some(name) => Vectors::named(name, None)?,
            None => Vectors::default(),
        };
        self.training()?.run_beside(texts, known.words())
    }

    /// How it is learned.
    pub(crate) fn training(&self) -> Result<Train> {
        let kind: Kind =
            self.kind.parse().map_err(|e| Error::invalid(format!("vocabulary.kind: {e}")))?;
        let Vocabulary { size, lowercase, min_frequency, .. } = *self;
        Ok(Train { lowercase, min_frequency, ..Train::new(kind, size) })
    }
}

impl Recipe {
    /// The folder of the model that it begins with.
    pub(crate) fn origin(&self) -> Result<Option<PathBuf>> {
        let named = || self.from.as_ref().map(PathBuf::from);
        self.found.clone().or_else(named).map(|folder| train::resolve(&folder)).transpose()
    }

    /// The tokenizer: another model's, or learned from the texts.
    pub(crate) fn tokenizer<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Result<Tokenizer> {
        if let Some(folder) = self.origin()? {
            return Tokenizer::load(folder);
        }
        self.vocabulary.as_ref().expect("checked when it was read").learn(texts)
    }

    /// `config.json` of the model.
    pub(crate) fn config(&self, tokenizer: &Tokenizer) -> Result<Value> {
        let mut config = match self.origin()? {
            Some(folder) => text::read_config(&folder)?,
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
        known_text_keys(&self.model, &config)?;
        Ok(config)
    }

    fn study<G: Goal + 'static>(&self, (tokenizer, goal): (Tokenizer, G)) -> Result<Prepared> {
        let learner = Study::new(self, tokenizer, goal)?;
        let about = learner.objective().about(learner.millions());
        Ok(Prepared { learner: Box::new(learner), about })
    }
}

impl Task for Recipe {
    fn check(&self) -> Result<(), String> {
        if self.from.is_none() && self.revision.is_some() {
            return Err("revision: it is that of a model in `from`, and there is none".into());
        }
        match (&self.from, &self.vocabulary) {
            (Some(_), Some(_)) => {
                return Err("vocabulary: it is that of the model in `from`".into());
            }
            (None, None) => return Err("vocabulary: need one, or a model in `from`".into()),
            _ => {}
        }
        let Data { text, label, header, .. } = &self.data;
        let keys =
            [("text", text.is_some()), ("label", label.is_some()), ("header", header.is_some())];
        match keys.iter().find(|(_, set)| *set && self.task != "classify") {
            Some((key, _)) => Err(format!(
                "data.{key} names columns of a table for task classify; files of task {} have none",
                self.task
            )),
            None => Ok(()),
        }
    }

    fn origin(&self) -> Option<Origin<'_>> {
        Some(Origin { model: self.from.as_deref()?, revision: self.revision.as_deref() })
    }

    fn set_origin(&mut self, folder: PathBuf, version: Option<String>) {
        self.found = Some(folder);
        self.revision = version.or(self.revision.take());
    }

    fn of_trained(_config: &Value) -> String {
        "from = ''\n[data]\nmax_tokens = 512".into()
    }

    fn decides(&self) -> &str {
        self.goal().map_or("", |goal| goal.decides)
    }

    fn prepare(&self) -> Result<Prepared> {
        self.data.check_files()?;
        (self.goal()?.prepare)(self)
    }

    fn examine(&self, model: &ModelFiles, on: &On) -> Result<Report> {
        (self.goal()?.examine)(self, model, on)
    }
}

/// A task whose examples are texts.
struct GoalRow {
    task: &'static str,
    decides: &'static str,
    prepare: fn(&Recipe) -> Result<Prepared>,
    examine: fn(&Recipe, &ModelFiles, &On) -> Result<Report>,
}

impl GoalRow {
    const fn of<G: Goal + 'static>(task: &'static str) -> GoalRow {
        let prepare = |recipe: &Recipe| recipe.study(G::read(recipe)?);
        GoalRow { task, decides: G::DECIDES, prepare, examine: examine::<G> }
    }
}

/// Every task whose examples are texts.
const GOALS: &[GoalRow] = &[
    GoalRow::of::<classify::Classes>("classify"),
    GoalRow::of::<tag::Tags>("tag"),
    GoalRow::of::<answer::Questions>("answer"),
    GoalRow::of::<rerank::Pairs>("rerank"),
];

impl Recipe {
    fn goal(&self) -> Result<&'static GoalRow> {
        let known: Vec<&str> = GOALS.iter().map(|goal| goal.task).collect();
        let found = GOALS.iter().find(|goal| goal.task == self.task);
        found.ok_or_else(|| Error::invalid(say::unknown("task", &self.task, &known)))
    }
}
