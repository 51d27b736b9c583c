//! The same recipe from several seeds: a mean says more than one number.

use super::{Session, Show, train as train_one};
use crate::cli::say::say;
use crate::cli::{Outcome, write_json};
use anyhow::{Result, anyhow, bail};
use regard_models::ModelFiles;
use regard_tasks::examine::{Mark, On};
use regard_tasks::recipe::Task;
use regard_tasks::train::{self, Outcome as End};
use serde_json::{Value, json};
use std::io::Write;
use std::ops::Range;
use std::path::Path;

/// What is written beside the runs.
const FILE: &str = "seeds.json";

/// Which seeds to train from, and where.
pub struct Seeds<'a> {
    folder: &'a Path,
    seeds: Range<u64>,
    resume: bool,
}

impl<'a> Seeds<'a> {
    pub fn new(folder: &'a Path, first: u64, count: u64, resume: bool) -> Result<Seeds<'a>> {
        let Some(end) = first.checked_add(count) else {
            bail!("--seeds {count} --seed {first}: the last seed would be above {}", u64::MAX);
        };
        Ok(Seeds { folder, seeds: first..end, resume })
    }

    /// Trains from each seed into a folder of its own, and measures what came of it on what it has
    /// not learned from. Runs that are done are not done again when they are resumed.
    pub fn run(
        self,
        recipe: &mut dyn Task,
        session: &Session,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<Outcome> {
        let (count, mut found, mut said) = (self.seeds.end - self.seeds.start, vec![], false);
        for seed in self.seeds {
            recipe.set_seed(seed);
            let own = self.folder.join(format!("seed-{seed}"));
            let mut show = Show::new(recipe.options());
            show.quiet = true;
            show.repeated = said;
            let done = self.resume && own.join("model").is_dir() && is_same(recipe, &own)?;
            if !done {
                say(format_args!("seed {seed}: trains in {}", own.display()));
                said = true;
                let end = train_one(recipe, &own, self.resume && own.is_dir(), session, &mut show)?;
                if let End::Interrupted { step } = end {
                    interrupted(seed, step, session.hint, json, out)?;
                    return Ok(Outcome::Interrupted);
                }
            }
            let report =
                recipe.examine(&ModelFiles::from(&own), &On::Set { set: None, part: None })?;
            let marks = report.marks.iter().map(|mark| format!("{} {:.2}", mark.name, mark.value));
            let before = if done { " (was done before)" } else { "" };
            say(format_args!("seed {seed}: {}{before}", marks.collect::<Vec<_>>().join(" · ")));
            found.push((seed, report.marks));
        }
        let summary = summary(recipe.name(), &found);
        let path = self.folder.join(FILE);
        let text = serde_json::to_string_pretty(&summary)? + "\n";
        regard_models::checkpoint::write_file(&path, text.as_bytes())?;
        if json {
            write_json(out, &summary)?;
            return Ok(Outcome::Positive);
        }
        for mark in summary["marks"].as_array().into_iter().flatten() {
            let number = |key: &str| mark[key].as_f64().unwrap_or(f64::NAN);
            writeln!(
                out,
                "{} {:.2} ± {:.2} {} over {count} seeds (from {:.2} to {:.2})",
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
}

/// Whether a run was trained with the same settings. Where it may be trained further it is not
/// done; where it may not, the mean of both would be that of nothing.
fn is_same(recipe: &dyn Task, run: &Path) -> Result<bool> {
    let recorded = regard_tasks::recipe::task(train::recorded(run)?);
    let recorded = recorded.map_err(|message| anyhow!("{}: {message}", run.display()))?;
    let found = train::differences(&train::table(&*recorded), &train::table(recipe));
    let refused: Vec<_> = found.iter().filter(|each| !each.is_allowed()).collect();
    match refused.is_empty() {
        true => Ok(found.is_empty()),
        false => bail!(train::refuse(run, refused)),
    }
}

fn interrupted(seed: u64, step: u64, hint: &str, json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        let told = json!({ "end": "interrupted", "seed": seed, "step": step, "resume": hint });
        return write_json(out, &told);
    }
    writeln!(out, "interrupted: seed {seed}, after step {step}")?;
    writeln!(out, "go on with: {hint}")?;
    Ok(())
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
