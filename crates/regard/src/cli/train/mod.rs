//! `regard train`: from a recipe to a model.

mod plan;
mod seeds;
mod show;
mod signals;

use super::say::quoted;
use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use plan::Plan;
use regard_tasks::recipe::{Origin, Prepared, Task};
use regard_tasks::train::{self, Event, Outcome as End, Run};
use seeds::Seeds;
use serde::Serialize;
use show::Show;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const EXAMPLES: &str = "\
Examples:
  regard train multi30k-transformer
  regard train multi30k-transformer --set train.steps=500 --out runs/try
  regard train --resume runs/try
  regard train --resume runs/try --set train.steps=1000
  regard train multi30k-transformer --dump-config > mine.toml
  regard train mine.toml
  regard train cora-gat --seeds 20
  regard train --resume runs/cora-gat --seeds 20

A run's folder holds recipe.toml and run.json (the settings and the hashes of the data that the run
began with), checkpoint-<step>/ (weights, optimiser state, position in the data, checksums),
best.json, metrics.jsonl, TensorBoard event files, and at the end model/.

Ctrl-C, SIGTERM and SIGHUP save a checkpoint and stop; the exit code is 130. --resume RUN continues
with the run's own recipe, every --set of the first command included, and gives the same weights as
a run that was never stopped. It refuses another recipe, seed, setting or other data, and names the
difference. Only these settings may change: train.steps (more of them), train.log_every,
train.eval_every, train.save_every, train.keep, train.patience, train.average. A damaged checkpoint
is set aside, and the newest whole one before it is used.

With --seeds there is such a folder for each seed, seed-0 and so on, and seeds.json.";

/// Train a model by a recipe
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The recipe: its name in `regard recipes`, or a TOML file [with --resume: the run's own]
    #[arg(required_unless_present = "resume")]
    recipe: Option<String>,
    /// The run's folder [default: runs/ and the recipe's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Another value for a key of the recipe; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Go on with a run from its newest whole checkpoint: its folder, or its name in runs/
    #[arg(long, value_name = "RUN", num_args = 0..=1)]
    resume: Option<Option<String>>,
    /// Train so many times, from seed 0 on, each in its folder; measure each, and tell the mean
    #[arg(long, value_name = "N", conflicts_with_all = ["dump_config"],
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Refuse a model whose parameters take more than this to train, as 500MB or 8GB
    /// [default: the memory of this machine, on Linux]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
    /// Print the recipe with all defaults and overrides, and train nothing
    #[arg(long)]
    dump_config: bool,
    /// Download no model that the recipe begins with [default: what HF_HUB_OFFLINE says]
    #[arg(long)]
    offline: bool,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let Plan { mut recipe, folder, resume } = Plan::new(&flags, global)?;
    if flags.dump_config {
        match global.json {
            true => write_json(out, &recipe.to_json())?,
            false => write!(out, "{}", recipe.to_toml())?,
        }
        return Ok(Outcome::Positive);
    }
    let hint = plan::command(&folder, &flags, global);
    let session = Session { stop: &*signals::listen()?, memory: flags.memory, hint: &hint };
    find_origin(&mut *recipe, flags.offline)?;
    if let Some(count) = flags.seeds {
        let seeds = Seeds::new(&folder, global.seed.unwrap_or(0), count, resume)?;
        return seeds.run(&mut *recipe, &session, global.json, out);
    }
    let mut show = Show::new(recipe.options());
    let end = train(&*recipe, &folder, resume, &session, &mut show)?;
    let (step, best, what) = match end {
        End::Done { step, best } => (step, Some(best), "done"),
        End::Stopped { step, best } => (step, Some(best), "stopped: nothing got better"),
        End::Interrupted { step } => (step, None, "interrupted"),
    };
    let outcome = if best.is_some() { Outcome::Positive } else { Outcome::Interrupted };
    if global.json {
        let resume = best.is_none().then_some(&hint[..]);
        write_json(out, &Ended { step, best, end: what, folder: &folder, resume })?;
        return Ok(outcome);
    }
    writeln!(
        out,
        "{what} after step {step}, {:.1} min",
        show.began.elapsed().as_secs_f64() / 60.0
    )?;
    match best {
        Some(best) => {
            writeln!(
                out,
                "best {} {best:.4}; the model is in {}",
                recipe.decides(),
                folder.join("model").display()
            )?;
        }
        None => writeln!(out, "go on with: {hint}")?,
    }
    Ok(outcome)
}

/// How a run ended, as `--json` prints it.
#[derive(Serialize)]
struct Ended<'a> {
    step: u64,
    best: Option<f64>,
    end: &'static str,
    folder: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<&'a str>,
}

/// Bytes, with a unit or without.
fn bytes(text: &str) -> Result<u64, String> {
    let units = [("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("", 1)];
    let upper = text.trim().to_ascii_uppercase();
    let found = units.iter().find_map(|(unit, size)| Some((upper.strip_suffix(unit)?, *size)));
    let (number, size) = found.expect("every text ends with nothing");
    match number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(size)) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("need bytes, or KB, MB or GB as in 500MB".to_string()),
    }
}

/// The settings that all runs of one command share.
struct Session<'a> {
    /// Set by a signal.
    stop: &'a AtomicBool,
    /// The limit for the parameters, in bytes.
    memory: Option<u64>,
    /// The command that resumes.
    hint: &'a str,
}

/// One run.
fn train(
    recipe: &dyn Task,
    folder: &Path,
    resume: bool,
    session: &Session,
    show: &mut Show,
) -> Result<End> {
    // First of all: what is there already must not be touched.
    train::check_unlocked(folder)?;
    if let Err(error) = train::check_folder(folder, resume) {
        match train::is_run(folder) && !resume {
            true => bail!("{error}: regard train --resume {}", quoted(folder.display())),
            false => bail!(error),
        }
    }
    show.about(format!("{}: reading {}", recipe.name(), recipe.data()));
    let (Prepared { mut learner, about }, record) = train::prepare(recipe, session.memory)?;
    show.about(format!("{about}, run in {}", folder.display()));
    if !resume && !show.quiet {
        // Now, since a run that is killed cannot tell.
        show.say(format!("if it stops, go on with: {}", session.hint));
    }
    show.counts = learner.counts();
    let mut watch = |event: Event| {
        show.event(event);
        !session.stop.load(Ordering::Relaxed)
    };
    let (options, seed, record) = (recipe.options(), recipe.seed(), &record);
    let run = Run { folder, options, seed, resume, record, watch: &mut watch };
    let end = run.train(&mut *learner)?;
    show.bar.finish_and_clear();
    Ok(end)
}

/// Finds the model that a recipe begins with. Of one of the Hub, the run writes down the commit.
fn find_origin(recipe: &mut dyn Task, offline: bool) -> Result<()> {
    let Some(Origin { model, revision }) = recipe.origin() else { return Ok(()) };
    let hub = Hub { revision: revision.map(str::to_string), offline };
    let found = models::origin(model, &hub).context("from")?;
    recipe.set_origin(found.path, found.commit);
    Ok(())
}
