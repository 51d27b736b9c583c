//! A recipe with `task = "classify-image"`.

use super::{Corpus, ImageAugment, ImageClassifier, ImageObjective, LabelledImages, measure};
use crate::about::About;
use crate::data::known::{self, Format};
use crate::data::{Part, sets};
use crate::evaluation::{EvaluationData, EvaluationSet, Metric, Report, Source};
use crate::recipe::{Prepared, Task, recipe};
use crate::{own, say, train};
use regard_models::{Error, ModelFiles, Network, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

recipe! {
    for "classify-image";
    /// Training images.
    pub data: Data,
    /// `config.json` of the model, without image size, channels and labels.
    pub model: Value,
    /// Data augmentation in training.
    #[serde(default)]
    pub augment: ImageAugment,
    /// Training options. An image counts as one token of a batch.
    #[serde(default)]
    pub train: train::TrainOptions,
}

/// Images to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Name of a known data set, or `files`.
    pub set: String,
    /// Folder with four files named as MNIST's; only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Names of the classes in index order; their indices by default. Only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Number of images at the end of the training file that are held out for validation; 5000 by
    /// default.
    #[serde(default = "five_thousand")]
    pub valid: usize,
}

fn five_thousand() -> usize {
    5000
}

impl Data {
    /// Reads the images.
    pub fn read(&self) -> Result<Corpus> {
        let folder = match known::named("classify-image", ("data.set", &self.set))? {
            Some(set) => sets::find(set.name)?,
            None => {
                let what = "a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, \
                            t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte";
                own::file("folder", &self.folder, what)?.to_path_buf()
            }
        };
        Corpus::read(&folder, self.valid)
    }

    /// Returns the names of all classes.
    pub(super) fn names(&self, classes: usize) -> Result<Vec<String>> {
        let known = match known::set("classify-image", &self.set).map(|set| &set.format) {
            Some(Format::Images(classes)) => classes.iter().map(|name| name.to_string()).collect(),
            _ => self.labels.clone(),
        };
        let numbers = || (0..classes).map(|class| class.to_string()).collect();
        match known.len() {
            0 => Ok(numbers()),
            n if n >= classes => Ok(known),
            n => Err(Error::invalid(format!("data.labels: got {n} names, need {classes}"))),
        }
    }
}

impl Recipe {
    /// Returns a summary of the images.
    fn tell(&self, corpus: &Corpus) -> Result<About> {
        let mut about = About::default();
        let from = match &self.data.folder {
            Some(folder) => folder.display().to_string(),
            None => self.data.set.clone(),
        };
        let file = |part| if part == Part::Test { "t10k" } else { "train" };
        let names = self.data.names(corpus.classes())?;
        for (part, pile) in
            [(Part::Train, &corpus.train), (Part::Valid, &corpus.valid), (Part::Test, &corpus.test)]
        {
            let [rows, columns] = pile.size;
            let share = match part {
                Part::Valid => format!("the last {} of ", say::many(pile.len(), "image")),
                _ => String::new(),
            };
            about.part(
                part.name(),
                format!("{share}{from}/{}-images-idx3-ubyte", file(part)),
                format!("{} of {rows}×{columns} pixels", say::many(pile.len(), "image")),
            );
        }
        let counts: Vec<(&str, usize)> = names
            .iter()
            .enumerate()
            .map(|(class, name)| {
                let count = corpus.train.labels.iter().filter(|label| **label == class).count();
                (name.as_str(), count)
            })
            .collect();
        about.labels("class", &counts);
        Ok(about)
    }
}

impl Task for Recipe {
    fn decides(&self) -> &str {
        "accuracy, percent"
    }

    fn prepare(&self) -> Result<Prepared> {
        let corpus = self.data.read()?;
        let about = self.tell(&corpus)?;
        let learner = ImageObjective::new(self, corpus)?;
        let about = about.with_sizes(learner.about());
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        let viewer = ImageClassifier::load(model.clone())?;
        let source = on.decide(&self.data.set, |_| true)?;
        let pile = match source {
            Source::File(path) => LabelledImages::beside_labels(path)?,
            Source::Set(set, part) => {
                Data { set: set.into(), ..self.data.clone() }.read()?.take(part)
            }
        };
        let sheet = EvaluationSet::new(&source, pile.len(), "images");
        Report::of(sheet, viewer.model().parameters(), || {
            let marks = measure(&viewer, &pile)?;
            Ok(vec![
                Metric { name: "accuracy", value: marks.accuracy, unit: "% of images" },
                Metric { name: "f1", value: marks.macro_f1, unit: "% (macro-F1)" },
                Metric { name: "loss", value: marks.loss, unit: "nats per image" },
            ])
        })
    }
}
