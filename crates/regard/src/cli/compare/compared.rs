//! Recipes and runs to compare, each evaluated in a process of its own.

use super::{Flags, Global, myself};
use crate::recipe;
use anyhow::{Context, Result};
use regard_tasks::recipe::Table;
use regard_tasks::{say, train};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A recipe or a run to compare.
pub struct Compared<'a> {
    pub name: &'a str,
    pub recipe: Table,
    pub folder: PathBuf,
    /// Whether the name is that of a run, and not of a recipe.
    pub is_run: bool,
}

impl Compared<'_> {
    /// Finds a recipe by name or file, or a run by its folder or its name in --runs.
    pub fn find<'a>(name: &'a str, flags: &Flags) -> Result<Compared<'a>> {
        let is_file = recipe::is_built_in(name) || Path::new(name).is_file();
        let places = [PathBuf::from(name), flags.runs.join(name)];
        let run = places.into_iter().find(|place| !is_file && train::is_run(place));
        let Some(folder) = run else {
            let recipe = recipe::table(name, &flags.overrides).map_err(|error| {
                let runs = train::runs(&flags.runs).unwrap_or_default();
                let runs: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
                match runs.is_empty() || is_file {
                    true => error,
                    false => error.context(format!(
                        "{name:?} is no run in {}; {}its runs are {}. A model without a run, such \
                         as a quantised one, is evaluated by: regard eval RUN --model {name}",
                        flags.runs.display(),
                        say::did_you_mean(name, &runs),
                        say::list(&runs, 12)
                    )),
                }
            })?;
            let own = recipe.get("name").and_then(|name| name.as_str()).unwrap_or(name);
            let folder = flags.runs.join(own);
            return Ok(Compared { name, recipe, folder, is_run: false });
        };
        let recipe = recipe::of_run(&folder, &flags.overrides)?;
        let recipe =
            recipe.with_context(|| format!("{}: holds no recipe.toml", folder.display()))?;
        Ok(Compared { name, recipe, folder, is_run: true })
    }

    /// Name of its task.
    pub fn task(&self) -> &str {
        self.recipe.get("task").and_then(|task| task.as_str()).unwrap_or_default()
    }

    /// Trains it if it is missing and --train is given, and evaluates it; `more` are further
    /// arguments of `regard eval`.
    pub fn evaluate(&self, flags: &Flags, global: &Global, more: &[&str]) -> Result<Value> {
        let Compared { name, folder, is_run, .. } = self;
        let model = folder.display().to_string();
        if !is_run && flags.train && train::resolve(folder).is_err() {
            again(global, &flags.overrides, &["train", *name, "--out", &model])?;
        }
        // A run is evaluated by the recipe in its folder.
        let asked: &str = if *is_run { &model } else { name };
        let data = flags.data.iter().flat_map(|data| ["--data", data.as_str()]);
        let words = ["eval", asked, "--model", &model].into_iter().chain(data);
        let words: Vec<&str> = words.chain(more.iter().copied()).collect();
        let text = again(global, &flags.overrides, &words)?;
        let mut report: Value = serde_json::from_str(&text)
            .with_context(|| format!("cannot parse the output of `regard eval {name}`"))?;
        report["training"] = serde_json::to_value(training(folder))?;
        if *is_run {
            report["name"] = (*name).into();
        }
        Ok(report)
    }
}

/// Runs this program again with the same overrides.
fn again(global: &Global, overrides: &[String], words: &[&str]) -> Result<String> {
    let sets = overrides.iter().flat_map(|each| ["--set", each.as_str()]);
    myself(global, &words.iter().copied().chain(sets).collect::<Vec<_>>())
}

/// Speed of a training run.
#[derive(Serialize)]
struct Training {
    seconds: Option<f64>,
    tokens_per_second: Option<f64>,
}

/// Reads the speed from the run's metrics.jsonl.
fn training(folder: &Path) -> Option<Training> {
    let text = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = lines.rfind(|line| line.get("tokens").is_some())?;
    let (tokens, seconds) = (last["tokens"].as_f64(), last["seconds"].as_f64());
    let tokens_per_second = tokens.zip(seconds).map(|(tokens, seconds)| tokens / seconds.max(1e-9));
    Some(Training { seconds, tokens_per_second })
}
