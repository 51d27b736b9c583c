//! A recipe with `task = "permute"`.

use super::{Parts, Permutation, Targets, exam};
use crate::about::{self, About};
use crate::data::documents::{self, Document, Documents};
use crate::data::known::{self, DataSet, Format};
use crate::data::pairs::Tsv;
use crate::data::split::Key;
use crate::data::{Pair, Part, Running, Split, sets};
use crate::examine::{On, Report};
use crate::generate::filling::Filling;
use crate::reader::Vocabulary;
use crate::recipe::{Prepared, Task, recipe};
use crate::text::{Form, Kind, Normalise, Spaces, Tokenizer};
use crate::{own, say, train};
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

recipe! {
    for "permute";
    /// Tokens of a sequence at most, with those around its parts.
    #[serde(default = "context")]
    pub context: usize,
    /// Tokens before a sequence, in its document, that it is told from too; 0 for none.
    #[serde(default)]
    pub memory: usize,
    /// Which text.
    pub data: Data,
    /// Which tokens.
    pub vocabulary: Vocabulary,
    /// Which words are told.
    #[serde(default)]
    pub targets: Targets,
    /// Sequences of two parts. Without it documents are running text, and half of all second
    /// parts of pairs are from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Spans of the held-out text that the model is asked to fill.
    #[serde(default)]
    pub filling: Filling,
    /// `config.json` of the model, without the size of the vocabulary.
    pub model: Value,
    /// How to train.
    #[serde(default)]
    pub train: train::Options,
}

fn context() -> usize {
    128
}

/// Which text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// The name of a known data set, or `files`, or `pairs`.
    pub set: String,
    /// With `files`: plain text, a blank line between documents. With `pairs`: a first part, a tab
    /// and a second part in every line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

/// What is learned from, and what is held out.
#[derive(Clone, Debug)]
pub enum Corpus {
    /// Documents.
    Running(Running),
    /// Sentences of two languages: the first parts of sequences, and the second ones.
    Pairs([Vec<Pair>; 2]),
}

impl Data {
    /// Reads it.
    pub fn read(&self) -> Result<Corpus> {
        self.files.iter().try_for_each(|file| own::there("files", file))?;
        match known::named("permute", ("data.set", &self.set))? {
            Some(DataSet { format: Format::Documents(read), .. }) => {
                Ok(Corpus::Running(Running::of(read()?)))
            }
            Some(DataSet { format: Format::Tatoeba(file, _), name }) => {
                pairs(&[sets::find(name)?.join(file)])
            }
            Some(set) => known::unread(set),
            None if self.set == own::PAIRS => pairs(&self.files),
            None => Ok(Corpus::Running(Running::files(&self.files)?)),
        }
    }

    /// Another set.
    pub(super) fn of(&self, set: &str) -> Data {
        Data { set: set.to_string(), files: self.files.clone() }
    }

    /// All of a file, of which nothing is learned.
    pub(super) fn whole(&self, path: &Path) -> Result<Corpus> {
        let known = known::set("permute", &self.set).map(|set| &set.format);
        match matches!(known, Some(Format::Tatoeba(..))) || self.set == own::PAIRS {
            true => Ok(Corpus::Pairs([vec![], Tsv::FORWARD.read(path)?])),
            false => {
                let documents = Documents::open(&[path], documents::Form::BlankLines)?;
                let text = |document: Result<Document>| Ok(document?.text() + "\n");
                let valid = documents.map(text).collect::<Result<_>>()?;
                Ok(Corpus::Running(Running { train: vec![], valid }))
            }
        }
    }
}

/// Pairs that are learned from, and those that are held out, by a hash of their first parts. What
/// translators are tested on is left out of both.
fn pairs(files: &[PathBuf]) -> Result<Corpus> {
    if files.is_empty() {
        let message = "data.files: data.set=pairs needs it; set data.files to a list of files with a \
                       first text, a tab and a second text in each line: data.files=[\"FILE\"]";
        return Err(Error::invalid(message));
    }
    let mut all = vec![];
    for file in files {
        all.extend(Tsv::FORWARD.read(file)?);
    }
    let part = |part| Split::default().pairs(&all, Key::Source, part);
    Ok(Corpus::Pairs([part(Part::Train), part(Part::Valid)]))
}

impl Recipe {
    /// Learns the vocabulary, of letters or bytes as [`generate`](crate::generate) does: they are
    /// the text itself.
    pub(super) fn tokenizer(&self, corpus: &Corpus) -> Result<Tokenizer> {
        let mut train = self.vocabulary.training()?;
        if matches!(train.kind, Kind::ByteLevel | Kind::Char) {
            train.normalise = Normalise { form: Form::Keep, spaces: Spaces::Keep, simplify: false };
        }
        match corpus {
            Corpus::Running(text) => train.run(&text.train),
            Corpus::Pairs([pairs, _]) => {
                train.run(pairs.iter().flat_map(|pair| [&pair.source, &pair.target]))
            }
        }
    }
}

impl Task for Recipe {
    fn check(&self) -> Result<(), String> {
        if self.context < 8 {
            return Err(format!("context: got {}, need at least 8 tokens", self.context));
        }
        self.targets.check()?;
        self.filling.check(self.context)?;
        self.parts.map_or(Ok(()), |parts| parts.check())
    }

    fn decides(&self) -> &str {
        "loss"
    }

    fn prepare(&self) -> Result<Prepared> {
        let corpus = self.data.read()?;
        let mut about = About::default();
        let from = match self.data.files.is_empty() {
            true => self.data.set.clone(),
            false => about::paths(&self.data.files),
        };
        let counts = match &corpus {
            Corpus::Running(Running { train, valid }) => {
                [train, valid].map(|part| say::many(part.len(), "document"))
            }
            Corpus::Pairs(parts) => parts.each_ref().map(|part| say::many(part.len(), "pair")),
        };
        for (part, count) in ["train", "valid"].into_iter().zip(counts) {
            let share = if part == "valid" { "a share of " } else { "" };
            about.part(part, format!("{share}{from}"), count);
        }
        let learner = Permutation::new(self, &corpus)?;
        let about = about.with_sizes(learner.objective().about(learner.millions()));
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn examine(&self, model: &ModelFiles, on: &On) -> Result<Report> {
        exam::examine(self, model, on)
    }
}
