//! `regard bench images`: inference and training speed of image classifiers.

use super::super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::machine;
use crate::models;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use regard_kernels::pool;
use regard_tasks::classify_image::ImageBenchmark;
use regard_tasks::metrics::Sample;
use serde::Serialize;
use std::io::Write;

/// Measure inference or training speed of an image classifier
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard bench images --model clothes --batch 128                  # built-in model
  regard bench images --model clothes --mode train --batch 128
  regard bench images --model clothes --threads 1 --json

A folder needs only a config.json; without weights, random ones are used. Pixels are random.")]
pub struct Flags {
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// Operation to measure
    #[arg(long, alias = "do", value_enum, default_value_t = Mode::Infer)]
    mode: Mode,
    /// Batch size in images
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Number of rounds; the median and the fastest are printed
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Inference: images to labels
    #[value(alias = "read")]
    Infer,
    /// Training steps on labels
    #[value(alias = "learn")]
    Train,
}

#[derive(Serialize)]
struct Findings {
    batch: usize,
    parameters: usize,
    threads: usize,
    /// Median milliseconds of a round.
    ms: f64,
    fastest_ms: f64,
    peak_memory_bytes: Option<u64>,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.batch == 0 {
        bail!("--batch: need at least one image");
    }
    let mut speed = ImageBenchmark::open(
        models::stored(&models::resolve(&flags.model, &flags.hub)?, &flags.hub)?,
        flags.mode == Mode::Train,
    )?;
    let images = speed.images(flags.batch);
    let mut times = vec![];
    // The first round warms up.
    for round in 0..=flags.rounds.max(1) {
        let time = match flags.mode {
            Mode::Infer => speed.read(&images),
            Mode::Train => speed.learn(&images),
        };
        if round > 0 {
            times.push(1e3 * time);
        }
    }
    let Sample { median: ms, least: fastest_ms, .. } = Sample::of(&times);
    let (parameters, threads) = (speed.parameters(), pool::threads());
    let peak_memory_bytes = machine::peak_memory();
    let batch = flags.batch;
    if global.json {
        let findings = Findings { batch, parameters, threads, ms, fastest_ms, peak_memory_bytes };
        write_json(out, &findings)?;
        return Ok(Outcome::Positive);
    }
    writeln!(
        out,
        "{batch} images, {:.2} M parameters, {threads} threads: {ms:.2} ms ({fastest_ms:.2} in the \
         fastest round), {:.0} images/s",
        parameters as f64 / 1e6,
        batch as f64 / ms * 1e3,
    )?;
    Ok(Outcome::Positive)
}
