//! `regard compare`: comparison of models on the same data, and of layers on the same tasks.

mod classifiers;
mod columns;
mod compared;
mod layers;
mod mcnemar;
mod recipes;

use super::say::quoted;
use super::{Global, Outcome, write_json};
use anyhow::{Context, Result, bail};
use clap::Args;
use compared::Compared;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const EXAMPLES: &str = "\
Compares models on the same data. Translators: quality by sentence length, speed and memory.
Classifiers of texts, images and words: metrics, speed, how often they agree, whether the difference
may be chance (McNemar's exact test), and examples on which they differ. With --layers, compares an
RNN (tanh), an LSTM, a convolution, self-attention and windowed self-attention of one width on
synthetic tasks, trained while you wait.

Examples:
  regard compare --layers --quick                                  # needs no data or model
  regard compare --layers --only cost,gradient --svg figures
  regard compare --layers --json > findings.json
  regard compare tatoeba-en-fr-bahdanau tatoeba-en-fr-rnn --train  # needs data
  regard compare A.toml B.toml --svg by-length.svg                 # your recipes, trained before
  regard compare first second                                      # your runs in runs/
  regard compare first second --data new.csv                       # your runs in runs/; your file
The fourth needs a data set: regard data tatoeba-fra-eng --fetch

Recipes: each model is evaluated in its own process, in sequence. Its run is expected in runs/ under
the recipe's name; --train trains missing ones. A run is evaluated by the recipe in its folder. For
other tasks use regard eval.

Layers: the last table compares RNN and self-attention as textbooks do, with measured values. The
comparisons:
  cost       time and memory by length, with the fitted exponent
  path       layers or time steps from the first to the last position (maximum path length),
             speed-up with threads, effect of reversing the input
  gradient   gradient norm by distance
  distance   recall of the first symbol at the end
  positions  sinusoidal, learned, rotary and ALiBi positions beyond the trained length
  tagging    a linear layer over a window of neighbours, or self-attention
  graph      attention to all nodes, or along edges
  noise      accuracy of global, local and mixed attention on noisy input, signal near or far
  seq2seq    an encoder-decoder with and without attention: time, memory, parameters";

/// Compare models on the same data, or layers on the same tasks
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Two or more recipes of a task with the same data, by name or file, or runs, by name or folder
    #[arg(num_args = 2.., conflicts_with = "layers")]
    recipes: Vec<String>,
    /// Compare recurrent, convolutional and self-attention layers
    #[arg(long)]
    layers: bool,
    /// With --layers: only these comparisons, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "layers")]
    only: Vec<String>,
    /// With --layers: fewer lengths and steps, about a minute in total
    #[arg(long, requires = "layers")]
    quick: bool,
    /// File of yours to evaluate on, as of regard eval [default: the test part of the models' data]
    #[arg(long, value_name = "FILE", conflicts_with = "layers")]
    data: Option<String>,
    /// Folder of the runs
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// Train the runs that are missing
    #[arg(long)]
    train: bool,
    /// Write a plot of quality by length to this file; with --layers, all plots to this folder
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,
    /// Set a key of every recipe; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Run one step of a layer and print the peak memory of the process; used by --layers
    #[arg(long, hide = true, value_name = "LAYER:LENGTH", conflicts_with_all = ["layers", "recipes"])]
    probe: Option<String>,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(asked) = &flags.probe {
        return layers::probe(asked, out);
    }
    let of_recipes = flags.train || !flags.overrides.is_empty();
    match (flags.layers, flags.recipes.len()) {
        (true, _) if of_recipes => {
            bail!("compare: --train and --set are for recipes, not --layers")
        }
        (true, _) => layers::run(&flags, global, out),
        (false, 0) => bail!("compare: need two or more recipes, or --layers"),
        (false, _) => models(&flags, global, out),
    }
}

/// Compares recipes or runs of one task.
fn models(flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let all: Vec<Compared> =
        flags.recipes.iter().map(|name| Compared::find(name, flags)).collect::<Result<_>>()?;
    let task = all[0].task();
    if let Some(other) = all.iter().find(|each| each.task() != task) {
        bail!(
            "{} is for the task {task}, and {} for {}: need the same task",
            all[0].name,
            other.name,
            other.task()
        );
    }
    match task {
        "translate" => recipes::run(&all, flags, global, out),
        task if classifiers::TASKS.contains(&task) => classifiers::run(&all, flags, global, out),
        _ => {
            let each = all.iter().map(|each| format!("regard eval {}", quoted(each.name)));
            bail!(
                "compare: models for the task {task} are not compared here; evaluate them one after \
                 the other: {}",
                each.collect::<Vec<_>>().join("; ")
            )
        }
    }
}

/// Runs this program in a child process, so that time and memory are those of one model.
fn myself(global: &Global, words: &[&str]) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).arg("--json");
    if let Some(threads) = global.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    if let Some(seed) = global.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    let done = command.stderr(Stdio::inherit()).output();
    let done = done.context("cannot start a second process of regard")?;
    if !done.status.success() {
        bail!("`regard {}` failed; its messages are above", words[..2].join(" "));
    }
    Ok(String::from_utf8(done.stdout)?)
}
