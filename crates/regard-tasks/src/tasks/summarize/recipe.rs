//! A recipe with `task = "summarize"`.

use super::{SummarizeObjective, Summarizer};
use crate::about::About;
use crate::data::aeslc::Email;
use crate::data::known::{self, DataSet, Format};
use crate::data::{Part, Tsv};
use crate::decode;
use crate::evaluation::{EvaluationData, EvaluationSet, Report, Source};
use crate::recipe::{Prepared, Task, recipe};
use crate::{own, say, train};
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

recipe! {
    for "summarize";
    /// Maximum size of the vocabulary, four special tokens included: the most frequent words of the
    /// texts; 8000 by default.
    #[serde(default = "thousands")]
    pub vocabulary: usize,
    /// Pretrained word vectors for the initial embeddings: `glove-subset`, or a file in GloVe's or
    /// word2vec's format. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<String>,
    /// Training texts.
    pub data: Data,
    /// `config.json` of the model, without the vocabulary.
    pub model: Value,
    /// Training options.
    #[serde(default)]
    pub train: train::TrainOptions,
    /// Default search options of the trained model.
    #[serde(default)]
    pub decode: decode::Options,
}

/// Texts to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of a data set: `aeslc` or `files`.
    pub set: String,
    /// Folder with `train.tsv`, `valid.tsv` and `test.tsv` (text, tab, summary); only with
    /// `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Number of words after which texts are truncated; 120 by default.
    #[serde(default = "of::<120>")]
    pub max_words: usize,
    /// Number of words after which training summaries are truncated; 12 by default.
    #[serde(default = "of::<12>")]
    pub max_summary: usize,
    /// Whether all reference summaries of a text count in evaluation, the best match of each; by
    /// default only the first.
    #[serde(default)]
    pub all_references: bool,
}

/// Texts with summaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// Training part.
    pub train: Vec<Email>,
    /// Validation part.
    pub valid: Vec<Email>,
}

fn thousands() -> usize {
    8000
}

fn of<const N: usize>() -> usize {
    N
}

impl Data {
    /// Reads a part. Empty texts and unused references are left out.
    pub fn read(&self, part: Part) -> Result<Vec<Email>> {
        let documents = match known::named("summarize", "data.set", &self.set)? {
            Some(DataSet { format: Format::Summaries(read), .. }) => read(part)?,
            Some(set) => return known::unread(set),
            None => {
                let what = "a folder with train.tsv, valid.tsv and test.tsv (text, tab, summary)";
                let folder = self.folder.as_ref().ok_or_else(|| own::missing("folder", what))?;
                let path = folder.join(format!("{}.tsv", part.name()));
                own::there("folder", &path)?;
                file(&path)?
            }
        };
        Ok(self.counted(documents))
    }

    fn counted(&self, mut documents: Vec<Email>) -> Vec<Email> {
        if !self.all_references {
            documents.iter_mut().for_each(|each| each.summaries.truncate(1));
        }
        documents.retain(|each| !each.text.trim().is_empty());
        documents
    }
}

fn file(path: &Path) -> Result<Vec<Email>> {
    let pairs = Tsv::FORWARD.read(path)?;
    let document =
        |pair: crate::data::Pair| Email { text: pair.source, summaries: vec![pair.target] };
    Ok(pairs.into_iter().map(document).collect())
}

impl Task for Recipe {
    fn decides(&self) -> &str {
        "loss"
    }

    fn prepare(&self) -> Result<Prepared> {
        for (name, got) in
            [("max_words", self.data.max_words), ("max_summary", self.data.max_summary)]
        {
            if got == 0 {
                return Err(Error::invalid(format!("data.{name}: got 0, need at least 1")));
            }
        }
        let (train, valid) = (self.data.read(Part::Train)?, self.data.read(Part::Valid)?);
        let mut about = About::default();
        for (part, documents) in [(Part::Train, &train), (Part::Valid, &valid)] {
            let from = match &self.data.folder {
                Some(folder) => folder.join(format!("{}.tsv", part.name())).display().to_string(),
                None => self.data.set.clone(),
            };
            let what = say::many(documents.len(), "text") + " with summaries";
            about.part(part.name(), from, what);
        }
        if let Some(Email { text, summaries }) = train.first() {
            let summary = summaries.first().map_or("", String::as_str);
            let (text, summary) = (say::short(text, 60), say::short(summary, 60));
            about.line(format!("first: {text:?} is summarised as {summary:?}"));
        }
        let learner = SummarizeObjective::new(self, &Corpus { train, valid })?;
        let about = about.with_sizes(learner.objective().about(learner.millions()));
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        let summarizer = Summarizer::load(model.clone())?;
        let source = on.decide(&self.data.set, |_| true)?;
        let documents = match source {
            Source::File(path) => self.data.counted(file(path)?),
            Source::Set(set, part) => Data { set: set.into(), ..self.data.clone() }.read(part)?,
        };
        let sheet = EvaluationSet::new(&source, documents.len(), "texts");
        Report::detailed(sheet, summarizer.parameters(), || {
            summarizer.exam_in_detail(&documents, self.data.max_words, &self.decode)
        })
    }
}
