//! The same recipe from several seeds: a mean says more than one number.

use super::{Show, train};
use crate::cli::{Global, Outcome, write_json};
use anyhow::{Context, Result};
use regard_tasks::examine::{Mark, On};
use regard_tasks::recipe::Task;
use regard_tasks::train::Outcome as End;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// What is written beside the runs.
const FILE: &str = "seeds.json";

/// Trains from each seed into a folder of its own, and measures what came of it on what it has
/// not learned from. Runs that are done are not done again when they are resumed.
pub fn run(
    recipe: &mut dyn Task,
    (folder, seeds, resume): (&Path, u64, bool),
    stop: &AtomicBool,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let (first, mut found) = (global.seed.unwrap_or(0), vec![]);
    for seed in first..first + seeds {
        recipe.set_seed(seed);
        let own = folder.join(format!("seed-{seed}"));
        let mut show = Show::new(recipe.options());
        show.quiet = true;
        let done = resume && own.join("model").is_dir();
        if !done {
            eprintln!("seed {seed}: trains in {}", own.display());
            let end = train(recipe, &own, resume && own.is_dir(), stop, &mut show)?;
            if let End::Interrupted { .. } = end {
                writeln!(out, "interrupted: go on with the same command and --resume")?;
                return Ok(Outcome::Positive);
            }
        }
        let report = recipe.examine(&own, &On::Set { set: None, part: None })?;
        let marks = report.marks.iter().map(|mark| format!("{} {:.2}", mark.name, mark.value));
        let before = if done { " (was done before)" } else { "" };
        eprintln!("seed {seed}: {}{before}", marks.collect::<Vec<_>>().join(" · "));
        found.push((seed, report.marks));
    }
    let summary = summary(recipe.name(), &found);
    let path = folder.join(FILE);
    std::fs::write(&path, serde_json::to_string_pretty(&summary)? + "\n")
        .with_context(|| path.display().to_string())?;
    if global.json {
        write_json(out, &summary)?;
        return Ok(Outcome::Positive);
    }
    for mark in summary["marks"].as_array().into_iter().flatten() {
        let number = |key: &str| mark[key].as_f64().unwrap_or(f64::NAN);
        writeln!(
            out,
            "{} {:.2} ± {:.2} {} over {seeds} seeds (from {:.2} to {:.2})",
            mark["name"].as_str().unwrap_or_default(),
            number("mean"),
            number("deviation"),
            mark["unit"].as_str().unwrap_or_default(),
            number("least"),
            number("most"),
        )?;
    }
    Ok(Outcome::Positive)
}

/// The mean of each mark, and its deviation as of a sample.
fn summary(name: &str, found: &[(u64, Vec<Mark>)]) -> Value {
    let of = |at: usize| -> Vec<f64> { found.iter().map(|(_, marks)| marks[at].value).collect() };
    let marks = found.first().map_or(&[][..], |(_, marks)| marks);
    let each = marks.iter().enumerate().map(|(at, mark)| {
        let all = of(at);
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let squares: f64 = all.iter().map(|x| (x - mean) * (x - mean)).sum();
        json!({
            "name": mark.name,
            "unit": mark.unit,
            "mean": mean,
            "deviation": (squares / (count - 1.0).max(1.0)).sqrt(),
            "least": all.iter().copied().fold(f64::INFINITY, f64::min),
            "most": all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            "each": all,
        })
    });
    let seeds: Vec<u64> = found.iter().map(|(seed, _)| *seed).collect();
    json!({ "recipe": name, "seeds": seeds, "marks": each.collect::<Vec<_>>() })
}
