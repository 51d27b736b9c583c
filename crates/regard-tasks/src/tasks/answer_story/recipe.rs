//! A recipe with `task = "answer-story"`.

use super::{Corpus, StoryAnswerer, StoryMetrics, StoryObjective, measure};
use crate::about::About;
use crate::data::{Part, babi, known, sets};
use crate::evaluation::{EvaluationData, EvaluationSet, Metric, Report, Source};
use crate::own::{self, FILES};
use crate::recipe::{Prepared, Task, recipe};
use crate::{say, train};
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

recipe! {
    for "answer-story";
    /// Training stories.
    pub data: Data,
    /// Pretrained word vectors for the initial embeddings: `glove-subset`, or a file in GloVe's or
    /// word2vec's format. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<String>,
    /// `config.json` of the model, without vocabulary and answers.
    pub model: Value,
    /// Training options. A question counts as one token of a batch.
    #[serde(default)]
    pub train: train::TrainOptions,
}

/// Stories to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of a known data set, or `files`.
    pub set: String,
    /// Folder with files named as bAbI's; only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Numbers of the tasks; by default all that have a training file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<usize>>,
    /// Number of training stories out of 1000 that are held out for validation; 100 by default.
    #[serde(default = "tenth")]
    pub valid: u16,
}

fn tenth() -> u16 {
    100
}

impl Data {
    /// Reads the stories.
    pub fn read(&self) -> Result<Corpus> {
        if !(1..1000).contains(&self.valid) {
            return Err(Error::invalid(format!("data.valid: got {}, need 1 to 999", self.valid)));
        }
        let folder = match known::named("answer-story", "data.set", &self.set)? {
            Some(set) => sets::find(set.name)?,
            None => {
                let what = "a folder with files such as qa1_single-supporting-fact_train.txt";
                own::file("folder", &self.folder, what)?.to_path_buf()
            }
        };
        Corpus::read(&folder, self.tasks.as_deref(), self.valid)
    }
}

impl Task for Recipe {
    fn decides(&self) -> &str {
        "error, percent"
    }

    fn prepare(&self) -> Result<Prepared> {
        let corpus = self.data.read()?;
        let mut about = About::default();
        let from = match &self.data.folder {
            Some(folder) => folder.display().to_string(),
            None => self.data.set.clone(),
        };
        for part in [Part::Train, Part::Valid, Part::Test] {
            let tales = corpus.part(part);
            let stories = tales.iter().map(|tales| tales.stories.len()).sum();
            let questions =
                tales.iter().flat_map(|t| &t.stories).map(|story| story.questions.len()).sum();
            let share = match part {
                Part::Valid => format!("{} of 1000 training stories of {from}", self.data.valid),
                _ => from.clone(),
            };
            about.part(
                part.name(),
                share,
                format!(
                    "{}, {}, {}",
                    say::many(tales.len(), "task"),
                    say::many(stories, "story"),
                    say::many(questions, "question")
                ),
            );
        }
        let learner = StoryObjective::new(self, &corpus)?;
        let about = about.with_sizes(learner.objective().about(learner.millions()));
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        let data = self.data.clone();
        let (data, part) = match on.decide(&self.data.set, |_| true)? {
            Source::File(folder) => {
                (Data { set: FILES.into(), folder: Some(folder.into()), ..data }, Part::Test)
            }
            Source::Set(set, part) => (Data { set: set.into(), ..data }, part),
        };
        let (listener, corpus) = (StoryAnswerer::load(model.clone())?, data.read()?);
        let tales = corpus.part(part);
        let asked = tales.iter().flat_map(|tales| &tales.stories).map(|s| s.questions.len()).sum();
        let sheet = EvaluationSet::new(&Source::Set(&data.set, part), asked, "questions");
        Report::of(sheet, listener.model().parameters(), || {
            let report = measure(&listener, tales)?;
            let learned: Vec<usize> = corpus.train.iter().map(|tales| tales.task).collect();
            let mean = report.of(&learned).mean_error;
            let of_task = |marks: &StoryMetrics| Metric {
                name: babi::TASKS.iter().find(|(task, _)| *task == marks.task).map_or("", |t| t.1),
                value: marks.error,
                unit: "% wrong",
            };
            let mut all: Vec<Metric> = report.tasks.iter().map(of_task).collect();
            all.push(Metric { name: "error", value: mean, unit: "% wrong, mean of trained tasks" });
            Ok(all)
        })
    }
}
