//! Details of one run: its recipe, its data files and the evaluations in its log.

use super::log::METRICS_FILE;
use super::summary::{self, reason};
use super::{RunStatus, RunSummary, checkpoints, newest_whole, record};
use crate::data::Lines;
use crate::data::ledger::DataFile;
use crate::recipe;
use regard_models::checkpoint::open_file;
use regard_models::{Error, Result};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;

/// Details of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunDetails {
    /// Summary, as in a list of runs.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// Recipe with all its defaults and with the settings that were changed; `None` if it cannot be
    /// read.
    pub settings: Option<Value>,
    /// Data files that the run read, with their hashes.
    pub files: Vec<DataFile>,
    /// Steps of the checkpoints that are kept.
    pub checkpoints: Vec<u64>,
    /// Last evaluation in the log.
    pub last: Option<LoggedEvaluation>,
    /// Evaluation of the best checkpoint.
    pub best_evaluation: Option<LoggedEvaluation>,
    /// Evaluation of the average of the last checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaged: Option<LoggedEvaluation>,
    /// Runs of the single seeds, if the folder holds several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<RunSummary>,
    /// Damaged files, and the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// An evaluation in the log of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoggedEvaluation {
    /// Number of steps completed.
    pub step: u64,
    /// Metrics by name; `None` for a value that was not finite.
    pub metrics: BTreeMap<String, Option<f64>>,
}

/// Evaluations in a log.
#[derive(Default)]
struct History {
    last: Option<LoggedEvaluation>,
    best: Option<LoggedEvaluation>,
    averaged: Option<LoggedEvaluation>,
}

impl RunDetails {
    /// Reads the details of a run, or of runs with several seeds; `None` if the folder holds none.
    /// All checkpoints are compared with their checksums, unless a process is training there.
    pub fn of(folder: &Path) -> Option<RunDetails> {
        let summary = RunSummary::of(folder)?;
        let mut problems = vec![];
        if let RunStatus::Damaged { why } = &summary.status {
            problems.push(why.clone());
        }
        if let RunStatus::Seeds { .. } = summary.status {
            return Some(RunDetails { seeds: summary::seeds(folder), ..of_summary(summary) });
        }
        let mut read = |found: Result<()>| {
            if let Some(why) = found.err().map(|error| reason(&error, folder))
                && !problems.contains(&why)
            {
                problems.push(why);
            }
        };
        let mut details = of_summary(summary);
        read(record::data_files(folder).map(|files| details.files = files));
        read(history(folder, details.summary.best_step).map(|History { last, best, averaged }| {
            (details.last, details.best_evaluation, details.averaged) = (last, best, averaged);
        }));
        details.settings = settings(folder);
        details.checkpoints = checkpoints(folder);
        if !matches!(details.summary.status, RunStatus::Running { .. }) {
            let damaged = newest_whole(folder).1.into_iter();
            problems.extend(damaged.map(|each| format!("checkpoint-{}: {}", each.step, each.why)));
        }
        Some(RunDetails { problems, ..details })
    }
}

fn of_summary(summary: RunSummary) -> RunDetails {
    RunDetails {
        summary,
        settings: None,
        files: vec![],
        checkpoints: vec![],
        last: None,
        best_evaluation: None,
        averaged: None,
        seeds: vec![],
        problems: vec![],
    }
}

fn settings(run: &Path) -> Option<Value> {
    let recipe = recipe::task(record::recorded(run).ok()?).ok()?;
    Some(recipe.to_json())
}

/// Reads the evaluations of a run's log; those of a run without a log are empty.
fn history(run: &Path, best: Option<u64>) -> Result<History> {
    let path = run.join(METRICS_FILE);
    let mut found = History::default();
    if !path.exists() {
        return Ok(found);
    }
    let (file, _) = open_file(&path)?;
    let mut lines = Lines::new(BufReader::new(file), &path);
    let mut torn: Option<Error> = None;
    while let Some(line) = lines.next() {
        // Only the last line can be incomplete.
        if let Some(error) = torn {
            return Err(error);
        }
        let read = line.and_then(|line| {
            serde_json::from_str::<BTreeMap<String, Value>>(&line).map_err(|e| lines.error(e))
        });
        match read {
            Ok(line) => found.add(line, best),
            Err(error) => torn = Some(error),
        }
    }
    Ok(found)
}

impl History {
    fn add(&mut self, mut line: BTreeMap<String, Value>, best: Option<u64>) {
        let step = line.remove("step").and_then(|step| step.as_u64()).unwrap_or(0);
        // Lines of evaluations have the time; those of training steps have the rate.
        let is_evaluation = line.remove("seconds").is_some();
        line.remove("tokens");
        let is_average = line.keys().any(|name| name.starts_with("averaged_"));
        if !is_evaluation && !is_average {
            return;
        }
        let metrics = line.into_iter().map(|(name, value)| (name, value.as_f64())).collect();
        let logged = Some(LoggedEvaluation { step, metrics });
        if is_average {
            self.averaged = logged;
            return;
        }
        if best == Some(step) {
            self.best = logged.clone();
        }
        self.last = logged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(name: &str, text: &str) -> Result<History> {
        let run =
            std::env::temp_dir().join(format!("regard-history-{name}-{}", std::process::id()));
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join(METRICS_FILE), text).unwrap();
        let found = history(&run, Some(10));
        fs::remove_dir_all(&run).unwrap();
        found
    }

    #[test]
    fn the_last_and_the_best_evaluation_are_found() {
        let text = "{\"step\":5,\"loss\":1.0,\"lr\":0.1,\"grad_norm\":2.0}\n\
                    {\"step\":10,\"valid_accuracy\":70.0,\"tokens\":9.0,\"seconds\":1.5}\n\
                    {\"step\":20,\"valid_accuracy\":null,\"tokens\":18.0,\"seconds\":3.0}\n\
                    {\"step\":20,\"averaged_valid_accuracy\":71.0}\n{\"step\":25,\"lo";
        let History { last, best, averaged } = read("whole", text).unwrap();
        let logged = |step: u64, name: &str, value: Option<f64>| {
            Some(LoggedEvaluation { step, metrics: BTreeMap::from([(name.to_string(), value)]) })
        };
        assert_eq!(best, logged(10, "valid_accuracy", Some(70.0)));
        assert_eq!(last, logged(20, "valid_accuracy", None));
        assert_eq!(averaged, logged(20, "averaged_valid_accuracy", Some(71.0)));
        let error = read("damaged", &format!("oops\n{text}")).err().unwrap().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
