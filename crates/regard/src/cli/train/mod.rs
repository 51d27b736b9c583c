//! `regard train`: from a recipe to a model.

mod seeds;
mod show;

use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::{models, recipe};
use anyhow::{Context, Result};
use clap::Args;
use regard_tasks::recipe::{Origin, Prepared, Task};
use regard_tasks::train::{self, Event, Outcome as End, Run};
use serde_json::json;
use show::Show;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const EXAMPLES: &str = "\
Examples:
  regard train multi30k-transformer
  regard train multi30k-transformer --set train.steps=500 --out runs/try
  regard train multi30k-transformer --resume
  regard train multi30k-transformer --dump-config > mine.toml
  regard train mine.toml
  regard train cora-gat --seeds 20

A run's folder holds checkpoint-<step>/ (weights, optimiser, place in the data), best.json,
metrics.jsonl, TensorBoard's event files, and at the end model/. Ctrl-C saves and stops; --resume
goes on as if nothing had happened. With --seeds there is such a folder for each, seed-0 and so on,
and seeds.json; --resume then goes on with the first that is not done.";

/// Train a model by a recipe
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The recipe: its name in `regard recipes`, or a TOML file
    recipe: String,
    /// The run's folder [default: runs/ and the recipe's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Another value for a key of the recipe; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Go on from the run's last checkpoint
    #[arg(long)]
    resume: bool,
    /// Train so many times, from seed 0 on, each in its folder; measure each, and tell the mean
    #[arg(long, value_name = "N", conflicts_with_all = ["dump_config"],
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Print the recipe with all defaults and overrides, and train nothing
    #[arg(long)]
    dump_config: bool,
    /// Download no model that the recipe begins with [default: what HF_HUB_OFFLINE says]
    #[arg(long)]
    offline: bool,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let mut recipe = recipe::resolve_task(&flags.recipe, &flags.overrides)?;
    if let Some(seed) = global.seed {
        recipe.set_seed(seed);
    }
    if flags.dump_config {
        match global.json {
            true => write_json(out, &recipe.to_json())?,
            false => write!(out, "{}", recipe.to_toml())?,
        }
        return Ok(Outcome::Positive);
    }
    let folder = flags.out.clone().unwrap_or_else(|| Path::new("runs").join(recipe.name()));
    find_origin(&mut *recipe, flags.offline)?;
    let stop = listen()?;
    if let Some(seeds) = flags.seeds {
        return seeds::run(&mut *recipe, (&folder, seeds, flags.resume), &stop, global, out);
    }
    let mut show = Show::new(recipe.options());
    let end = train(&*recipe, &folder, flags.resume, &stop, &mut show)?;
    let (step, best, what) = match end {
        End::Done { step, best } => (step, Some(best), "done"),
        End::Stopped { step, best } => (step, Some(best), "stopped: nothing got better"),
        End::Interrupted { step } => (step, None, "interrupted"),
    };
    if global.json {
        write_json(out, &json!({ "step": step, "best": best, "end": what, "folder": folder }))?;
        return Ok(Outcome::Positive);
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
        None => writeln!(
            out,
            "go on with: regard train {} --out {} --resume",
            flags.recipe,
            folder.display()
        )?,
    }
    Ok(Outcome::Positive)
}

/// Whether somebody asked to stop. The second time is meant.
fn listen() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

/// One run.
fn train(
    recipe: &dyn Task,
    folder: &Path,
    resume: bool,
    stop: &AtomicBool,
    show: &mut Show,
) -> Result<End> {
    // First of all: what is there already must not be touched.
    train::check_folder(folder, resume)?;
    show.say(format!("{}: reading {}", recipe.name(), recipe.data()));
    let Prepared { mut learner, about } = recipe.prepare()?;
    show.say(format!("{about}, run in {}", folder.display()));
    show.counts = learner.counts();
    let mut watch = |event: Event| {
        show.event(event);
        !stop.load(Ordering::Relaxed)
    };
    let (options, seed) = (recipe.options(), recipe.seed());
    let run = Run { folder, options, seed, resume, watch: &mut watch };
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    std::fs::write(folder.join("recipe.toml"), recipe.to_toml())
        .with_context(|| folder.join("recipe.toml").display().to_string())?;
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
