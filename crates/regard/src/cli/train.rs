//! `regard train`: from a recipe to a model.

use super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::{models, recipe};
use anyhow::{Context, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regard_tasks::recipe::{Origin, Prepared, Task};
use regard_tasks::train::{self, Event, Options, Outcome as End, Run};

use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  regard train multi30k-transformer
  regard train multi30k-transformer --set train.steps=500 --out runs/try
  regard train multi30k-transformer --resume
  regard train multi30k-transformer --dump-config > mine.toml
  regard train mine.toml

A run's folder holds checkpoint-<step>/ (weights, optimiser, place in the data), best.json,
metrics.jsonl, TensorBoard's event files, and at the end model/. Ctrl-C saves and stops; --resume
goes on as if nothing had happened.";

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
    let folder = flags.out.unwrap_or_else(|| Path::new("runs").join(recipe.name()));
    // First of all: what is there already must not be touched.
    train::check_folder(&folder, flags.resume)?;
    let mut show = Show::new(recipe.options());
    find_origin(&mut *recipe, flags.offline)?;
    show.say(format!("{}: reading {}", recipe.name(), recipe.data()));
    let Prepared { mut learner, about } = recipe.prepare()?;
    show.say(format!("{about}, run in {}", folder.display()));
    show.counts = learner.counts();
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    ctrlc::set_handler(move || {
        // The second time is meant.
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen for Ctrl-C")?;
    let mut watch = |event: Event| {
        show.event(event);
        !stop.load(Ordering::Relaxed)
    };
    let run = Run {
        folder: &folder,
        options: recipe.options(),
        seed: recipe.seed(),
        resume: flags.resume,
        watch: &mut watch,
    };
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    std::fs::write(folder.join("recipe.toml"), recipe.to_toml())
        .with_context(|| folder.join("recipe.toml").display().to_string())?;
    let end = run.train(&mut *learner)?;
    show.bar.finish_and_clear();
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

/// Finds the model that a recipe begins with. Of one of the Hub, the run writes down the commit.
fn find_origin(recipe: &mut dyn Task, offline: bool) -> Result<()> {
    let Some(Origin { model, revision }) = recipe.origin() else { return Ok(()) };
    let hub = Hub { revision: revision.map(str::to_string), offline };
    let found = models::origin(model, &hub).context("from")?;
    recipe.set_origin(found.path, found.commit);
    Ok(())
}

/// The progress of a run: a bar on a terminal, lines elsewhere.
struct Show {
    bar: ProgressBar,
    lines: bool,
    every: u64,
    /// What the speed is told in.
    counts: &'static str,
    began: Instant,
    since: (Instant, u64, f64, u64),
}

impl Show {
    fn new(options: &Options) -> Show {
        let lines = !std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(
            Some(options.steps),
            if lines { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() },
        );
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} · {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let now = Instant::now();
        let (every, since) = (options.log_every, (now, 0, 0.0, 0));
        Show { bar, lines, every, counts: "tokens", began: now, since }
    }

    fn say(&self, line: String) {
        match self.lines {
            true => eprintln!("{line}"),
            false => self.bar.println(line),
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Resumed(step) => {
                self.bar.set_position(step);
                self.bar.reset_eta();
                self.say(format!("going on from step {step}"));
            }
            Event::Step { step, loss, lr, tokens } => {
                self.since.1 += tokens as u64;
                self.since.2 += loss;
                self.since.3 += 1;
                self.bar.set_position(step);
                let line = self.lines && step.is_multiple_of(self.every);
                if !line && (self.lines || !step.is_multiple_of(self.every.min(10))) {
                    return;
                }
                let (from, tokens, sum, steps) = self.since;
                let rate = tokens as f64 / from.elapsed().as_secs_f64();
                let mean = sum / steps as f64;
                let of = self.counts;
                let message = format!("loss {mean:.3} · lr {lr:.2e} · {rate:.0} {of}/s");
                if line {
                    let minutes = self.began.elapsed().as_secs_f64() / 60.0;
                    eprintln!("{step:>7} {message} · {minutes:.1} min");
                }
                self.bar.set_message(message);
                self.since = (Instant::now(), 0, 0.0, 0);
            }
            Event::Skipped(step) => {
                self.say(format!("step {step}: gradients that are not finite; nothing changed"));
            }
            Event::Evaluated { step, evaluation, best } => {
                let mark = if best { " (best)" } else { "" };
                self.say(format!("step {step}: {}{mark}", measures(&evaluation.measures)));
                if let Some(sample) = &evaluation.sample {
                    self.say(format!("  {sample}"));
                }
                self.since = (Instant::now(), 0, 0.0, 0);
            }
            Event::Averaged { checkpoints, evaluation, best } => {
                let mark = if best { " (best)" } else { "" };
                let measures = measures(&evaluation.measures);
                self.say(format!("mean of {checkpoints} checkpoints: {measures}{mark}"));
            }
            Event::Saved(_) => {}
        }
    }
}

fn measures(all: &[(String, f64)]) -> String {
    let each = all.iter().map(|(name, value)| format!("{name} {value:.4}"));
    each.collect::<Vec<_>>().join(" · ")
}
