//! `regard compare`: models side by side on the same data, and layers on the same tasks.

mod layers;
mod recipes;

use super::{Global, Outcome, write_json};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const EXAMPLES: &str = "\
Examples:
  regard compare tatoeba-en-fr-bahdanau tatoeba-en-fr-rnn
  regard compare A.toml B.toml --train --svg by-length.svg
  regard compare --layers --quick
  regard compare --layers --only cost,gradient --svg figures
  regard compare --layers --json > findings.json

Recipes, of translations (regard eval measures one of any other task): each model is measured in a process of its own, one after the other: how good it is, for
short and for long sentences, how fast, and how much memory that took. A run is looked for in runs/
and the recipe's name; --train makes those that are not there.

Layers: a tanh RNN, an LSTM, a convolution, self-attention of all with all and self-attention in a
window, of one width, on tasks that are drawn and learned while you wait. The table at the end is the
one that textbooks print of RNN against self-attention, with what was measured here. The comparisons:
  cost       time and memory against the length, with the fitted exponent
  path       steps between the ends, what threads gain, and whether order is seen
  gradient   what is left of the gradient at a distance
  distance   recalling the first symbol at the end
  positions  sine, learned, rotary and ALiBi beyond the trained length
  tagging    a window of neighbours through a layer, or self-attention
  graph      attention to all nodes, or along edges
  noise      global, local and mixed attention, near and far
  without    one encoder-decoder with and without attention";

/// Compare models on the same data, or layers on the same tasks
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Two or more recipes of translations with the same data, by name or file
    #[arg(num_args = 2.., conflicts_with = "layers")]
    recipes: Vec<String>,
    /// Compare recurrent layers, convolution and self-attention
    #[arg(long)]
    layers: bool,
    /// With --layers: only these comparisons, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "layers")]
    only: Vec<String>,
    /// With --layers: fewer lengths and steps, all of it within a minute
    #[arg(long, requires = "layers")]
    quick: bool,
    /// The folder of the runs
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// Train what is not there yet
    #[arg(long)]
    train: bool,
    /// Draw quality against length into this file; with --layers, every curve into this folder
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,
    /// Another value for a key of every recipe; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// One step of a layer, and the memory that this process took: how --layers measures memory
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
        (false, _) => recipes::run(&flags, global, out),
    }
}

/// Runs this program again, in a process of its own, so that times and memory are one model's.
fn myself(global: &Global, words: &[&str]) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).arg("--json");
    if let Some(threads) = global.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    if let Some(seed) = global.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    let done = command.stderr(Stdio::inherit()).output().context("running this program again")?;
    if !done.status.success() {
        bail!("{} failed", words[..2].join(" "));
    }
    Ok(String::from_utf8(done.stdout)?)
}
