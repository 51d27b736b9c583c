//! `regard bench translate`: translation speed.

use super::super::{Global, Outcome, write_json};
use super::split::StepSplit;
use crate::hub::Hub;
use crate::{machine, models};
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_kernels::pool;
use regard_tasks::decode::Options;
use regard_tasks::metrics::Sample;
use regard_tasks::speed::measure;
use regard_tasks::translate::{TranslationRequest, Translator};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Measure translation speed on the lines of a file
#[derive(Args)]
#[command(after_help = "\
Examples (english.txt is your file, a sentence per line):
  regard bench translate --lines english.txt                       # built-in model `en-fr`
  regard bench translate --lines english.txt --batch 1 --num-beams 1 --json
  regard bench translate --lines english.txt --model runs/tatoeba-en-fr-transformer  # your run

Lines are batched by length. A first round is warm-up and is not counted; a last one measures the
parts of a decoding step: tokenizer, encoder, products, attention, search, and the rest.")]
pub struct Flags {
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    /// [default: `en-fr`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// File with a sentence per line
    #[arg(long, value_name = "FILE")]
    lines: PathBuf,
    /// Batch size in sentences
    #[arg(long, value_name = "N", default_value_t = 32)]
    batch: usize,
    /// Number of batches that are translated at once, each on one core; results do not depend on it
    /// [default: one for each thread if there are enough sentences, else 1 with all threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Number of beams
    #[arg(long, value_name = "N", default_value_t = 4)]
    num_beams: usize,
    /// Number of rounds; the median and the fastest are printed
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
    /// Workers that were asked for; chosen by the number of sentences if there is none.
    workers: Option<usize>,
    num_beams: usize,
    /// Seconds of the median round.
    seconds: f64,
    fastest_seconds: f64,
    sentences_per_second: f64,
    load_ms: f64,
    parameters: usize,
    peak_memory_bytes: Option<u64>,
    threads: usize,
    /// Parts of a decoding step, measured in one more round.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<StepSplit>,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let began = Instant::now();
    let translator: Translator = models::open(flags.model.as_deref(), &flags.hub)?;
    let load_ms = 1e3 * began.elapsed().as_secs_f64();
    let text =
        std::fs::read_to_string(&flags.lines).with_context(|| flags.lines.display().to_string())?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        bail!("{}: got no sentences", flags.lines.display());
    }
    let options = Options { num_beams: flags.num_beams, ..translator.defaults().clone() };
    let warm = &lines[..lines.len().min(4 * flags.batch)];
    let workers = flags.workers.map(usize::from);
    let request =
        TranslationRequest { batch: flags.batch, workers, ..TranslationRequest::new(&options) };
    translator.run(warm, &request)?;
    let (mut times, mut tokens) = (vec![], 0);
    for _ in 0..flags.rounds.max(1) {
        let began = Instant::now();
        let found = translator.run(&lines, &request)?;
        times.push(began.elapsed().as_secs_f64());
        tokens = found.iter().map(|all| all[0].target_tokens.len() + 1).sum();
    }
    let (last, parts) = measure(|| translator.run(&lines, &request));
    last?;
    let Sample { median: seconds, least: fastest_seconds, .. } = Sample::of(&times);
    let findings = Findings {
        sentences: lines.len(),
        tokens,
        batch: flags.batch,
        workers,
        num_beams: flags.num_beams,
        seconds,
        fastest_seconds,
        sentences_per_second: lines.len() as f64 / seconds,
        load_ms,
        parameters: translator.parameters(),
        peak_memory_bytes: machine::peak_memory(),
        threads: pool::threads(),
        step: StepSplit::of(&parts),
    };
    if global.json {
        write_json(out, &findings)?;
        return Ok(Outcome::Positive);
    }
    let Findings { sentences, sentences_per_second, fastest_seconds, .. } = findings;
    writeln!(
        out,
        "{sentences} sentences, {tokens} tokens, batch {}, {} beams, {} threads\n\
         {sentences_per_second:.1} sentences/s ({:.1} in the fastest round), model loaded in \
         {load_ms:.0} ms",
        flags.batch,
        flags.num_beams,
        findings.threads,
        sentences as f64 / fastest_seconds,
    )?;
    if let Some(step) = findings.step {
        step.write(out)?;
    }
    Ok(Outcome::Positive)
}
