//! `regard bench translate`: sentences a second.

use super::super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::{machine, models};
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_kernels::pool;
use regard_tasks::decode::Options;
use regard_tasks::metrics::Sample;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Measure how fast a model translates the lines of a file
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard bench translate --model runs/tatoeba-en-fr-transformer --lines english.txt
  regard bench translate --model FOLDER --lines english.txt --batch 1 --num-beams 1 --json

Lines are read and cut into batches by length; a first round warms up and does not count.")]
pub struct Flags {
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    /// [default: en-fr]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// A sentence a line
    #[arg(long, value_name = "FILE")]
    lines: PathBuf,
    /// Sentences at a time
    #[arg(long, value_name = "N", default_value_t = 32)]
    batch: usize,
    /// Beams
    #[arg(long, value_name = "N", default_value_t = 4)]
    num_beams: usize,
    /// Rounds; the fastest and the median are told
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Serialize)]
struct Findings {
    sentences: usize,
    tokens: usize,
    batch: usize,
    num_beams: usize,
    /// Of the median round.
    seconds: f64,
    fastest_seconds: f64,
    sentences_per_second: f64,
    load_ms: f64,
    parameters: usize,
    peak_memory_bytes: Option<u64>,
    threads: usize,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let began = Instant::now();
    let translator = models::translator(flags.model.as_deref(), &flags.hub)?;
    let load_ms = 1e3 * began.elapsed().as_secs_f64();
    let text =
        std::fs::read_to_string(&flags.lines).with_context(|| flags.lines.display().to_string())?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        bail!("{}: holds no sentence", flags.lines.display());
    }
    let options = Options { num_beams: flags.num_beams, ..translator.defaults().clone() };
    let warm = &lines[..lines.len().min(4 * flags.batch)];
    translator.translate(warm, &options, flags.batch, false)?;
    let (mut times, mut tokens) = (vec![], 0);
    for _ in 0..flags.rounds.max(1) {
        let began = Instant::now();
        let found = translator.translate(&lines, &options, flags.batch, false)?;
        times.push(began.elapsed().as_secs_f64());
        tokens = found.iter().map(|all| all[0].target_tokens.len() + 1).sum();
    }
    let Sample { median: seconds, least: fastest_seconds, .. } = Sample::of(&times);
    let findings = Findings {
        sentences: lines.len(),
        tokens,
        batch: flags.batch,
        num_beams: flags.num_beams,
        seconds,
        fastest_seconds,
        sentences_per_second: lines.len() as f64 / seconds,
        load_ms,
        parameters: translator.parameters(),
        peak_memory_bytes: machine::peak_memory(),
        threads: pool::threads(),
    };
    if global.json {
        write_json(out, &findings)?;
        return Ok(Outcome::Positive);
    }
    let Findings { sentences, sentences_per_second, fastest_seconds, .. } = findings;
    writeln!(
        out,
        "{sentences} sentences, {tokens} tokens, batch {}, {} beams, {} threads\n\
         {sentences_per_second:.1} sentences/s ({:.1} in the fastest round), model read in \
         {load_ms:.0} ms",
        flags.batch,
        flags.num_beams,
        findings.threads,
        sentences as f64 / fastest_seconds,
    )?;
    Ok(Outcome::Positive)
}
