//! A recipe with `task = "point"`.

use super::instances::{Instances, Site};
use super::{PointObjective, PointProblem, Pointer, file, problem};
use crate::about::About;
use crate::data::known::{self, Format};
use crate::data::{Part, sets};
use crate::decode;
use crate::evaluation::{EvaluationData, EvaluationSet, Report, Source};
use crate::recipe::{Prepared, Task, recipe};
use crate::{own, say, train};
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Maximum number of generated sets: the order of each epoch is kept in memory.
const MOST_SETS: usize = 10_000_000;
/// Seed of validation and test sets, independent of the recipe's seed.
const HELD_OUT: u64 = 0;

recipe! {
    for "point";
    /// Points and problem.
    pub data: Data,
    /// `config.json` of the model, without the problem.
    pub model: Value,
    /// Training options. A point counts as one token of a batch, and so does the marker of a set.
    #[serde(default)]
    pub train: train::TrainOptions,
    /// Default search options of the trained model.
    #[serde(default)]
    pub decode: decode::Options,
}

/// Points and problem to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Source of the sets: `drawn` from a seed; `pointer-nets`, the same with the paper's file of
    /// hulls of five points as test part; or `files`.
    pub set: String,
    /// Name of the problem: `hull`, `sort` or `tsp`.
    pub problem: String,
    /// Minimum and maximum number of points of generated training sets; `[5, 5]` by default.
    #[serde(default = "five")]
    pub points: [usize; 2],
    /// Minimum and maximum number of points of generated validation and test sets; those of
    /// `points` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<[usize; 2]>,
    /// Number of generated training sets, after which they repeat; 1000000 by default.
    #[serde(default = "million")]
    pub train: usize,
    /// Number of generated validation sets; 1000 by default.
    #[serde(default = "thousand")]
    pub valid: usize,
    /// Number of generated test sets; 10000 by default.
    #[serde(default = "ten_thousand")]
    pub test: usize,
    /// Folder with `train.txt`, `valid.txt` and `test.txt`; only with `set = "files"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

fn five() -> [usize; 2] {
    [5, 5]
}

fn thousand() -> usize {
    1000
}

fn ten_thousand() -> usize {
    10_000
}

fn million() -> usize {
    1_000_000
}

impl Data {
    /// Returns the problem.
    pub fn problem(&self) -> Result<&'static dyn PointProblem> {
        problem(&self.problem).map_err(|e| Error::invalid(format!("data.{e}")))
    }

    fn drawn(
        &self,
        name: &str,
        sizes: [usize; 2],
        seed: u64,
        site: Site,
        count: usize,
    ) -> Result<Instances> {
        let problem = self.problem()?;
        let (known, [fewest, most]) = (*problem.sizes().start()..=problem.most_solved(), sizes);
        if fewest > most || !known.contains(&fewest) || !known.contains(&most) {
            return Err(Error::invalid(format!(
                "data.{name}: got {fewest} to {most}, {} needs two numbers from {} to {}",
                problem.name(),
                known.start(),
                known.end()
            )));
        }
        if count > MOST_SETS {
            let part = site.part();
            return Err(Error::invalid(format!(
                "data.{part}: got {count}, need at most {MOST_SETS} sets of points"
            )));
        }
        Ok(Instances::drawn(problem, seed, site, sizes, count))
    }

    fn held_out(&self, site: Site, count: usize) -> Result<Instances> {
        let (name, sizes) = match self.held_out {
            Some(sizes) => ("held_out", sizes),
            None => ("points", self.points),
        };
        self.drawn(name, sizes, HELD_OUT, site, count)
    }

    fn file(&self, part: &str) -> Result<Instances> {
        let what = "a folder with train.txt, valid.txt and test.txt";
        let folder = own::file("folder", &self.folder, what)?;
        Ok(Instances::Read(file::read(&folder.join(part), self.problem()?)?))
    }

    /// Returns the sets of a part; generated training sets depend on the seed.
    pub fn read(&self, part: Part, seed: u64) -> Result<Instances> {
        let Some(set) = known::named("point", "data.set", &self.set)? else {
            return self.file(&format!("{}.txt", part.name()));
        };
        match (part, &set.format) {
            (Part::Train, _) => self.drawn("points", self.points, seed, Site::Train, self.train),
            (Part::Valid, _) => self.held_out(Site::Valid, self.valid),
            (Part::Test, Format::Points(Some(file))) if self.problem == "hull" => {
                let file = sets::find(set.name)?.join(file);
                Ok(Instances::Read(file::read(&file, self.problem()?)?))
            }
            (Part::Test, Format::Points(Some(_))) => {
                let message = format!("data.set: {} has hulls only; need drawn or files", set.name);
                Err(Error::invalid(message))
            }
            (Part::Test, _) => self.held_out(Site::Test, self.test),
        }
    }
}

impl Task for Recipe {
    fn of_trained(config: &Value) -> String {
        format!("[data]\nproblem = {:?}", config["problem"].as_str().unwrap_or_default())
    }

    fn decides(&self) -> &str {
        self.data.problem().map_or("", |problem| problem.decides().0)
    }

    fn prepare(&self) -> Result<Prepared> {
        let learner = PointObjective::new(self)?;
        let mut about = About::default();
        let (train, valid) = learner.objective().counts_of_parts();
        for (part, count) in [("train", train), ("valid", valid)] {
            let from = match &self.data.folder {
                Some(folder) => folder.join(format!("{part}.txt")).display().to_string(),
                None => "drawn by the program".to_string(),
            };
            about.part(part, from, say::many(count, "set") + " of points");
        }
        let about = about.with_sizes(learner.objective().about(learner.millions()));
        Ok(Prepared { learner: Box::new(learner), about })
    }

    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report> {
        let pointer = Pointer::load(model.clone())?;
        if pointer.problem().name() != self.data.problem {
            return Err(Error::invalid(format!(
                "data.problem: got {}, the model was trained for {}",
                self.data.problem,
                pointer.problem().name()
            )));
        }
        let source = on.decide(&self.data.set, |_| true)?;
        let instances = match source {
            Source::File(path) => Instances::Read(file::read(path, pointer.problem())?),
            Source::Set(set, part) => {
                Data { set: set.into(), ..self.data.clone() }.read(part, self.seed)?
            }
        };
        let sheet = EvaluationSet::new(&source, instances.len(), "sets of points");
        Report::of(sheet, pointer.parameters(), || {
            Ok(pointer.problem().marks(&pointer.exam(&instances, &self.decode)?))
        })
    }
}
