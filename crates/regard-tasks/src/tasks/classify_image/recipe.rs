//! A recipe with `task = "classify-image"`.

use super::evaluate::measure_in_detail;
use super::{Corpus, ImageAugment, ImageClassifier, ImageObjective, LabelledImages};
use crate::about::About;
use crate::data::known::{self, Format};
use crate::data::split::hash_bytes;
use crate::data::{Part, sets};
use crate::evaluation::{EvaluationData, EvaluationSet, Metric, Report, Source};
use crate::import::images::FILES;
use crate::recipe::details::ShownInput;
use crate::recipe::{Prepared, Task, recipe};
use crate::{own, say, train};
use regard_models::{Error, ModelFiles, Network, Result, checkpoint};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

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
    /// Folder with files named as MNIST's: `train-images-idx3-ubyte` (grey) or
    /// `train-images-idx4-ubyte` (colour) and `train-labels-idx1-ubyte`, as many with `t10k` for the
    /// test, and with `valid` if there is a file for validation. Only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Names of the classes in index order; their indices by default. Only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Number of images at the end of the training file that are held out for validation; 5000 by
    /// default. Not with a file for validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<usize>,
}

impl Data {
    /// Reads the images.
    pub fn read(&self) -> Result<Corpus> {
        let folder = match known::named("classify-image", "data.set", &self.set)? {
            Some(set) => sets::find(set.name)?,
            None => {
                let what = "a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, \
                            t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (in colour idx4 \
                            for idx3)";
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
        let names = self.data.names(corpus.classes())?;
        let parts = [
            (Part::Train, &corpus.train),
            (Part::Valid, &corpus.valid),
            (Part::Test, &corpus.test),
        ];
        for ((part, pile), file) in parts.into_iter().zip(&corpus.files) {
            let images = say::many(pile.len(), "image");
            let share = match part == Part::Valid && *file == corpus.files[0] {
                true => format!("the last {images} of "),
                false => String::new(),
            };
            let size = format!("{images} of {}", pile.kind());
            about.part(part.name(), format!("{share}{from}/{file}"), size);
        }
        let mut counts: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 0)).collect();
        corpus.train.labels.iter().for_each(|label| counts[*label].1 += 1);
        about.labels("class", &counts);
        Ok(about)
    }
}

/// Names of the files that an IDX file of imported images was made of; empty for other files.
fn own_files(images: &Path) -> Vec<String> {
    let name = images.file_name().unwrap_or_default().to_string_lossy();
    let Some((part, _)) = name.split_once("-images-") else { return vec![] };
    let list = images.with_file_name(format!("{part}{FILES}"));
    let text = checkpoint::read_text(&list).unwrap_or_default();
    text.lines().map(str::to_string).collect()
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
        let (pile, file, first) = match source {
            Source::File(path) => {
                (LabelledImages::beside_labels(path)?, path.display().to_string(), 0)
            }
            Source::Set(set, part) => {
                let corpus = Data { set: set.into(), ..self.data.clone() }.read()?;
                let file = part.of(corpus.files.clone());
                // Images that are held out come after those of training.
                let is_end = part == Part::Valid && file == corpus.files[0];
                let first = if is_end { corpus.train.len() } else { 0 };
                (corpus.take(part), file, first)
            }
        };
        let sheet = EvaluationSet::new(&source, pile.len(), "images");
        // From 0, as `regard classify --image FILE --index N` counts images.
        let folder =
            self.data.folder.as_ref().filter(|_| matches!(source, Source::Set(own::FILES, _)));
        let names = own_files(&folder.map_or(PathBuf::from(&file), |folder| folder.join(&file)));
        let show = |at: usize| {
            let text = match names.get(first + at) {
                Some(name) => name.clone(),
                None => format!("image {} of {file}", first + at),
            };
            ShownInput { number: None, text }
        };
        Report::detailed(sheet, viewer.model().parameters(), || {
            let (marks, mut details) = measure_in_detail(&viewer, &pile, show)?;
            // IDX files of different folders have the same names; the pixels tell them apart.
            if names.is_empty() {
                let all = details.predictions.iter_mut().enumerate();
                all.for_each(|(at, found)| found.input = hash_bytes(pile.pixels(at)));
            }
            let marks = vec![
                Metric { name: "accuracy", value: marks.accuracy, unit: "% of images" },
                Metric { name: "f1", value: marks.macro_f1, unit: "% (macro-F1)" },
                Metric { name: "loss", value: marks.loss, unit: "nats per image" },
            ];
            Ok((marks, Some(details)))
        })
    }
}
