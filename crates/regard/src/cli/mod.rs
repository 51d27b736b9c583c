//! The verbs: one file each, and one row each in [`Verb`].

mod answer;
mod attend;
mod bench;
mod classify;
mod compare;
mod data;
mod doctor;
mod embed;
mod eval;
mod fill;
mod generate;
mod inputs;
mod inspect;
mod models;
mod point;
mod recipes;
mod recognize;
mod say;
mod score;
mod search;
mod summarize;
mod tag;
mod tokenizer;
mod train;
mod translate;
mod variants;
mod verify;

use anyhow::{Result, anyhow, bail};
use clap::{Args, Parser, Subcommand};
use regard_kernels::pool;
use regard_kernels::simd::Isa;
use serde::Serialize;
use std::io::{self, BufWriter, Write};

/// The exit code of what a signal stopped.
pub const INTERRUPTED: u8 = 130;

/// How a verb ended, if not in an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Positive,
    /// Exit code 1: it ran, and the answer is no.
    Negative,
    /// Exit code 130: a signal stopped it.
    Interrupted,
}

/// Attention models on CPUs: one formula, every variant, exact weights.
#[derive(Parser)]
#[command(name = "regard", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  regard attend --demo                        draw who looks at whom in a sentence
  regard translate 'They are watching.' --model runs/tatoeba-en-fr-transformer
  regard generate 'ROMEO:' --model runs/shakespeare-gpt
  regard fill 'Paris is the [MASK] of France.' --model google-bert/bert-base-uncased
  regard classify --image shoe.png --model runs/fashion-mnist-vit
  regard recognize seven.wav --model runs/fsdd-truncated
  regard recipes                              what can be trained, and what came of it
  regard train multi30k-transformer           train by a recipe
  regard data multi30k                        where its data are, and on which terms
  regard attend qkv.npz --mask 'causal'       draw the map of your own q, k and v
  regard variants mask                        what --mask can say
  regard bench attention --shape 1,8,1024,1024,64 --backward
  regard doctor                               what this machine can run, and whether it is right

Exit codes: 0 ok, 1 a negative result, 2 an error, 130 interrupted.
Environment: REGARD_NUM_THREADS, REGARD_ISA (portable, neon, avx2, avx512), REGARD_DATA,
REGARD_DATA_SOURCE, NO_COLOR; for models of the Hugging Face Hub HF_HOME, HF_HUB_CACHE, HF_TOKEN,
HF_ENDPOINT, HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT.";

/// Where help lists them.
const EVERY: &str = "Options of every verb";

/// Flags that every verb takes.
#[derive(Args)]
pub struct Global {
    /// Write JSON instead of text
    #[arg(long, help_heading = EVERY, global = true)]
    json: bool,
    /// Threads to use; the result does not depend on it [default: REGARD_NUM_THREADS, or all cores]
    #[arg(long, help_heading = EVERY, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Where all randomness comes from [default: 0, or what a recipe says]
    #[arg(long, help_heading = EVERY, global = true, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Subcommand)]
enum Verb {
    Translate(translate::Flags),
    Generate(generate::Flags),
    Score(score::Flags),
    Classify(classify::Flags),
    Tag(tag::Flags),
    Answer(answer::Flags),
    Fill(fill::Flags),
    Embed(embed::Flags),
    Summarize(summarize::Flags),
    Point(point::Flags),
    Recognize(recognize::Flags),
    Train(train::Flags),
    Eval(eval::Flags),
    Compare(compare::Flags),
    Attend(attend::Flags),
    Tokenizer(tokenizer::Flags),
    Models(models::Flags),
    Inspect(inspect::Flags),
    Verify(verify::Flags),
    Recipes(recipes::Flags),
    Data(data::Flags),
    Variants(variants::Flags),
    Bench(bench::Flags),
    Doctor(doctor::Flags),
}

impl Verb {
    fn run(self, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
        match self {
            Verb::Translate(flags) => translate::run(flags, global, out),
            Verb::Generate(flags) => generate::run(flags, global, out),
            Verb::Score(flags) => score::run(flags, global, out),
            Verb::Classify(flags) => classify::run(flags, global, out),
            Verb::Tag(flags) => tag::run(flags, global, out),
            Verb::Answer(flags) => answer::run(flags, global, out),
            Verb::Fill(flags) => fill::run(flags, global, out),
            Verb::Embed(flags) => embed::run(flags, global, out),
            Verb::Summarize(flags) => summarize::run(flags, global, out),
            Verb::Point(flags) => point::run(flags, global, out),
            Verb::Recognize(flags) => recognize::run(flags, global, out),
            Verb::Train(flags) => train::run(flags, global, out),
            Verb::Eval(flags) => eval::run(flags, global, out),
            Verb::Compare(flags) => compare::run(flags, global, out),
            Verb::Attend(flags) => attend::run(flags, global, out),
            Verb::Tokenizer(flags) => tokenizer::run(flags, global, out),
            Verb::Models(flags) => models::run(flags, global, out),
            Verb::Inspect(flags) => inspect::run(flags, global, out),
            Verb::Verify(flags) => verify::run(flags, global, out),
            Verb::Recipes(flags) => recipes::run(flags, global, out),
            Verb::Data(flags) => data::run(flags, global, out),
            Verb::Variants(flags) => variants::run(flags, global, out),
            Verb::Bench(flags) => bench::run(flags, global, out),
            Verb::Doctor(flags) => doctor::run(flags, global, out),
        }
    }
}

/// Reads the command line and does what it says.
pub fn run() -> Result<Outcome> {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
            return Err(anyhow!("{text}"));
        }
        // Help and version are answers, not errors.
        Err(answer) => {
            write!(io::stdout(), "{}", answer.render())?;
            return Ok(Outcome::Positive);
        }
    };
    check_environment()?;
    if let Some(threads) = cli.global.threads {
        pool::set_threads(usize::from(threads));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = cli.verb.run(&cli.global, &mut out)?;
    match out.flush() {
        // Whoever read the output has seen enough; what happened stays what happened.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(outcome),
        flushed => Ok(flushed.map(|()| outcome)?),
    }
}

/// The kernels panic over an instruction set that is not there, and read a number of threads that
/// is none as unset. Whoever typed it should get a sentence instead.
fn check_environment() -> Result<()> {
    if let Some(asked) = std::env::var_os("REGARD_ISA").filter(|asked| !asked.is_empty()) {
        let here: Vec<_> = Isa::ALL.iter().filter(|isa| isa.available()).collect();
        if !here.iter().any(|isa| asked == isa.name()) {
            let names: Vec<_> = here.iter().map(|isa| isa.name()).collect();
            bail!("REGARD_ISA: got {asked:?}, need one that this CPU has: {}", names.join(", "));
        }
    }
    if let Some(asked) = std::env::var_os("REGARD_NUM_THREADS").filter(|asked| !asked.is_empty()) {
        let number = asked.to_str().and_then(|text| text.parse::<u16>().ok());
        if !number.is_some_and(|n| (1..=1024).contains(&n)) {
            bail!("REGARD_NUM_THREADS: got {asked:?}, need a number from 1 to 1024");
        }
    }
    Ok(())
}

/// Writes a value as one JSON document, with all digits that a number of single precision has as
/// one of double precision: readers of JSON know no other.
fn write_numbers(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    write_json(out, &serde_json::to_value(value)?)
}

/// Writes a value as one JSON document.
fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}
