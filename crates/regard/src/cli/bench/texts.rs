//! `regard bench texts`: encoding, generation and training speed of text models.

use super::super::{Global, Outcome, write_json};
use super::split::StepSplit;
use crate::hub::Hub;
use crate::machine;
use crate::models;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use regard_kernels::gemm::read_seconds;
use regard_kernels::pool;
use regard_models::text::Head;
use regard_tasks::metrics::Sample;
use regard_tasks::speed::{PartTimes, TextBenchmark, measure};
use serde::Serialize;
use std::io::Write;
use std::time::Duration;

/// Measure encoding, generation or training speed of a text model
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard bench texts --model shakespeare --mode generate --tokens 64 --new-tokens 32  # built in
  regard bench texts --model sentence-transformers/all-MiniLM-L6-v2 --batch 32  # downloads
  regard bench texts --model FOLDER --batch 32 --tokens 128 --ragged
  regard bench texts --model FOLDER --tokens 16 --pause 20  # a short text after a pause
  regard bench texts --model FOLDER --mode train --batch 32 --tokens 64

A folder needs only a config.json; without weights, random ones are used. Tokens are random.
Generation is limited by memory bandwidth: the time to read all weights once is measured in the same
run.")]
pub struct Flags {
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// Operation to measure
    #[arg(long, alias = "do", value_enum, default_value_t = Mode::Encode)]
    mode: Mode,
    /// Batch size in texts
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Number of tokens per text, or per prompt
    #[arg(long, value_name = "N", default_value_t = 128)]
    tokens: usize,
    /// Texts of different lengths, evenly spread up to --tokens
    #[arg(long)]
    ragged: bool,
    /// With --mode generate: number of tokens to generate
    #[arg(long, alias = "words", value_name = "N", default_value_t = 32)]
    new_tokens: usize,
    /// Number of rounds; the median and the fastest are printed
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Milliseconds to wait before each round, as a service waits for its next request: threads
    /// sleep meanwhile
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pause: u64,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Forward pass to hidden states, without a head
    #[value(alias = "read")]
    Encode,
    /// Encode a prompt, then generate token by token
    #[value(alias = "write")]
    Generate,
    /// Fine-tuning steps of a classifier with two labels
    #[value(alias = "learn")]
    Train,
}

#[derive(Serialize)]
struct Findings {
    batch: usize,
    /// Number of tokens of all texts.
    tokens: usize,
    parameters: usize,
    threads: usize,
    /// Median milliseconds of a round: encoding, encoding of prompts, or a training step.
    ms: f64,
    fastest_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    writing: Option<WritingFindings>,
    peak_memory_bytes: Option<u64>,
}

#[derive(Serialize)]
struct WritingFindings {
    /// Median milliseconds per generated token, for all rows together.
    ms: f64,
    fastest_ms: f64,
    /// Bytes of the weights in the types in which they are kept; all are read for every token.
    bytes: usize,
    /// Median milliseconds to read that many bytes from memory.
    read_ms: f64,
    fastest_read_ms: f64,
    /// Time to read the weights as a fraction of the time per token.
    share_of_bandwidth: f64,
    /// Parts of a decoding step, measured in one more round.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<StepSplit>,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.batch == 0 || flags.tokens == 0 {
        bail!("--batch, --tokens: need at least one text of one token");
    }
    let head = match flags.mode {
        Mode::Encode => Head::Bare,
        Mode::Generate => Head::Words,
        Mode::Train => Head::Sequence,
    };
    let mut speed = TextBenchmark::open(
        models::stored(&models::resolve(&flags.model, &flags.hub)?, &flags.hub)?,
        head,
        flags.mode == Mode::Train,
    )?;
    let length = |row: usize| match flags.ragged {
        true => (flags.tokens * (row + 1)).div_ceil(flags.batch),
        false => flags.tokens,
    };
    let lengths: Vec<usize> = (0..flags.batch).map(length).collect();
    if flags.ragged && flags.mode == Mode::Generate {
        bail!("--ragged: --mode generate needs prompts of one length");
    }
    let texts = speed.texts(&lengths)?;
    let (mut times, mut steps, mut reads) = (vec![], vec![], vec![]);
    let bytes = speed.bytes();
    let memory = vec![1f32; if flags.mode == Mode::Generate { bytes / 4 } else { 0 }];
    // The first round warms up.
    for round in 0..=flags.rounds.max(1) {
        std::thread::sleep(Duration::from_millis(flags.pause));
        let time = match flags.mode {
            Mode::Encode => speed.read(&texts),
            Mode::Train => speed.learn(&texts),
            Mode::Generate => {
                let found = speed.write(&texts, flags.new_tokens)?;
                // As many runs as tokens, so that both medians are comparable.
                let read = (0..flags.new_tokens).map(|_| read_seconds(&memory));
                if round > 0 {
                    steps.extend(found.steps);
                    reads.extend(read);
                }
                found.first
            }
        };
        if round > 0 {
            times.push(1e3 * time);
        }
    }
    let Sample { median: ms, least: fastest_ms, .. } = Sample::of(&times);
    let parts = match flags.mode {
        Mode::Generate => {
            let (last, parts) = measure(|| speed.write(&texts, flags.new_tokens));
            last?;
            parts
        }
        _ => PartTimes::default(),
    };
    let writing = (!steps.is_empty()).then(|| {
        let (step, read) = (Sample::of(&steps), Sample::of(&reads));
        WritingFindings {
            ms: 1e3 * step.median,
            fastest_ms: 1e3 * step.least,
            bytes,
            read_ms: 1e3 * read.median,
            fastest_read_ms: 1e3 * read.least,
            share_of_bandwidth: read.median / step.median,
            step: StepSplit::of(&parts),
        }
    });
    let findings = Findings {
        batch: flags.batch,
        tokens: texts.tokens(),
        parameters: speed.parameters(),
        threads: pool::threads(),
        ms,
        fastest_ms,
        writing,
        peak_memory_bytes: machine::peak_memory(),
    };
    if global.json {
        write_json(out, &findings)?;
        return Ok(Outcome::Positive);
    }
    writeln!(
        out,
        "{} texts, {} tokens, {:.1} M parameters, {} threads: {ms:.2} ms ({fastest_ms:.2} in the \
         fastest round), {:.0} tokens/s",
        flags.batch,
        findings.tokens,
        findings.parameters as f64 / 1e6,
        findings.threads,
        findings.tokens as f64 / ms * 1e3,
    )?;
    if let Some(writing) = findings.writing {
        writeln!(
            out,
            "a token: {:.2} ms ({:.2}); reading the {:.0} MB of weights: {:.2} ms ({:.2}); {:.0} % \
             of the memory-bandwidth bound",
            writing.ms,
            writing.fastest_ms,
            bytes as f64 / 1e6,
            writing.read_ms,
            writing.fastest_read_ms,
            100.0 * writing.share_of_bandwidth,
        )?;
        if let Some(step) = writing.step {
            step.write(out)?;
        }
    }
    Ok(Outcome::Positive)
}
