//! `regard verify`: comparison of a checkpoint with recorded outputs of transformers.

use super::{Global, Outcome, write_json};
use crate::models::{self, ModelRef};
use crate::show::table::Table;
use anyhow::{Result, bail};
use clap::Args;
use regard_models::text::recorded::Recorded;
use regard_tasks::inspect::verify;
use regard_tasks::train;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Compare a checkpoint with recorded outputs of transformers, layer by layer
#[derive(Args)]
#[command(after_help = "\
Runs a checkpoint and compares hidden states and logits with those that Hugging Face transformers
computed. Differences are relative to the largest absolute value of each tensor. The exit code is 1
if one is above the tolerance.

Examples (FOLDER is your copy of a checkpoint):
  python fixtures/make/record.py FOLDER          # record the outputs of transformers
  regard verify FOLDER
  regard verify FOLDER --expected elsewhere.safetensors --tolerance 1e-5 --json")]
pub struct Flags {
    /// Folder of a BERT, RoBERTa, DistilBERT, GPT-2 or XLNet checkpoint, or a run in runs/ by name
    folder: PathBuf,
    /// Outputs of transformers to compare with [default: expected.safetensors in the folder]
    #[arg(long, alias = "said", value_name = "FILE")]
    expected: Option<PathBuf>,
    /// Largest relative difference that passes
    #[arg(long, value_name = "X", default_value_t = 1e-4)]
    tolerance: f32,
}

/// Differences from the recorded outputs, as `--json` prints them.
#[derive(Serialize)]
struct Verdict<'a> {
    differences: Vec<Difference<'a>>,
    good: bool,
}

#[derive(Serialize)]
struct Difference<'a> {
    what: &'a str,
    largest: f64,
    relative: f64,
}

/// Recorded outputs in a model's folder; `said.safetensors` is their former name.
fn in_folder(folder: &Path) -> PathBuf {
    let [new, former] = ["expected.safetensors", "said.safetensors"].map(|name| folder.join(name));
    if former.exists() && !new.exists() { former } else { new }
}

/// Folder of a checkpoint, or of a run by its name.
fn folder(asked: &Path) -> Result<PathBuf> {
    // A path may be no text, and what is no model is told by the error of reading it.
    match asked.to_str().map(models::called).transpose()? {
        Some(ModelRef::Folder(folder)) => Ok(folder),
        Some(ModelRef::Shipped(model)) => bail!(
            "{0} is a built-in model, which has no recorded outputs; to write its folder: regard \
             models export {0} --out FOLDER",
            model.name
        ),
        _ => Ok(asked.to_path_buf()),
    }
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let folder = train::resolve(&folder(&flags.folder)?)?;
    let expected = flags.expected.unwrap_or_else(|| in_folder(&folder));
    let found = verify(&folder, &Recorded::read(&expected)?)?;
    let good = found.iter().all(|each| each.relative() <= flags.tolerance);
    if global.json {
        let differences = found.iter().map(|each| Difference {
            what: &each.what,
            largest: each.largest.into(),
            relative: each.relative().into(),
        });
        write_json(out, &Verdict { differences: differences.collect(), good })?;
    } else {
        let mut table = Table::new(["tensor", "largest difference", "relative", ""]);
        for each in &found {
            let wrong = if each.relative() <= flags.tolerance { "" } else { "above tolerance" };
            table.row([
                each.what.clone(),
                format!("{:.1e}", each.largest),
                format!("{:.1e}", each.relative()),
                wrong.into(),
            ]);
        }
        write!(out, "{}", table.render("", None))?;
        let verdict = if good { "all within" } else { "not all within" };
        writeln!(out, "{verdict} {:e}", flags.tolerance)?;
    }
    Ok(if good { Outcome::Positive } else { Outcome::Negative })
}
