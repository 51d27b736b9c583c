//! `regard train`: training by a recipe, or on files of the user.

mod eta;
pub mod own;
mod plan;
mod seeds;
mod show;
pub(super) mod signals;

use super::say::quoted;
use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::models;
use crate::show::table::wrap;
use anyhow::{Context, Result, bail};
use clap::Args;
use own::{OwnFlags, OwnMetrics};
use plan::Plan;
use regard_models::adapter;
use regard_tasks::import;
use regard_tasks::recipe::{Origin, Task, keys};
use regard_tasks::train::{self, Event, RunOptions, TrainOutcome as End};
pub use seeds::SeedPlan;
use seeds::Seeds;
use serde::Serialize;
use show::ProgressPrinter;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const EXAMPLES: &str = "\
Trains a model on your files, for a task, or as described by a recipe: data, model, optimiser and
schedule in one TOML file. `regard recipes` lists the built-in recipes.

Your own data, with examples/reviews.csv of this repository:
  regard train classify --data examples/reviews.csv --dry-run  # check the data, print the recipe
  regard train classify --data examples/reviews.csv --quick    # then: regard classify … --model RUN
  regard train classify --data news.csv --text title,body --label topic --from MODEL  # fine-tune
  regard train generate --data notes.txt --from MODEL --lora 8   # a LoRA adapter

  task            --data
{TASKS}
A folder with train.*, valid.* and test.* has its own parts. Columns are found by name and content,
or set by --text, --label, --source, --target, --query, --context, --question and --answer. All rows
are checked first, and all problems are listed with their lines. The recipe is chosen by task, size
of the data and --quick (at most 2 minutes on two cores), default (15) or --better (90); --set
changes it, and the run keeps it as recipe.toml. Data are copied to data/ in the run's folder (audio
files are not).

Recipes:
  regard train sort-10 --set train.steps=500 --out runs/try  # points are generated: no data needed
  regard train --resume runs/try --set train.steps=1000      # continue with more steps
  regard train multi30k-transformer                          # needs: regard data multi30k --fetch
  regard train sort-10 --dump-config > mine.toml             # edit it, then: regard train mine.toml
  regard train sst2-words --set data.train=train.csv --set data.test=test.csv  # your files

`regard recipes --keys RECIPE` explains the keys of a recipe.

A run's folder holds recipe.toml and run.json (settings and hashes of the data), checkpoint-<step>/
(weights, optimiser state, position in the data, checksums), best.json, metrics.jsonl, TensorBoard
event files, and at the end model/. With --seeds it holds such a folder for each seed, seed-0 and so
on, and seeds.json.

Ctrl-C, SIGTERM and SIGHUP save a checkpoint and stop; the exit code is 130. --resume RUN continues
with the run's own recipe, including every --set of the first command, and yields the same weights
as an uninterrupted run. It stops with an error that names the difference if the recipe, the seed, a
setting or the data differ. Only these settings may change: train.steps (to more), train.log_every,
train.eval_every, train.save_every, train.keep, train.patience, train.average. A damaged checkpoint
is renamed; the run resumes from the newest valid one.";

/// The help text with the tasks that read files of the user.
fn examples() -> String {
    // Wrapped here: clap would begin the second line of a row below the names of the tasks.
    let row = |row: &import::Importer| -> String {
        let named = [row.task].into_iter().chain(std::iter::repeat(""));
        let lines = wrap(row.reads, 82).into_iter().zip(named);
        lines.map(|(line, name)| format!("  {name:<15} {line}\n")).collect()
    };
    EXAMPLES.replace("{TASKS}", &import::IMPORTERS.iter().map(row).collect::<String>())
}

/// Train a model on your files or from a recipe
#[derive(Args)]
#[command(after_help = examples())]
pub struct Flags {
    /// Recipe: a name listed by `regard recipes`, or a TOML file [with --resume: the run's]. With
    /// --data: a task, such as classify or translate
    #[arg(required_unless_present = "resume", value_name = "RECIPE or TASK")]
    recipe: Option<String>,
    /// Folder of the run [default: runs/ and the recipe's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Set a key of the recipe; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Continue a run from its newest valid checkpoint: its folder, or its name in runs/
    #[arg(long, value_name = "RUN", num_args = 0..=1, conflicts_with = "data")]
    resume: Option<Option<String>>,
    /// Train N times with seeds 0, 1, …; evaluate each run and print the mean
    #[arg(long, value_name = "N", conflicts_with_all = ["dump_config"],
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Limit of memory for parameters, gradients and optimiser state, such as 500MB or 8GB: refuse
    /// larger models [default: the memory of this machine, on Linux]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
    /// Print the recipe with all defaults and overrides, without training
    #[arg(long)]
    dump_config: bool,
    /// Do not download the pretrained model of the recipe [default: HF_HUB_OFFLINE]
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    lora: LoraFlags,
    #[command(flatten)]
    own: OwnFlags,
}

/// Flags for training an adapter.
#[derive(Args)]
#[command(next_help_heading = "Adapters (LoRA)")]
struct LoraFlags {
    /// Train an adapter of this rank instead of the weights of --from; the run keeps it as PEFT does
    #[arg(long, value_name = "RANK", conflicts_with = "resume")]
    lora: Option<usize>,
    /// Scale updates by ALPHA / RANK [default: twice the rank]
    #[arg(long, value_name = "ALPHA", requires = "lora")]
    lora_alpha: Option<f64>,
    /// Ends of the names of the layers to update, with commas between them [default: all-linear, all
    /// but the head]
    #[arg(long, value_name = "NAMES", requires = "lora", value_delimiter = ',')]
    lora_targets: Vec<String>,
}

impl Flags {
    /// Keys of the recipe that flags set: those of --set, and those of an adapter.
    fn overrides(&self) -> Vec<String> {
        let LoraFlags { lora, lora_alpha, lora_targets } = &self.lora;
        let targets = (!lora_targets.is_empty()).then(|| format!("lora.targets={lora_targets:?}"));
        let rank = lora.map(|rank| format!("lora.rank={rank}"));
        let alpha = lora_alpha.map(|alpha| format!("lora.alpha={alpha:?}"));
        self.overrides.iter().cloned().chain(rank).chain(alpha).chain(targets).collect()
    }

    /// Refuses an adapter for a recipe that trains none.
    fn check_lora(&self, task: &str) -> Result<()> {
        let tasks = keys::tasks_with("lora.rank");
        match self.lora.lora.is_some() && !tasks.contains(&task) {
            true => bail!(
                "--lora: {task} trains all weights of a model; adapters are trained for {}, as in: \
                 regard train {} --data FILE --from MODEL --lora 8",
                tasks.join(", "),
                tasks[0]
            ),
            false => Ok(()),
        }
    }
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let plan = match flags.own.is_used() {
        true => match own::prepare(&flags, global, out)? {
            own::Prepared::Plan(plan) => plan.checked()?,
            own::Prepared::Checked(outcome) => return Ok(outcome),
        },
        false => Plan::new(&flags, global)?,
    };
    if flags.dump_config {
        match global.json {
            true => write_json(out, &plan.recipe.to_json())?,
            false => write!(out, "{}", plan.recipe.to_toml())?,
        }
        return Ok(Outcome::Positive);
    }
    let (folder, wrote) = (plan.folder.clone(), plan.data.is_some());
    let outcome = follow(plan, &flags, global, out);
    if outcome.is_err() && wrote {
        own::remove_data(&folder);
    }
    outcome
}

/// Trains as planned.
fn follow(plan: Plan, flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let Plan { mut recipe, folder, resume, data: _lock } = plan;
    let hint = plan::command(&folder, flags, global);
    let session = Session { stop: &*signals::listen()?, memory: flags.memory, hint: &hint };
    find_origin(&mut *recipe, flags.offline)?;
    if let Some(count) = flags.seeds {
        let seeds = Seeds::new(&folder, global.seed.unwrap_or(0), count, resume)?;
        return seeds.run(&mut *recipe, &session, global.json, out);
    }
    let mut show = ProgressPrinter::new(recipe.options());
    if own::is_own(&folder) {
        show.evaluates_after();
    }
    let end = train(&*recipe, &folder, resume, &session, &mut show)?;
    let (step, best, what) = match end {
        End::Done { step, best } => (step, Some(best), "done"),
        End::Stopped { step, best } => (step, Some(best), "stopped"),
        End::Interrupted { step } => (step, None, "interrupted"),
    };
    let outcome = if best.is_some() { Outcome::Positive } else { Outcome::Interrupted };
    if global.json {
        let resume = best.is_none().then_some(&hint[..]);
        let metrics = (own::is_own(&folder) && best.is_some()).then(|| own::metrics(&folder));
        let OwnMetrics { valid, test } = metrics.transpose()?.unwrap_or_default();
        write_json(out, &Ended { step, best, end: what, folder: &folder, resume, valid, test })?;
        return Ok(outcome);
    }
    let minutes = show.began.elapsed().as_secs_f64() / 60.0;
    if let End::Stopped { .. } = end {
        let patience = recipe.options().patience;
        writeln!(
            out,
            "early stopping at step {step} after {minutes:.1} min: no improvement in {patience} \
             evaluations"
        )?;
    } else {
        writeln!(out, "{what} after step {step}, {minutes:.1} min")?;
    }
    match best {
        Some(best) => {
            writeln!(
                out,
                "best {} {best:.4}; the model is in {}",
                recipe.decides(),
                folder.join("model").display()
            )?;
            let model = folder.join("model");
            if adapter::is_adapter(&model) {
                let base = adapter::read_config(&model)?.base.unwrap_or_default();
                let (base, model) = (quoted(&base), quoted(model.display()));
                writeln!(
                    out,
                    "it is a LoRA adapter, as PEFT reads it; --model {} uses it with its base, and \
                     anywhere else: --model {base} --adapter {model}\nto merge it into the weights: \
                     regard models export {} --out MERGED",
                    quoted(folder.display()),
                    quoted(folder.display())
                )?;
            }
            if own::is_own(&folder) {
                own::report(&*recipe, &folder, out)?;
            }
        }
        None => writeln!(out, "to continue: {hint}")?,
    }
    Ok(outcome)
}

/// Outcome of a run, as `--json` prints it.
#[derive(Serialize)]
struct Ended<'a> {
    step: u64,
    best: Option<f64>,
    end: &'static str,
    folder: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<&'a str>,
    /// Metrics of the validation part, after training on own data without a test part.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid: Option<BTreeMap<&'static str, f64>>,
    /// Metrics of the test part, after training on own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<BTreeMap<&'static str, f64>>,
}

/// Parses a number of bytes, with or without a unit.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let units = [("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("", 1)];
    let upper = text.trim().to_ascii_uppercase();
    let found = units.iter().find_map(|(unit, size)| Some((upper.strip_suffix(unit)?, *size)));
    let (number, size) = found.expect("every text ends with nothing");
    match number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(size)) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("need a number of bytes, or with a unit KB, MB or GB, as 500MB".to_string()),
    }
}

/// Settings shared by all runs of one command.
struct Session<'a> {
    /// Set by a signal: the run saves a checkpoint and stops.
    stop: &'a AtomicBool,
    /// Memory limit for the parameters in bytes; None: no limit was given.
    memory: Option<u64>,
    /// Command that resumes the run.
    hint: &'a str,
}

/// Runs one training.
fn train(
    recipe: &dyn Task,
    folder: &Path,
    resume: bool,
    session: &Session,
    show: &mut ProgressPrinter,
) -> Result<End> {
    // First: existing files must not be touched.
    train::check_unlocked(folder)?;
    if let Err(error) = train::check_folder(folder, resume) {
        match train::is_run(folder) && !resume {
            true => bail!("{error}: regard train --resume {}", quoted(folder.display())),
            false => bail!(error),
        }
    }
    let mut watch = |event: Event| {
        match event {
            Event::Reads { recipe, data } => show.about(format!("{recipe}: reading {data}")),
            Event::Prepared { about, counts } => {
                show.about(format!("{about}, run in {}", folder.display()));
                if !resume && !show.quiet {
                    // Printed now, because a killed run cannot print it.
                    show.say(format!("if it is interrupted, to continue: {}", session.hint));
                }
                show.counts = counts;
            }
            event => show.event(event),
        }
        !session.stop.load(Ordering::Relaxed)
    };
    let run = RunOptions { folder, resume, memory: session.memory };
    let end = train::start(recipe, &run, &mut watch)?;
    show.bar.finish_and_clear();
    Ok(end)
}

/// Finds the pretrained model of a recipe. For one of the Hub, the run records the commit.
fn find_origin(recipe: &mut dyn Task, offline: bool) -> Result<()> {
    let Some(Origin { model, revision }) = recipe.origin() else { return Ok(()) };
    let hub = Hub { revision: revision.map(str::to_string), offline, ..Hub::default() };
    let found = models::origin(model, &hub).context("from")?;
    recipe.set_origin(found.path, found.commit);
    Ok(())
}
