//! `regard bench step`: duration of training steps.

use super::super::{Global, Outcome, write_json};
use crate::{machine, recipe};
use anyhow::Result;
use clap::Args;
use regard_kernels::pool;
use regard_tasks::metrics::Sample;
use regard_tasks::recipe::Prepared;
use regard_tasks::train::pace;
use serde::Serialize;
use std::io::Write;

/// Measure training steps of a recipe on its data
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard bench step sort-10                                 # points are generated: no data needed
  regard bench step sort-10 --steps 100 --threads 1 --json
  regard bench step shakespeare-gpt-small --set train.batch_tokens=768  # needs its data set
The last one needs a data set: regard data tinyshakespeare --fetch

A step includes the batch, forward, loss, backward, clipping and AdamW. The first tenth of the steps
is warm-up and is not counted.")]
pub struct Flags {
    /// Recipe: a name listed by `regard recipes`, or a TOML file
    recipe: String,
    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 50)]
    steps: usize,
    /// Set a key of the recipe; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// Duration of steps, as `--json` prints it.
#[derive(Serialize)]
struct Findings<'a> {
    recipe: &'a str,
    steps: usize,
    ms: f64,
    fastest_ms: f64,
    per_second: f64,
    unit: &'static str,
    threads: usize,
    peak_memory_bytes: Option<u64>,
    loss: Option<f64>,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let recipe = recipe::resolve_task(&flags.recipe, &flags.overrides)?;
    let Prepared { mut learner, about } = recipe.prepare()?;
    let all = pace(&mut *learner, recipe.options(), recipe.seed(), flags.steps.max(1))?;
    let counted = &all[all.len() / 10..];
    let ms: Vec<f64> = counted.iter().map(|step| 1e3 * step.seconds).collect();
    let Sample { median, least: fastest, .. } = Sample::of(&ms);
    let seconds: f64 = counted.iter().map(|step| step.seconds).sum();
    let rate = counted.iter().map(|step| step.tokens).sum::<usize>() as f64 / seconds;
    let (unit, threads) = (learner.counts(), pool::threads());
    if global.json {
        let findings = Findings {
            recipe: recipe.name(),
            steps: counted.len(),
            ms: median,
            fastest_ms: fastest,
            per_second: rate,
            unit,
            threads,
            peak_memory_bytes: machine::peak_memory(),
            loss: all.last().map(|step| step.loss),
        };
        write_json(out, &findings)?;
        return Ok(Outcome::Positive);
    }
    let sizes = about.lines().last().unwrap_or_default();
    writeln!(out, "{}: {sizes}", recipe.name())?;
    writeln!(
        out,
        "a step: {median:.2} ms ({fastest:.2} the fastest of {}), {rate:.0} {unit}/s, {threads} \
         threads",
        counted.len()
    )?;
    Ok(Outcome::Positive)
}
