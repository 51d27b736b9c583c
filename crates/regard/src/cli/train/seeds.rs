//! The same recipe from several seeds: a mean says more than one number.

use super::{Session, Show, train as train_one};
use crate::cli::say::say;
use crate::cli::{Outcome, write_json};
use anyhow::{Result, anyhow, bail};
use regard_models::ModelFiles;
use regard_tasks::examine::On;
use regard_tasks::recipe::Task;
use regard_tasks::train::{self, Outcome as End, Repeated, Repeats};
use serde::Serialize;
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
        let summary = Repeats::new(recipe.name(), &found);
        let path = self.folder.join(FILE);
        let text = serde_json::to_string_pretty(&summary)? + "\n";
        regard_models::checkpoint::write_file(&path, text.as_bytes())?;
        if json {
            write_json(out, &summary)?;
            return Ok(Outcome::Positive);
        }
        for Repeated { name, unit, mean, deviation, least, most, .. } in &summary.marks {
            writeln!(
                out,
                "{name} {mean:.2} ± {deviation:.2} {unit} over {count} seeds (from {least:.2} to \
                 {most:.2})",
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

/// Where several runs were stopped, as `--json` prints it.
#[derive(Serialize)]
struct Interrupted<'a> {
    end: &'static str,
    seed: u64,
    step: u64,
    resume: &'a str,
}

fn interrupted(seed: u64, step: u64, hint: &str, json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        return write_json(out, &Interrupted { end: "interrupted", seed, step, resume: hint });
    }
    writeln!(out, "interrupted: seed {seed}, after step {step}")?;
    writeln!(out, "go on with: {hint}")?;
    Ok(())
}
