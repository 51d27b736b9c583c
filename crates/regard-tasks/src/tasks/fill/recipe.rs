//! A recipe with `task = "fill"`.

use super::evaluate::{Cut, Exercise};
use super::overlap::Overlap;
use super::{Masking, Pretraining};
use crate::about::{self, About};
use crate::data::documents::{Document, DocumentBoundary, Documents};
use crate::data::known::{self, DataSet, Format};
use crate::data::running;
use crate::evaluation::{EvaluationData, EvaluationSet, Report, Source};
use crate::recipe::{Prepared, Task, recipe};
use crate::text::Tokenizer;
use crate::{own, say, train};
use burn::tensor::Device;
use regard_models::text::{self, Head};
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

recipe! {
    for "fill";
    /// Training documents.
    pub data: Data,
    /// Vocabulary to train.
    pub vocabulary: crate::reader::ReaderVocabulary,
    /// Masking of tokens.
    #[serde(default)]
    pub hiding: Masking,
    /// Maximum number of tokens of a pair, special tokens included; 128 by default.
    #[serde(default = "context")]
    pub context: usize,
    /// Number of times the training documents are cut into pairs, each time differently; 1 by
    /// default. More copies delay overfitting to few documents.
    #[serde(default = "copies")]
    pub copies: u64,
    /// `config.json` of the model, without the size of the vocabulary.
    pub model: Value,
    /// Training options.
    #[serde(default)]
    pub train: train::TrainOptions,
}

fn context() -> usize {
    128
}

fn copies() -> u64 {
    1
}

/// Documents to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of a known data set, or `files`.
    pub set: String,
    /// Text files with a blank line between documents; only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

impl Data {
    /// Returns the training and the validation documents, split by a hash of their text.
    pub fn read(&self) -> Result<[Vec<Document>; 2]> {
        match known::named("fill", "data.set", &self.set)? {
            Some(DataSet { format: Format::Documents(read), .. }) => read(),
            Some(set) => known::unread(set),
            None => {
                self.files.iter().try_for_each(|file| own::there("files", file))?;
                running::divided(&self.files, DocumentBoundary::BlankLines)
            }
        }
    }
}

impl Recipe {
    /// Returns the settings for cutting documents once.
    pub(super) fn cut(&self) -> Cut {
        Cut { context: self.context, seed: self.seed, copies: 1 }
    }

    /// Trains the vocabulary.
    pub(super) fn tokenizer(&self, documents: &[Document]) -> Result<Tokenizer> {
        let lines = documents.iter().flat_map(|document| &document.lines);
        self.vocabulary.learn(lines.map(String::as_str))
    }
}

impl Task for Recipe {
    fn check(&self) -> Result<(), String> {
        self.hiding.check()?;
        if self.context < 8 {
            return Err(format!("context: got {}, need at least 8 tokens", self.context));
        }
        if self.copies == 0 {
            return Err("copies: got 0, need at least 1".into());
        }
        Ok(())
    }

    fn of_trained(_config: &Value) -> String {
        "[vocabulary]\nkind = 'wordpiece'\nsize = 1".into()
    }

    fn decides(&self) -> &str {
        "loss"
    }

    fn prepare(&self) -> Result<Prepared> {
        let parts = self.data.read()?;
        let mut about = About::default();
        let from = match self.data.set.as_str() {
            own::FILES => about::paths(&self.data.files),
            set => set.to_string(),
        };
        for (part, documents) in ["train", "valid"].into_iter().zip(&parts) {
            let lines = documents.iter().map(|document| document.lines.len()).sum();
            let share = if part == "valid" { "a tenth of " } else { "" };
            about.part(
                part,
                format!("{share}{from}"),
                format!("{}, {}", say::many(documents.len(), "document"), say::many(lines, "line")),
            );
        }
        let learner = Pretraining::new(self, parts)?;
        let about = about.with_sizes(learner.objective().about(learner.millions()));
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        // No set has a test part: held-out articles are chosen by their hashes.
        let source = on.decide(&self.data.set, |_| false)?;
        let [learned, documents] = match source {
            Source::Set(set, _) => Data { set: set.to_string(), ..self.data.clone() }.read()?,
            Source::File(path) => [
                vec![],
                Documents::open(&[path], DocumentBoundary::BlankLines)?.collect::<Result<_>>()?,
            ],
        };
        let files = train::files(model.clone())?;
        let model = text::open(files.clone(), None, 0, &Device::flex())?;
        if !matches!(model.head(), Head::Words | Head::Pretraining) {
            let message = "its head predicts no masked tokens; need a masked-LM head";
            return Err(Error::file(files.place(), message));
        }
        let tokenizer = Tokenizer::of(&files)?;
        let exercise = Exercise::new(&tokenizer, self.hiding)?;
        let context = self.context.min(model.longest().unwrap_or(usize::MAX));
        let rows = |documents: &[Document], copies: u64| {
            exercise.rows(documents, &tokenizer, Cut { context, copies, ..self.cut() })
        };
        let by_words = Overlap::both(&rows(&learned, self.copies)?);
        let rows = rows(&documents, 1)?;
        let sheet = EvaluationSet::new(&source, rows.len(), "pairs");
        Report::of(sheet, model.parameters(), || Ok(exercise.mark(&*model, &rows, &by_words)))
    }
}
