//! Evaluation of a run that has just been trained.

use super::details::details;
use super::others;
use crate::recipe;
use crate::show::terminal;
use anyhow::{Context, Result, anyhow};
use regard_models::ModelFiles;
use regard_tasks::evaluation::{EvaluationData, Report};
use regard_tasks::import::Places;
use std::fmt;
use std::path::Path;

/// Evaluation of a run; printed as metrics and details.
pub struct RunEvaluation {
    /// Name of the recipe.
    pub name: String,
    /// Metrics and details.
    pub report: Report,
}

/// Evaluates the model of a run on the test part of its data, or on the validation part if it has
/// no test part.
pub fn of_run(folder: &Path) -> Result<RunEvaluation> {
    let table = recipe::of_run(folder, &[])?;
    let table = table.with_context(|| format!("{}: holds no run", folder.display()))?;
    let task = regard_tasks::recipe::task(table);
    let task = task.map_err(|message| anyhow!("{}: {message}", folder.display()))?;
    let on = EvaluationData::Set { set: None, part: None };
    let mut report = task.evaluate(&ModelFiles::from(folder), &on)?;
    locate(&mut report, folder);
    Ok(RunEvaluation { name: task.name().to_string(), report })
}

/// Sets the places of the worst examples in the files that a run was trained on.
fn locate(report: &mut Report, run: &Path) {
    if let (Some(part), Some(details)) = (report.part, &mut report.details) {
        details.locate(&Places::of_run(run, part));
    }
}

impl fmt::Display for RunEvaluation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (text, more) =
            (others::text(&self.name, &self.report), details(&self.report, terminal::width()));
        let between = if more.is_empty() { "" } else { "\n" };
        write!(f, "{text}{between}{more}")
    }
}
