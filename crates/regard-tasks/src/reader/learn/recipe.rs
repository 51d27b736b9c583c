//! A recipe with `task = "classify"`, `"tag"`, `"answer"` or `"rerank"`.

use super::{TextObjective, TextTask, evaluate};
use crate::answer::learn as answer;
use crate::classify::learn as classify;
use crate::data::labelled::ColumnSelection;
use crate::data::{Part, Split, Vectors};
use crate::evaluation::{EvaluationData, Report};
use crate::recipe::{Origin, Prepared, Task, known_text_keys, recipe};
use crate::rerank::learn as rerank;
use crate::tag::learn as tag;
use crate::text::{Tokenizer, Train, VocabularyKind};
use crate::{own, say, train};
use regard_models::{Error, ModelFiles, Result, text};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Value of `data.set` for custom files.
const FILES: &str = own::FILES;
/// Fraction of the training file, in thousandths, held out if there is no validation file.
const SHARE: Split = Split { valid: 100, test: 0 };

recipe! {
    for "classify" "tag" "answer" "rerank";
    /// Pretrained model whose body and vocabulary are used: a folder, a run, or a name that the
    /// caller resolves ([`Task::set_origin`]). `None` to train both from scratch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Version of that model, if it has versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Folder that `from` was resolved to.
    #[serde(skip)]
    found: Option<PathBuf>,
    /// Data sets and files.
    pub data: Data,
    /// Tokenizer to train; `None` to use that of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<ReaderVocabulary>,
    /// `config.json` of the model, without the vocabulary size; overrides that of `from`.
    #[serde(default = "nothing")]
    pub model: Value,
    /// Options of the training loop.
    #[serde(default)]
    pub train: train::TrainOptions,
}

fn nothing() -> Value {
    json!({})
}

/// `[data]` of a recipe: data sets and files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of a known data set, or `files`: training and held-out parts.
    pub set: String,
    /// Another set whose validation and test parts are used, such as sentences to evaluate a model
    /// trained on phrases. The test part is never used for model selection, and examples that occur
    /// in it are removed from training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
    /// With `files`: the training file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<PathBuf>,
    /// With `files`: the validation file. Without it a tenth of the training file is held out, by a
    /// hash of each text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<PathBuf>,
    /// With `files`: the test file, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// With `files` for `classify`: the text columns, by name or number from 1, separated by
    /// commas: `title,description`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "word_or_number")]
    pub text: Option<String>,
    /// With `files` for `classify`: the label column, by name or number from 1.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "word_or_number")]
    pub label: Option<String>,
    /// With `files` for `classify`: whether the first row holds the column names; `None` to detect
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Maximum number of tokens of a text, 128 by default; longer ones are truncated or split.
    #[serde(default = "longest")]
    pub max_tokens: usize,
}

fn longest() -> usize {
    128
}

/// Deserialises the name of a column, its number, or a list of them.
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
    /// Returns the columns that the recipe selects.
    pub(crate) fn asked(&self) -> ColumnSelection {
        let Data { text, label, header, .. } = self;
        let (text, label, header) = (text.clone(), label.clone(), *header);
        ColumnSelection { text, label, header, ..ColumnSelection::default() }
    }

    /// Whether the validation part is a fraction of the training file.
    pub(crate) fn shares(&self) -> bool {
        self.set == FILES && self.held_out.is_none() && self.valid.is_none()
    }

    /// Whether an example of the training file belongs to a part, by its text.
    pub(crate) fn keeps(&self, part: Part, text: &str) -> bool {
        !self.shares() || part == Part::Test || SHARE.part(text) == part
    }

    /// Returns a description of a part's source.
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

    /// Returns the key that names the set of a part, and the set's name.
    pub(crate) fn named(&self, part: Part) -> (&'static str, &str) {
        match (part, &self.held_out) {
            (Part::Valid | Part::Test, Some(set)) => ("data.held_out", set),
            _ => ("data.set", &self.set),
        }
    }

    /// Checks that all files exist, before any is read.
    fn check_files(&self) -> Result<()> {
        for part in [Part::Train, Part::Valid, Part::Test] {
            if let (Some(path), FILES) = (self.path(part), self.set_of(part)) {
                own::there(part.name(), path)?;
            }
        }
        Ok(())
    }

    /// Returns the set that a part is taken from.
    pub(crate) fn set_of(&self, part: Part) -> &str {
        self.named(part).1
    }

    /// Returns, with `files`, the file of a part.
    pub(crate) fn file(&self, part: Part) -> Result<&Path> {
        // Without a validation file, a fraction of the training file.
        let part = if part == Part::Valid && self.shares() { Part::Train } else { part };
        own::file(part.name(), self.path(part), "a file of examples")
    }

    /// Whether a set has a test part; all known sets do.
    pub(crate) fn has_test(&self, set: &str) -> bool {
        set != FILES || self.test.is_some()
    }

    /// Whether the training data are known.
    pub(crate) fn has_train(&self) -> bool {
        self.set != FILES || self.train.is_some()
    }

    /// Returns a copy with the held-out parts of the requested set, if any.
    pub(crate) fn on(&self, on: &EvaluationData) -> Data {
        match on {
            EvaluationData::Set { set: Some(set), .. } => {
                Data { held_out: Some(set.clone()), ..self.clone() }
            }
            _ => self.clone(),
        }
    }
}

/// `[vocabulary]` of a recipe: the tokenizer to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReaderVocabulary {
    /// Kind of tokenizer: `wordpiece`, `bytes`, `bpe`, `unigram`, `word`, `char` or `treebank`.
    pub kind: String,
    /// Maximum vocabulary size, including special tokens.
    pub size: usize,
    /// Whether text is lower-cased.
    #[serde(default)]
    pub lowercase: bool,
    /// Minimum number of occurrences of a token, 1 by default; rarer ones are left out.
    #[serde(default = "once")]
    pub min_frequency: u64,
    /// Pretrained word vectors that initialise the embeddings: a known data set, or a GloVe or
    /// word2vec file. Their words are added to the vocabulary as long as there is room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<String>,
}

fn once() -> u64 {
    1
}

impl ReaderVocabulary {
    /// Trains the tokenizer on texts.
    pub(crate) fn learn<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Result<Tokenizer> {
        let known = match &self.vectors {
            Some(name) => Vectors::named(name, None)?,
            None => Vectors::default(),
        };
        self.training()?.run_beside(texts, known.words())
    }

    /// Returns the options of the tokenizer's training.
    pub(crate) fn training(&self) -> Result<Train> {
        let kind: VocabularyKind =
            self.kind.parse().map_err(|e| Error::invalid(format!("vocabulary.kind: {e}")))?;
        let ReaderVocabulary { size, lowercase, min_frequency, .. } = *self;
        Ok(Train { lowercase, min_frequency, ..Train::new(kind, size) })
    }
}

impl Recipe {
    /// Returns the folder of the pretrained model, if there is one.
    pub(crate) fn origin(&self) -> Result<Option<PathBuf>> {
        let named = || self.from.as_ref().map(PathBuf::from);
        self.found.clone().or_else(named).map(|folder| train::resolve(&folder)).transpose()
    }

    /// Returns the tokenizer of the pretrained model, or trains one on the texts.
    pub(crate) fn tokenizer<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Result<Tokenizer> {
        if let Some(folder) = self.origin()? {
            return Tokenizer::load(folder);
        }
        self.vocabulary.as_ref().expect("checked when it was read").learn(texts)
    }

    /// Returns `config.json` of the model.
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

    fn study<G: TextTask + 'static>(&self, tokenizer: Tokenizer, goal: G) -> Result<Prepared> {
        let learner = TextObjective::new(self, tokenizer, goal)?;
        let about = learner.objective().about(learner.millions());
        Ok(Prepared { learner: Box::new(learner), about })
    }
}

impl Task for Recipe {
    fn check(&self) -> Result<(), String> {
        if self.from.is_none() && self.revision.is_some() {
            return Err("revision: is the version of the model in `from`, which is not set".into());
        }
        match (&self.from, &self.vocabulary) {
            (Some(_), Some(_)) => {
                return Err("vocabulary: cannot be set with `from`, which has its own".into());
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

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        (self.goal()?.evaluate)(self, model, on)
    }
}

/// A task whose examples are texts.
struct GoalRow {
    task: &'static str,
    decides: &'static str,
    prepare: fn(&Recipe) -> Result<Prepared>,
    evaluate: fn(&Recipe, &ModelFiles, &EvaluationData) -> Result<Report>,
}

impl GoalRow {
    const fn of<G: TextTask + 'static>(task: &'static str) -> GoalRow {
        let prepare = |recipe: &Recipe| {
            let (tokenizer, goal) = G::read(recipe)?;
            recipe.study(tokenizer, goal)
        };
        GoalRow { task, decides: G::DECIDES, prepare, evaluate: evaluate::<G> }
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
