//! `regard bench texts`: how fast a model reads, writes and learns.

use super::super::{Global, Outcome, write_json};
use crate::hub::Hub;
use crate::machine;
use crate::models;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use regard_kernels::gemm::read_seconds;
use regard_kernels::pool;
use regard_models::text::Head;
use regard_tasks::metrics::Sample;
use regard_tasks::speed::Speed;
use serde::Serialize;
use std::io::Write;

/// Measure how fast a model reads texts, goes on with them, or learns from them
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard bench texts --model all-MiniLM-L6-v2 --batch 32 --tokens 128
  regard bench texts --model all-MiniLM-L6-v2 --batch 32 --tokens 128 --ragged
  regard bench texts --model gpt2 --do write --tokens 512 --words 32
  regard bench texts --model all-MiniLM-L6-v2 --do learn --batch 32 --tokens 64

A folder needs a config.json; without weights, random ones are measured. Tokens are drawn at
random. Writing is limited by the memory that holds the weights: the rate at which as many bytes
can be read is measured in the same run.")]
pub struct Flags {
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// What it does
    #[arg(long = "do", value_enum, default_value_t = Doing::Read)]
    doing: Doing,
    /// Texts at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Tokens of a text
    #[arg(long, value_name = "N", default_value_t = 128)]
    tokens: usize,
    /// Texts of different lengths, evenly from one token to all
    #[arg(long)]
    ragged: bool,
    /// Words to write
    #[arg(long, value_name = "N", default_value_t = 32)]
    words: usize,
    /// Rounds; the median and the fastest are told
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Doing {
    /// To vectors; a model of words to the word after each text
    Read,
    /// Reads, and then a word after another
    Write,
    /// Steps of learning two labels
    Learn,
}

#[derive(Serialize)]
struct Findings {
    batch: usize,
    /// Of all texts.
    tokens: usize,
    parameters: usize,
    threads: usize,
    /// Of a round: to read, to read beginnings, or to learn.
    ms: f64,
    fastest_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    writing: Option<WritingFindings>,
    peak_memory_bytes: Option<u64>,
}

#[derive(Serialize)]
struct WritingFindings {
    /// A word of every row.
    ms: f64,
    fastest_ms: f64,
    /// Of weights, all of which are read for every word.
    bytes: usize,
    /// In which as many bytes are read and nothing else is done.
    read_ms: f64,
    fastest_read_ms: f64,
    /// The time to read the weights, of the time for a word.
    share_of_bandwidth: f64,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.batch == 0 || flags.tokens == 0 {
        bail!("--batch, --tokens: need at least one text of one token");
    }
    let head = match flags.doing {
        Doing::Read => Head::Bare,
        Doing::Write => Head::Words,
        Doing::Learn => Head::Sequence,
    };
    let mut speed = Speed::open(
        models::resolve(&flags.model, &flags.hub)?.files(),
        head,
        flags.doing == Doing::Learn,
    )?;
    let length = |row: usize| match flags.ragged {
        true => (flags.tokens * (row + 1)).div_ceil(flags.batch),
        false => flags.tokens,
    };
    let lengths: Vec<usize> = (0..flags.batch).map(length).collect();
    if flags.ragged && flags.doing == Doing::Write {
        bail!("--ragged: writing needs beginnings of one length");
    }
    let texts = speed.texts(&lengths)?;
    let (mut times, mut steps, mut reads) = (vec![], vec![], vec![]);
    let bytes = 4 * speed.parameters();
    let memory = vec![1f32; if flags.doing == Doing::Write { speed.parameters() } else { 0 }];
    // The first round warms up.
    for round in 0..=flags.rounds.max(1) {
        let time = match flags.doing {
            Doing::Read => speed.read(&texts),
            Doing::Learn => speed.learn(&texts),
            Doing::Write => {
                let found = speed.write(&texts, flags.words)?;
                // As often as words, so that the medians of the two are of the same kind.
                let read = (0..flags.words).map(|_| read_seconds(&memory));
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
    let writing = (!steps.is_empty()).then(|| {
        let (step, read) = (Sample::of(&steps), Sample::of(&reads));
        WritingFindings {
            ms: 1e3 * step.median,
            fastest_ms: 1e3 * step.least,
            bytes,
            read_ms: 1e3 * read.median,
            fastest_read_ms: 1e3 * read.least,
            share_of_bandwidth: read.median / step.median,
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
            "a word: {:.2} ms ({:.2}); to read its {:.0} MB of weights takes {:.2} ms ({:.2}): \
             {:.0} % of what memory allows",
            writing.ms,
            writing.fastest_ms,
            bytes as f64 / 1e6,
            writing.read_ms,
            writing.fastest_read_ms,
            100.0 * writing.share_of_bandwidth,
        )?;
    }
    Ok(Outcome::Positive)
}
