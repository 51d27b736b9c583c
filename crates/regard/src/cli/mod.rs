//! The verbs: one file each, its `mod` line, and one row each in `verbs!`.

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
mod rerank;
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

/// Makes the subcommands of the verbs and calls them: a row is the name of a verb and its module.
macro_rules! verbs {
    ($($verb:ident $module:ident)*) => {
        #[derive(Subcommand)]
        enum Verb {
            $($verb($module::Flags)),*
        }

        impl Verb {
            fn run(self, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
                match self {
                    $(Verb::$verb(flags) => $module::run(flags, global, out)),*
                }
            }
        }
    };
}

// In the order of `regard --help`.
verbs! {
    Translate translate
    Generate generate
    Score score
    Classify classify
    Tag tag
    Answer answer
    Fill fill
    Embed embed
    Rerank rerank
    Summarize summarize
    Point point
    Recognize recognize
    Train train
    Eval eval
    Compare compare
    Attend attend
    Tokenizer tokenizer
    Models models
    Inspect inspect
    Verify verify
    Recipes recipes
    Data data
    Variants variants
    Bench bench
    Doctor doctor
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
fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, &serde_json::to_value(value)?)?;
    writeln!(out)?;
    Ok(())
}
