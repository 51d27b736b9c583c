//! Comparison of recipes on the same data: quality by length, speed, memory.

use super::{Flags, Global, Outcome, myself, write_json};
use crate::files::save_text;
use crate::recipe;
use crate::show::plot::{Curve, Plot};
use crate::show::table::Table;
use anyhow::{Context, Result, anyhow, bail};
use regard_tasks::translate::{Data, Recipe};
use regard_tasks::{say, train};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

pub fn run(flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let all: Vec<Compared> =
        flags.recipes.iter().map(|name| Compared::find(name, flags)).collect::<Result<_>>()?;
    let first = &all[0];
    if let Some(other) = all.iter().find(|each| !is_same(&each.recipe.data, &first.recipe.data)) {
        bail!("{} and {} use different data; need the same [data]", first.name, other.name);
    }
    let mut reports = vec![];
    for Compared { folder, name, is_run, .. } in &all {
        let model = folder.display().to_string();
        if !is_run && flags.train && train::resolve(folder).is_err() {
            again(global, &flags.overrides, &["train", *name, "--out", &model])?;
        }
        // A run is evaluated by the recipe in its folder.
        let asked: &str = if *is_run { &model } else { name };
        let text = again(global, &flags.overrides, &["eval", asked, "--model", &model])?;
        let mut report: Value = serde_json::from_str(&text)
            .with_context(|| format!("cannot parse the output of `regard eval {name}`"))?;
        report["training"] = serde_json::to_value(training(folder))?;
        if *is_run {
            report["name"] = (*name).into();
        }
        reports.push(report);
    }
    if let Some(path) = &flags.svg {
        let svg = plot(&reports).svg();
        save_text(path, &svg)?;
    }
    if global.json {
        write_json(out, &reports)?;
        return Ok(Outcome::Positive);
    }
    write!(out, "{}", table(&reports))?;
    Ok(Outcome::Positive)
}

/// Whether two models are evaluated on the same data. Runs on files of the user have a copy each.
fn is_same(one: &Data, other: &Data) -> bool {
    let sides = |data: &Data| [data.source.clone(), data.target.clone()];
    let (Some(first), Some(second)) = (&one.folder, &other.folder) else { return one == other };
    let read = |folder: &Path, end: &String| std::fs::read(folder.join(format!("test.{end}"))).ok();
    let is_copy =
        |end: &String| read(first, end).is_some_and(|bytes| read(second, end) == Some(bytes));
    one == other || (sides(one) == sides(other) && sides(one).iter().all(is_copy))
}

/// A recipe or a run to compare.
struct Compared<'a> {
    name: &'a str,
    recipe: Recipe,
    folder: PathBuf,
    /// Whether the name is that of a run, and not of a recipe.
    is_run: bool,
}

impl Compared<'_> {
    /// Finds a recipe by name or file, or a run by its folder or its name in --runs.
    fn find<'a>(name: &'a str, flags: &Flags) -> Result<Compared<'a>> {
        let is_file = recipe::is_built_in(name) || Path::new(name).is_file();
        let places = [PathBuf::from(name), flags.runs.join(name)];
        let run = places.into_iter().find(|place| !is_file && train::is_run(place));
        let Some(folder) = run else {
            let recipe = recipe::resolve(name, &flags.overrides).map_err(|error| {
                let runs = train::runs(&flags.runs).unwrap_or_default();
                let runs: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
                match runs.is_empty() || is_file {
                    true => error,
                    false => error.context(format!(
                        "{name:?} is no run in {}; {}its runs are {}",
                        flags.runs.display(),
                        say::did_you_mean(name, &runs),
                        say::list(&runs, 12)
                    )),
                }
            })?;
            let folder = flags.runs.join(&recipe.name);
            return Ok(Compared { name, recipe, folder, is_run: false });
        };
        let table = recipe::of_run(&folder, &flags.overrides)?;
        let table = table.with_context(|| format!("{}: holds no recipe.toml", folder.display()))?;
        let recipe = Recipe::from_table(table)
            .map_err(|message| anyhow!("{}: {message}", folder.display()))?;
        Ok(Compared { name, recipe, folder, is_run: true })
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

fn score(report: &Value) -> Option<f64> {
    report["bleu"].as_f64().or_else(|| report["wer"].as_f64())
}

fn plot(reports: &[Value]) -> Plot {
    let curve = |report: &Value| {
        let buckets = report["by_length"].as_array().cloned().unwrap_or_default();
        let point = |bucket: &Value| {
            let middle = (bucket["from"].as_f64()? + bucket["to"].as_f64()?) / 2.0;
            Some((middle, score(bucket)?))
        };
        let name = report["name"].as_str().unwrap_or_default().to_string();
        Curve { name, points: buckets.iter().filter_map(point).collect(), ..Curve::default() }
    };
    let bleu = reports.iter().any(|report| report["bleu"].is_number());
    Plot {
        title: "Quality by source length".into(),
        x: if bleu { "source length in words" } else { "source length in characters" }.into(),
        y: if bleu { "BLEU" } else { "word error rate, %" }.into(),
        curves: reports.iter().map(curve).collect(),
        ..Plot::default()
    }
}

fn table(reports: &[Value]) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or("–".to_string(), |value| format!("{value:.digits$}"))
    };
    let mut all = Table::new([
        "model",
        "score",
        "parameters",
        "sentences/s",
        "memory",
        "training tokens/s",
        "training min",
    ]);
    for report in reports {
        let rate = report["sentences"].as_f64().zip(report["seconds"].as_f64());
        all.row([
            report["name"].as_str().unwrap_or_default().to_string(),
            number(score(report), 2),
            number(report["parameters"].as_f64().map(|n| n / 1e6), 2) + " M",
            number(rate.map(|(n, seconds)| n / seconds), 1),
            number(report["peak_memory"].as_f64().map(|n| n / 1e6), 0) + " MB",
            number(report["training"]["tokens_per_second"].as_f64(), 0),
            number(report["training"]["seconds"].as_f64().map(|s| s / 60.0), 1),
        ]);
    }
    let mut text = all.render("", None);
    let mut lengths = Table::new(["length", "model", "sentences", "score", "ms/sentence"]);
    let buckets = reports[0]["by_length"].as_array().map_or(0, Vec::len);
    for i in 0..buckets {
        for report in reports {
            let bucket = &report["by_length"][i];
            let count = bucket["sentences"].as_f64().unwrap_or(0.0);
            lengths.row([
                format!("{}–{}", bucket["from"], bucket["to"]),
                report["name"].as_str().unwrap_or_default().to_string(),
                number(Some(count), 0),
                number(score(bucket), 2),
                number(bucket["seconds"].as_f64().map(|s| 1000.0 * s / count.max(1.0)), 2),
            ]);
        }
    }
    text.push('\n');
    text + &lengths.render("", None)
}
