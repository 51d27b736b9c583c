//! Training of one recipe with several seeds, and the mean of its metrics.

use super::{ProgressPrinter, Session, train as train_one};
use crate::cli::inputs::note;
use crate::cli::say::{quoted, say};
use crate::cli::{Outcome, write_json};
use anyhow::{Result, anyhow, bail};
use regard_models::ModelFiles;
use regard_tasks::evaluation::EvaluationData;
use regard_tasks::recipe::Task;
use regard_tasks::say::list;
use regard_tasks::train::{self, Repeated, Repeats, TrainOutcome as End};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::ops::Range;
use std::path::Path;

/// File with the summary, beside the runs.
const FILE: &str = "seeds.json";

/// File with the seeds that are to be trained, beside the runs.
pub(super) const PLAN: &str = "seeds-plan.json";
/// Planned seeds that are looked at: a plan may be edited.
const MOST_SEEDS: usize = 100_000;

/// Seeds of a series of runs, written before the first one is trained.
#[derive(Serialize, Deserialize)]
pub struct SeedPlan {
    first: u64,
    count: u64,
}

impl SeedPlan {
    /// Reads the plan of the runs in a folder; `None` if there is none.
    pub fn of(folder: &Path) -> Option<SeedPlan> {
        let text = regard_models::checkpoint::read_text(&folder.join(PLAN)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn seeds(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.count)
    }

    /// Returns the seeds that are planned here, not in another plan, and not trained.
    fn lost(&self, new: &SeedPlan, folder: &Path) -> Vec<String> {
        let planned = self.seeds().take(MOST_SEEDS).filter(|seed| !new.seeds().contains(seed));
        planned.filter(|seed| !is_trained(folder, *seed)).map(|seed| seed.to_string()).collect()
    }

    /// Replaces the plan of the runs in a folder. Seeds of the earlier plan that are still to be
    /// trained are said, because no command shows them any more.
    fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        let earlier = SeedPlan::of(folder);
        let lost = earlier.as_ref().map_or(vec![], |earlier| earlier.lost(self, folder));
        let command = earlier.and_then(|earlier| earlier.rest(folder));
        if let (false, Some(command)) = (lost.is_empty(), command) {
            note(&format!(
                "the seeds {} were planned before and are not trained; to train them later: \
                 {command}",
                list(&lost, 8)
            ));
        }
        let text = serde_json::to_string(self)? + "\n";
        Ok(regard_models::checkpoint::write_file(&folder.join(PLAN), text.as_bytes())?)
    }

    /// Returns the command that trains the seeds that are left; `None` if all are done.
    pub fn rest(&self, folder: &Path) -> Option<String> {
        let SeedPlan { first, count } = *self;
        let is_done = |seed: &u64| is_trained(folder, *seed);
        let done = self.seeds().take(MOST_SEEDS).filter(is_done).count();
        let seed = if first == 0 { String::new() } else { format!(" --seed {first}") };
        let folder = quoted(folder.display());
        let command = || format!("regard train --resume {folder} --seeds {count}{seed}");
        ((done as u64) < count).then(command)
    }
}

fn is_trained(folder: &Path, seed: u64) -> bool {
    folder.join(format!("seed-{seed}")).join("model").is_dir()
}

/// Seeds to train with, and the folder of the runs.
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

    /// Trains each seed in its own folder, and evaluates it on held-out data. On resume, finished
    /// runs are only evaluated.
    pub fn run(
        self,
        recipe: &mut dyn Task,
        session: &Session,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<Outcome> {
        let (count, mut found, mut said) = (self.seeds.end - self.seeds.start, vec![], false);
        // What is refused does not replace the plan of an earlier command.
        let trained = self.seeds.clone().find(|seed| is_trained(self.folder, *seed));
        if let (true, Some(seed)) = (self.resume, trained) {
            recipe.set_seed(seed);
            is_same(recipe, &self.folder.join(format!("seed-{seed}")))?;
        }
        SeedPlan { first: self.seeds.start, count }.write(self.folder)?;
        for seed in self.seeds {
            recipe.set_seed(seed);
            let own = self.folder.join(format!("seed-{seed}"));
            let mut show = ProgressPrinter::new(recipe.options());
            show.quiet = true;
            show.evaluates_after();
            show.repeated = said;
            let done = self.resume && own.join("model").is_dir() && is_same(recipe, &own)?;
            if !done {
                say(format_args!("seed {seed}: training in {}", own.display()));
                said = true;
                let end = train_one(recipe, &own, self.resume && own.is_dir(), session, &mut show)?;
                if let End::Interrupted { step } = end {
                    interrupted(seed, step, session.hint, json, out)?;
                    return Ok(Outcome::Interrupted);
                }
            }
            let report = recipe.evaluate(
                &ModelFiles::from(&own),
                &EvaluationData::Set { set: None, part: None },
            )?;
            let marks = report.marks.iter().map(|mark| format!("{} {:.2}", mark.name, mark.value));
            let before = if done { " (already trained)" } else { "" };
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

/// Whether a run was trained with the same settings and data. False if only settings differ that may
/// change on resume; an error otherwise, because a mean over different settings or data has no
/// meaning.
fn is_same(recipe: &dyn Task, run: &Path) -> Result<bool> {
    let recorded = regard_tasks::recipe::task(train::recorded(run)?);
    let recorded = recorded.map_err(|message| anyhow!("{}: {message}", run.display()))?;
    let found = train::differences(&train::table(&*recorded), &train::table(recipe));
    let refused: Vec<_> = found.iter().filter(|each| !each.is_allowed()).collect();
    match refused.is_empty() {
        true => {
            train::check_data(run)?;
            Ok(found.is_empty())
        }
        false => bail!(train::refuse(run, refused)),
    }
}

/// Position at which a series of runs was interrupted, as `--json` prints it.
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
    writeln!(out, "to continue: {hint}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_seeds_that_were_planned() {
        let folder = std::env::temp_dir().join(format!("regard-seeds-{}", std::process::id()));
        let shown = quoted(folder.display());
        let done = |seed: u64| {
            std::fs::create_dir_all(folder.join(format!("seed-{seed}")).join("model")).unwrap();
        };
        // Seeds of an earlier plan do not count.
        [0, 1, 10].into_iter().for_each(done);
        let plan = SeedPlan { first: 10, count: 2 };
        let command = format!("regard train --resume {shown} --seeds 2 --seed 10");
        assert_eq!(plan.rest(&folder), Some(command));
        done(11);
        assert_eq!(plan.rest(&folder), None);
        let plan = SeedPlan { first: 0, count: 3 };
        assert_eq!(plan.rest(&folder), Some(format!("regard train --resume {shown} --seeds 3")));
        // Of an earlier plan, those count that a new one leaves out.
        let earlier = SeedPlan { first: 0, count: 5 };
        assert_eq!(earlier.lost(&plan, &folder), ["3", "4"]);
        assert!(earlier.lost(&SeedPlan { first: 2, count: 3 }, &folder).is_empty());
        plan.write(&folder).unwrap();
        let found = SeedPlan::of(&folder).unwrap();
        assert_eq!((found.first, found.count), (0, 3));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(SeedPlan::of(Path::new("/no/such/folder")).is_none());
    }
}
