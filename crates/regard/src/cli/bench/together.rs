//! `regard bench together`: generation of many sequences at once.

use super::super::sequences::CacheFlags;
use super::super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::{machine, models};
use anyhow::Result;
use clap::Args;
use regard_kernels::pool;
use regard_tasks::batching::BatchLimits;
use regard_tasks::metrics::Sample;
use regard_tasks::speed;
use serde::Serialize;
use std::io::Write;

/// Measure generation of many sequences at once
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard bench together --model shakespeare --sequences 4 --new-tokens 8  # built in
  regard bench together --model FOLDER --storage int8 --sequences 16 --json
  regard bench together --model FOLDER --prompt 4000   # a long prompt is read beside 8 that write

A folder needs only a config.json; without weights, random ones are used. Tokens are random.

Measures the tokens per second of one sequence and of many, in turn; then the time per token of some
sequences by themselves, and while a long prompt is read beside them.")]
pub struct Flags {
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// Number of sequences
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    sequences: u16,
    /// Number of tokens that each of them writes
    #[arg(long, value_name = "N", default_value_t = 48,
          value_parser = clap::value_parser!(u32).range(1..))]
    new_tokens: u32,
    /// Length of the prompt that is read beside others; 0 for none
    #[arg(long, value_name = "N", default_value_t = 0)]
    prompt: usize,
    /// Number of sequences that write beside it
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    writers: u16,
    /// Tokens of the prompt in each step
    #[arg(long, value_name = "N", default_value_t = BatchLimits::default().prompt_tokens_beside)]
    chunk: usize,
    /// Number of rounds; medians are printed
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    caches: CacheFlags,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Serialize)]
struct Findings {
    sequences: usize,
    new_tokens: usize,
    threads: usize,
    kv_cache: &'static str,
    /// Tokens per second of one sequence, and of all together.
    one: f64,
    together: f64,
    /// The second divided by the first, in the same round.
    ratio: f64,
    kv_cache_bytes: usize,
    peak_memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Beside>,
}

#[derive(Serialize)]
struct Beside {
    prompt: usize,
    writers: usize,
    /// Seconds until the prompt was read.
    seconds: f64,
    /// Milliseconds per token of the slowest, by themselves and while the prompt is read.
    alone_ms: f64,
    beside_ms: f64,
    /// Largest ratio of the two for one of them.
    slowdown: f64,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let files = models::stored(&models::resolve(&flags.model, &flags.hub)?, &flags.hub)?;
    let mut limits = BatchLimits { prompt_tokens_beside: flags.chunk, ..BatchLimits::default() };
    flags.caches.set(&mut limits);
    let engine = speed::batching(files, limits)?;
    let (sequences, new) = (usize::from(flags.sequences), flags.new_tokens as usize);
    let (mut one, mut together) = (vec![], vec![]);
    // The first round warms up.
    for round in 0..=flags.rounds.max(1) {
        let found = [1, sequences].map(|count| engine.tokens_per_second(count, new));
        let [alone, all] = found;
        if round > 0 {
            one.push(alone?);
            together.push(all?);
        }
    }
    let ratios: Vec<f64> = together.iter().zip(&one).map(|(all, one)| all / one).collect();
    let beside = match flags.prompt {
        0 => None,
        prompt => {
            let writers = usize::from(flags.writers);
            let pace = engine.pace_beside(writers, new, prompt)?;
            let slowest = |times: &[f64]| 1e3 * times.iter().copied().fold(0.0, f64::max);
            let ratios = pace.beside.iter().zip(&pace.alone).map(|(beside, alone)| beside / alone);
            Some(Beside {
                prompt,
                writers,
                seconds: pace.seconds,
                alone_ms: slowest(&pace.alone),
                beside_ms: slowest(&pace.beside),
                slowdown: ratios.fold(0.0, f64::max),
            })
        }
    };
    let median = |values: &[f64]| Sample::of(values).median;
    let findings = Findings {
        sequences,
        new_tokens: new,
        threads: pool::threads(),
        kv_cache: limits.cache.name(),
        one: median(&one),
        together: median(&together),
        ratio: median(&ratios),
        kv_cache_bytes: engine.usage().most_cache_bytes,
        peak_memory_bytes: machine::peak_memory(),
        beside,
    };
    if global.json {
        write_json(out, &findings)?;
        return Ok(Outcome::Positive);
    }
    writeln!(
        out,
        "one sequence: {:.1} tokens/s; {sequences} together: {:.1} tokens/s, {:.2} times as many; {} \
         threads; KV caches in {} took up to {:.1} MB",
        findings.one,
        findings.together,
        findings.ratio,
        findings.threads,
        findings.kv_cache,
        findings.kv_cache_bytes as f64 / 1e6
    )?;
    if let Some(beside) = findings.beside {
        writeln!(
            out,
            "a prompt of {} tokens beside {} sequences that write: {:.1} s; the slowest takes {:.1} \
             ms for a token, {:.1} without the prompt; at most {:.2} times its own time",
            beside.prompt,
            beside.writers,
            beside.seconds,
            beside.beside_ms,
            beside.alone_ms,
            beside.slowdown
        )?;
    }
    Ok(Outcome::Positive)
}
