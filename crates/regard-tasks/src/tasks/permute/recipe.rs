//! A recipe with `task = "permute"`.

use super::{Parts, Permutation, Targets, evaluate};
use crate::about::{self, About};
use crate::data::documents::{self, Document, Documents};
use crate::data::known::{self, DataSet, Format};
use crate::data::pairs::Tsv;
use crate::data::split::SplitKey;
use crate::data::{Pair, Part, Split, TextCorpus, sets};
use crate::evaluation::{EvaluationData, Report};
use crate::generate::filling::Filling;
use crate::reader::ReaderVocabulary;
use crate::recipe::{Prepared, Task, recipe};
use crate::text::{Normalise, SpaceHandling, Tokenizer, UnicodeForm, VocabularyKind};
use crate::{own, say, train};
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

recipe! {
    for "permute";
    /// Maximum number of tokens of a sequence, special tokens included; 128 by default.
    #[serde(default = "context")]
    pub context: usize,
    /// Number of preceding tokens of the document used as memory; 0, the default, for none.
    #[serde(default)]
    pub memory: usize,
    /// Training text.
    pub data: Data,
    /// Vocabulary to train.
    pub vocabulary: ReaderVocabulary,
    /// Selection of the tokens to predict.
    #[serde(default)]
    pub targets: Targets,
    /// Settings for sequences of two parts. By default documents are used as running text, and half
    /// of the second parts of pairs are replaced by random ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Masked spans of the validation text that are predicted at each evaluation.
    #[serde(default)]
    pub filling: Filling,
    /// `config.json` of the model, without the size of the vocabulary.
    pub model: Value,
    /// Training options.
    #[serde(default)]
    pub train: train::TrainOptions,
}

fn context() -> usize {
    128
}

/// Text to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of a known data set, `files` or `pairs`.
    pub set: String,
    /// With `files`: text files with a blank line between documents. With `pairs`: files with a
    /// first part, a tab and a second part on every line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

/// Training and validation text.
#[derive(Clone, Debug)]
pub enum Corpus {
    /// Documents.
    Running(TextCorpus),
    /// Training and validation pairs of sentences: the first and the second parts of sequences.
    Pairs([Vec<Pair>; 2]),
}

impl Data {
    /// Reads the training and the validation part.
    pub fn read(&self) -> Result<Corpus> {
        self.files.iter().try_for_each(|file| own::there("files", file))?;
        match known::named("permute", "data.set", &self.set)? {
            Some(DataSet { format: Format::Documents(read), .. }) => {
                Ok(Corpus::Running(TextCorpus::of(read()?)))
            }
            Some(DataSet { format: Format::Tatoeba(file, _), name }) => {
                pairs(&[sets::find(name)?.join(file)])
            }
            Some(set) => known::unread(set),
            None if self.set == own::PAIRS => pairs(&self.files),
            None => Ok(Corpus::Running(TextCorpus::files(&self.files)?)),
        }
    }

    /// Returns the same settings with another set.
    pub(super) fn of(&self, set: &str) -> Data {
        Data { set: set.to_string(), files: self.files.clone() }
    }

    /// Reads a whole file as validation part.
    pub(super) fn whole(&self, path: &Path) -> Result<Corpus> {
        let known = known::set("permute", &self.set).map(|set| &set.format);
        match matches!(known, Some(Format::Tatoeba(..))) || self.set == own::PAIRS {
            true => Ok(Corpus::Pairs([vec![], Tsv::FORWARD.read(path)?])),
            false => {
                let documents = Documents::open(&[path], documents::DocumentBoundary::BlankLines)?;
                let text = |document: Result<Document>| Ok(document?.text() + "\n");
                let valid = documents.map(text).collect::<Result<_>>()?;
                Ok(Corpus::Running(TextCorpus { train: vec![], valid }))
            }
        }
    }
}

/// Splits pairs into training and validation part by a hash of the first sentence. The test
/// sentences of translation are left out of both.
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
    let part = |part| Split::default().pairs(&all, SplitKey::Source, part);
    Ok(Corpus::Pairs([part(Part::Train), part(Part::Valid)]))
}

impl Recipe {
    /// Trains the vocabulary. Characters and bytes are not normalised, as in
    /// [`generate`](crate::generate).
    pub(super) fn tokenizer(&self, corpus: &Corpus) -> Result<Tokenizer> {
        let mut train = self.vocabulary.training()?;
        if matches!(train.kind, VocabularyKind::ByteLevel | VocabularyKind::Char) {
            train.normalise =
                Normalise { form: UnicodeForm::Keep, spaces: SpaceHandling::Keep, simplify: false };
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
            Corpus::Running(TextCorpus { train, valid }) => {
                [train, valid].map(|part| say::many(part.len(), "document"))
            }
            Corpus::Pairs(parts) => parts.each_ref().map(|part| say::many(part.len(), "pair")),
        };
        for (part, count) in ["train", "valid"].into_iter().zip(counts) {
            let share = if part == "valid" { "a fraction of " } else { "" };
            about.part(part, format!("{share}{from}"), count);
        }
        let learner = Permutation::new(self, &corpus)?;
        let about = about.with_sizes(learner.objective().about(learner.millions()));
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        evaluate::evaluate(self, model, on)
    }
}
