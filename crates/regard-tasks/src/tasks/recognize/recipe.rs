//! A recipe with `task = "recognize"`.

use super::evaluate::marks_in_detail;
use super::{Corpus, Recognizer, SpeechObjective};
use crate::audio::{AudioAugment, Preprocessor};
use crate::data::Part;
use crate::data::known::{self, DataSet, Format};
use crate::data::recordings::{self, Recording};
use crate::evaluation::{EvaluationData, EvaluationSet, Report, Source};
use crate::recipe::{Prepared, Task, recipe};
use crate::{own, train};
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

recipe! {
    for "recognize";
    /// Training recordings.
    pub data: Data,
    /// Feature extraction.
    #[serde(default)]
    pub features: Preprocessor,
    /// Data augmentation in training.
    #[serde(default)]
    pub augment: AudioAugment,
    /// `config.json` of the model, without labels or characters.
    pub model: Value,
    /// Training options. A recording counts as one token of a batch.
    #[serde(default)]
    pub train: train::TrainOptions,
}

/// Recordings to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of a known data set, or `files`.
    pub set: String,
    /// File that lists the training recordings; only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<PathBuf>,
    /// File that lists the validation recordings, for model selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<PathBuf>,
    /// File that lists the test recordings, for `regard eval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// Maximum number of recordings that are concatenated to one example, with a space between
    /// transcripts; 1 by default.
    #[serde(default = "one")]
    pub join: usize,
}

fn one() -> usize {
    1
}

impl Data {
    /// Returns the recordings of a part of a set.
    pub(super) fn recordings(&self, set: &str, part: Part) -> Result<Vec<Recording>> {
        if !(1..=100).contains(&self.join) {
            return Err(Error::invalid(format!("data.join: got {}, need 1 to 100", self.join)));
        }
        let (name, file) = (part.name(), self.file(part));
        match known::named("recognize", "data.set", set)? {
            Some(set) if file.is_some() => Err(Error::invalid(format!(
                "data.{name}: only with `files`, not with {}",
                set.name
            ))),
            Some(DataSet { format: Format::Recordings(read), .. }) => read(part),
            Some(set) => known::unread(set),
            None => {
                let what = "a list of recordings, one per line: the file, a tab, the transcript";
                recordings::list(own::file(name, file, what)?)
            }
        }
    }

    fn file(&self, part: Part) -> &Option<PathBuf> {
        part.of([&self.train, &self.valid, &self.test])
    }

    fn has_test(&self, set: &str) -> bool {
        known::set("recognize", set).is_some() || self.test.is_some()
    }

    /// Returns the name of the set or file that a part is read from.
    pub(super) fn source(&self, part: Part) -> String {
        self.file(part).as_ref().map_or(self.set.clone(), |file| file.display().to_string())
    }
}

impl Task for Recipe {
    fn decides(&self) -> &str {
        match self.model.get("head").and_then(Value::as_str) {
            Some("ctc") => "word error rate, percent",
            _ => "accuracy, percent",
        }
    }

    fn prepare(&self) -> Result<Prepared> {
        if let Some(test) = &self.data.test {
            own::there("test", test)?;
        }
        let learner = SpeechObjective::new(self)?;
        let about = learner.objective().about(learner.millions());
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        let source = on.decide(&self.data.set, |set| self.data.has_test(set))?;
        let recordings = match source {
            Source::Set(set, part) => self.data.recordings(set, part)?,
            Source::File(path) => recordings::list(path)?,
        };
        let recognizer = Recognizer::load(model.clone())?;
        let rate = recognizer.front().preprocessor().sampling_rate;
        // Recordings of the user's own are evaluated as they are.
        let join = if matches!(source, Source::File(_)) { 1 } else { self.data.join };
        let corpus = Corpus::read(&recordings, rate)?.joined(join, rate);
        let sheet = EvaluationSet::new(&source, corpus.clips.len(), "recordings");
        let files: Vec<String> =
            recordings.iter().map(|recording| recording.path.display().to_string()).collect();
        // Joined recordings have no file of their own.
        let files = if join > 1 { vec![] } else { files };
        Report::detailed(sheet, recognizer.parameters(), || {
            Ok(marks_in_detail(&recognizer, &corpus, &files))
        })
    }
}
