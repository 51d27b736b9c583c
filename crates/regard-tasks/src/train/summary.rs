//! Summaries of training runs, read from the files in their folders.
//!
//! A folder may hold anything, so reading never fails as a whole: a file that cannot be read makes
//! the status [`RunStatus::Damaged`], with the reason.

use super::origin::data_of;
use super::runs::{changed, is_older, seed_folders};
use super::state::{self, BEST, BestCheckpoint, MODEL};
use super::{TrainOptions, checkpoints, lock, log, record};
use crate::recipe::{self, Table};
use crate::say;
use regard_models::adapter;
use regard_models::checkpoint::{self, read_text};
use regard_models::{Error, Result};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use toml::Value;

/// Number of characters that a reason for damage is shortened to.
const LONGEST: usize = 200;

/// Summary of a training run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Name of the run's folder, below the folder that was listed.
    pub name: String,
    /// Folder of the run.
    pub folder: PathBuf,
    /// Name of the recipe.
    pub recipe: Option<String>,
    /// Name of the task.
    pub task: Option<String>,
    /// Name of the data set, or the names of the user's files.
    pub data: Option<String>,
    /// Model selection metric.
    pub metric: Option<String>,
    /// Best value of the model selection metric; for several seeds, the mean of their best values.
    pub best: Option<f64>,
    /// Step of the best value.
    pub best_step: Option<u64>,
    /// Number of parameters of the model.
    pub parameters: Option<usize>,
    /// Time of the last change, as `2025-01-31T12:00:00Z`.
    pub changed: Option<String>,
    /// Progress of the run.
    #[serde(flatten)]
    pub status: RunStatus,
}

/// Progress of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunStatus {
    /// All steps were completed.
    Done {
        /// Number of steps.
        step: u64,
    },
    /// The model stopped improving.
    StoppedEarly {
        /// Step of the last checkpoint.
        step: u64,
        /// Number of steps that were planned.
        steps: u64,
    },
    /// A process is training in the folder.
    Running {
        /// Step of the last checkpoint.
        step: u64,
        /// Number of steps that are planned; `None` if it is not known yet.
        steps: Option<u64>,
    },
    /// The run can be resumed.
    Interrupted {
        /// Step of the last checkpoint; 0 if there is none.
        step: u64,
        /// Number of steps that were planned.
        steps: u64,
    },
    /// Runs with several seeds.
    Seeds {
        /// Number of seeds whose training ended.
        done: usize,
        /// Number of seeds whose training began.
        of: usize,
        /// Whether one of them is being trained.
        running: bool,
        /// Number of damaged ones.
        damaged: usize,
    },
    /// A file of the run cannot be read.
    Damaged {
        /// The file and the reason.
        why: String,
    },
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RunStatus::Done { .. } => write!(f, "done"),
            RunStatus::StoppedEarly { .. } => write!(f, "stopped early"),
            RunStatus::Running { .. } => write!(f, "running"),
            RunStatus::Interrupted { step, steps } => {
                write!(f, "interrupted at step {step} of {steps}")
            }
            RunStatus::Seeds { done, of, running, damaged } => {
                write!(f, "seeds: {done} of {of}")?;
                if *running {
                    write!(f, ", running")?;
                }
                if *damaged > 0 {
                    write!(f, ", {damaged} damaged")?;
                }
                Ok(())
            }
            RunStatus::Damaged { why } => write!(f, "damaged: {why}"),
        }
    }
}

/// Whether a folder has a file that a run writes.
fn holds_run(folder: &Path) -> bool {
    let files = [record::RECIPE, record::RUN, lock::LOCK, log::METRICS_FILE, BEST];
    let is_there = |name: &&str| fs::symlink_metadata(folder.join(name)).is_ok();
    files.iter().any(is_there) || !checkpoints(folder).is_empty()
}

impl RunSummary {
    /// Reads the summary of a run, or of runs with several seeds; `None` if the folder holds none.
    pub fn of(folder: &Path) -> Option<RunSummary> {
        let empty = RunSummary {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            folder: folder.to_path_buf(),
            recipe: None,
            task: None,
            data: None,
            metric: None,
            best: None,
            best_step: None,
            parameters: None,
            changed: changed(folder),
            status: RunStatus::Interrupted { step: 0, steps: 0 },
        };
        if !holds_run(folder) {
            let seeds = seeds(folder);
            return if seeds.is_empty() { None } else { Some(empty.of_seeds(&seeds)) };
        }
        let mut found = empty;
        // Files of a running run may be replaced while they are read.
        let (running, read) = (lock::is_locked(folder), found.read());
        let step = checkpoints(folder).last().copied().unwrap_or(0);
        found.status = match read {
            Ok((_, steps)) if running => RunStatus::Running { step, steps: Some(steps) },
            Err(_) if running => RunStatus::Running { step, steps: None },
            Ok((status, _)) => status,
            Err(error) => RunStatus::Damaged { why: reason(&error, folder) },
        };
        Some(found)
    }

    fn of_seeds(self, seeds: &[RunSummary]) -> RunSummary {
        let count = |such: &dyn Fn(&RunStatus) -> bool| {
            seeds.iter().filter(|seed| such(&seed.status)).count()
        };
        let status = RunStatus::Seeds {
            done: count(&|s| matches!(s, RunStatus::Done { .. } | RunStatus::StoppedEarly { .. })),
            of: seeds.len(),
            running: count(&|s| matches!(s, RunStatus::Running { .. })) > 0,
            damaged: count(&|s| matches!(s, RunStatus::Damaged { .. })),
        };
        let values: Vec<f64> = seeds.iter().filter_map(|seed| seed.best).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let RunSummary { recipe, task, data, metric, parameters, .. } = seeds[0].clone();
        RunSummary {
            recipe,
            task,
            data,
            metric,
            parameters,
            best: (!values.is_empty()).then_some(mean),
            status,
            ..self
        }
    }

    /// Reads the files of the run, and returns its status if no process is training there, and the
    /// number of steps that are planned.
    fn read(&mut self) -> Result<(RunStatus, u64)> {
        let run = &self.folder.clone();
        // First without checks, so that a run whose recipe was edited still has a name.
        let path = run.join(record::RECIPE);
        let parsed = read_text(&path)?.parse::<Table>();
        let table = parsed.map_err(|e| Error::file(&path, format!("not TOML: {}", e.message())))?;
        let text = |key: &str| table.get(key).and_then(Value::as_str).map(str::to_string);
        (self.recipe, self.task, self.data) = (text("name"), text("task"), data_of(&table, run));
        let recipe = recipe::task(record::recorded(run)?);
        let recipe = recipe.map_err(|message| Error::file(&path, message))?;
        self.task = Some(recipe.task().to_string());
        self.metric = Some(recipe.decides().to_string());
        if let Some(BestCheckpoint { step, measure }) = state::read_best(run)? {
            (self.best, self.best_step) = (measure, Some(step));
        }
        Ok((self.read_checkpoints(recipe.options())?, recipe.options().steps))
    }

    fn read_checkpoints(&mut self, options: &TrainOptions) -> Result<RunStatus> {
        let TrainOptions { steps, patience, .. } = *options;
        let (last, model) = (checkpoints(&self.folder).last().copied(), self.folder.join(MODEL));
        let has_model = model.join(checkpoint::CONFIG).exists();
        let newest = last.map(|step| state::folder_of(&self.folder, step));
        if let Some(weights) = has_model.then_some(&model).or(newest.as_ref()) {
            // Mapped, so that only the header of the file is read.
            let arrays = match adapter::is_adapter(weights) {
                true => checkpoint::read_arrays(&adapter::weights_file(weights))?,
                false => checkpoint::map_weights(weights)?,
            };
            let floats = arrays.values().filter(|array| array.is_float());
            self.parameters = Some(floats.map(|array| array.count()).sum());
        }
        let (Some(step), Some(newest)) = (last, newest) else {
            return Ok(match has_model {
                true => RunStatus::Done { step: steps },
                false => RunStatus::Interrupted { step: 0, steps },
            });
        };
        let stale = state::read_state(&self.folder, step)?.stale;
        // With train.save_every, the last evaluation need not have a checkpoint.
        let gave_up = patience > 0 && (stale >= patience || is_older(&newest, &model));
        Ok(match has_model {
            true if step >= steps => RunStatus::Done { step },
            true if gave_up => RunStatus::StoppedEarly { step, steps },
            _ => RunStatus::Interrupted { step, steps },
        })
    }
}

/// Returns the summaries of a folder's runs with several seeds, by seed.
pub(super) fn seeds(folder: &Path) -> Vec<RunSummary> {
    seed_folders(folder).iter().filter_map(|(_, path)| RunSummary::of(path)).collect()
}

/// Returns an error without the folder of the run, which the reader knows.
pub(super) fn reason(error: &Error, run: &Path) -> String {
    let text = error.to_string();
    let within = text.strip_prefix(&format!("{}/", run.display()));
    let whole = text.strip_prefix(&format!("{}: ", run.display()));
    say::short(within.or(whole).unwrap_or(&text), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_run_is_none_and_what_is_damaged_says_why() {
        let home = std::env::temp_dir().join(format!("regard-summary-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        let write = |name: &str, text: &str| {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("notes/readme.txt", "nothing");
        write(".hidden/recipe.toml", "name = 'x'");
        write("binary/recipe.toml", "\u{0}\u{1}");
        write("empty/recipe.toml", "");
        write("lost/metrics.jsonl", "");
        write("wrong/recipe.toml", "name = 'w'\ntask = 'fly'\n[data]\nset = 'birds'\n");
        fs::create_dir_all(home.join("folder/recipe.toml")).unwrap();
        write("group/inner/recipe.toml", "task = 3");
        let mut all = crate::train::runs(&home).unwrap();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<&str> = all.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["binary", "empty", "folder", "group/inner", "lost", "wrong"]);
        for (run, part) in all.iter().zip([
            "recipe.toml",
            "recipe.toml",
            "recipe.toml: is not a regular file",
            "task: got",
            "recipe.toml",
            "task: got \"fly\"",
        ]) {
            let RunStatus::Damaged { why } = &run.status else { panic!("{run:?}") };
            assert!(why.contains(part) && !why.contains("regard-summary"), "{}: {why}", run.name);
        }
        assert_eq!(all[5].data.as_deref(), Some("birds"));
        fs::remove_dir_all(&home).unwrap();
        assert!(crate::train::runs(&home).is_err());
    }

    #[test]
    fn a_status_is_told_in_words() {
        let seeds = RunStatus::Seeds { done: 2, of: 3, running: true, damaged: 0 };
        assert_eq!(seeds.to_string(), "seeds: 2 of 3, running");
        let stopped = RunStatus::Interrupted { step: 5, steps: 9 };
        assert_eq!(stopped.to_string(), "interrupted at step 5 of 9");
        let json = serde_json::to_value(&stopped).unwrap();
        assert_eq!(json, serde_json::json!({ "state": "interrupted", "step": 5, "steps": 9 }));
    }
}
