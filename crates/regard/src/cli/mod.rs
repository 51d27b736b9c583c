//! The verbs (subcommands): each is a file, a `mod` line and a row in `verbs!`.

mod answer;
mod attend;
mod bench;
mod binary;
mod chat;
mod classify;
mod columns;
mod compare;
mod completions;
mod data;
mod doctor;
mod embed;
mod eval;
mod file_names;
mod fill;
mod generate;
mod inputs;
mod inspect;
mod man;
mod models;
mod point;
mod quantize;
mod recipes;
mod recognize;
mod rerank;
mod runs;
mod say;
mod score;
mod search;
mod search_file;
mod sequences;
mod summarize;
mod tables;
mod tag;
mod texts;
mod together;
mod tokenizer;
mod train;
mod translate;
mod variants;
mod verify;
mod whole_files;

use anyhow::{Result, anyhow, bail};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
pub use inputs::{command_without, note_once};
use regard_kernels::pool;
use regard_kernels::simd::Isa;
use regard_tasks::import::IMPORTERS;
use regard_tasks::say as words;
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Exit code of a command that a signal interrupted.
pub const INTERRUPTED: u8 = 130;

/// Outcome of a verb that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Positive,
    /// Exit code 1: the command ran, with a negative result.
    Negative,
    /// Exit code 130: interrupted by a signal.
    Interrupted,
}

/// Run, train and inspect attention models on CPUs
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
  regard translate 'They are watching.'       # English to French, with an attention map
  regard generate 'ROMEO:'                    # continue a text, character by character
  regard tag 'They are watching.'             # parts of speech
  regard answer 'Where is John?' --context 'John took the milk. John went to the hallway.'
  regard point '0 0  1 0  1 1  0 1  0.5 0.4'  # convex hull
  regard classify --image shoe.png            # your image of a piece of clothing
  regard recognize number.wav                 # your recording of English digits
  regard attend --demo                        # attention maps of a sentence

Built-in models need no download. Others, and training:
  regard models                               # list built-in and trained models
  regard fill 'Paris is the [MASK] of France.' --model google-bert/bert-base-uncased  # download
  regard recipes                              # list training recipes and their results
  regard train sort-10                        # train; points are generated, no data needed
  regard doctor                               # test the kernels on this machine

Exit codes: 0 success; 1 a check failed, or some inputs failed; 2 error; 130 interrupted.

Environment variables:
  REGARD_NUM_THREADS   number of threads
  REGARD_ISA           instruction set: portable, neon, avx2 or avx512
  REGARD_DATA          folder of the data sets
  REGARD_DATA_SOURCE   mirror to download data sets from
  NO_COLOR             disables colours
  HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT
                       Hugging Face Hub, as in Python's huggingface_hub";

/// Heading of the global flags in `--help`.
const EVERY: &str = "Options of every command";

/// Flags that every verb takes.
#[derive(Args)]
pub struct Global {
    /// Print JSON instead of text
    #[arg(long, help_heading = EVERY, global = true)]
    json: bool,
    /// Number of threads; results do not depend on it [default: REGARD_NUM_THREADS, or all cores]
    #[arg(long, help_heading = EVERY, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Random seed [default: 0, or the recipe's]
    #[arg(long, help_heading = EVERY, global = true, value_name = "N")]
    seed: Option<u64>,
}

/// Declares the subcommands and their dispatch: a row is the name of a verb and its module.
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
    Chat chat
    Score score
    Classify classify
    Tag tag
    Answer answer
    Fill fill
    Embed embed
    Rerank rerank
    Search search_file
    Summarize summarize
    Point point
    Recognize recognize
    Train train
    Eval eval
    Runs runs
    Compare compare
    Attend attend
    Tokenizer tokenizer
    Models models
    Quantize quantize
    Inspect inspect
    Verify verify
    Recipes recipes
    Data data
    Variants variants
    Bench bench
    Doctor doctor
    Completions completions
    Man man
}

/// The definition of the command line.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Parses the command line and runs the verb.
pub fn run() -> Result<Outcome> {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
            return Err(anyhow!("{text}{}", hint(&error)));
        }
        // `--help` and `--version` go to standard output.
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
        // The reader closed the pipe; the outcome stays.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(outcome),
        flushed => Ok(flushed.map(|()| outcome)?),
    }
}

/// Command that was probably meant, for errors of `train` and `eval`; empty if there is none.
fn hint(error: &clap::Error) -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let verb = arguments.first().map_or("", String::as_str);
    let name = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(name)) => name.as_str(),
        _ => "",
    };
    match (verb, error.kind()) {
        ("train" | "eval", ErrorKind::UnknownArgument) if Path::new(name).exists() => {
            let what = if verb == "train" { "TASK" } else { "RUN" };
            format!(
                "\n\nFiles come after --data: regard {verb} {what} --data {}",
                words::quoted(name)
            )
        }
        ("train", ErrorKind::MissingRequiredArgument) => {
            let tasks: Vec<&str> = IMPORTERS.iter().map(|importer| importer.task).collect();
            format!("\n\nName the task: regard train TASK --data FILE. Tasks: {}", tasks.join(", "))
        }
        _ => String::new(),
    }
}

/// Checks `REGARD_ISA` and `REGARD_NUM_THREADS`. The kernels panic if the CPU lacks the instruction
/// set, and ignore an invalid number of threads.
fn check_environment() -> Result<()> {
    if let Some(asked) = std::env::var_os("REGARD_ISA").filter(|asked| !asked.is_empty()) {
        let here: Vec<_> = Isa::ALL.iter().filter(|isa| isa.available()).collect();
        if !here.iter().any(|isa| asked == isa.name()) {
            let names: Vec<_> = here.iter().map(|isa| isa.name()).collect();
            bail!(
                "REGARD_ISA: got {asked:?}, need an instruction set of this CPU: {}",
                names.join(", ")
            );
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

/// Writes a value as one line of JSON. `f32` values are written with the digits of their exact
/// `f64` value, because JSON readers parse numbers as `f64`.
fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, &serde_json::to_value(value)?)?;
    writeln!(out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    /// Longer lines would be broken by clap, in the middle of a paragraph or a table.
    #[test]
    fn lines_of_help_texts_fit() {
        fn check(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&super::command());
    }
}
