//! `regard verify`: a checkpoint beside what another library said with it.

use super::{Global, Outcome, write_json};
use crate::show::table::Table;
use anyhow::Result;
use clap::Args;
use regard_models::text::recorded::Recorded;
use regard_tasks::inspect::verify;
use regard_tasks::train;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Run a checkpoint beside what transformers said with it, layer by layer
#[derive(Args)]
#[command(after_help = "\
Examples:
  python fixtures/make/record.py FOLDER        records what transformers says
  regard verify FOLDER                         compares
  regard verify FOLDER --said elsewhere.safetensors --tolerance 1e-5 --json

Differences are shares of the largest number of each tensor. Exit code 1 if one is above the
tolerance.")]
pub struct Flags {
    /// A model's folder: BERT, RoBERTa, DistilBERT, GPT-2 or XLNet
    folder: PathBuf,
    /// What was said [default: said.safetensors in the folder]
    #[arg(long, value_name = "FILE")]
    said: Option<PathBuf>,
    /// The largest difference that is right
    #[arg(long, value_name = "X", default_value_t = 1e-4)]
    tolerance: f32,
}

/// How far a model is from what was recorded, as `--json` prints it.
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

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let folder = train::resolve(&flags.folder)?;
    let said = flags.said.unwrap_or_else(|| folder.join("said.safetensors"));
    let found = verify(&folder, &Recorded::read(&said)?)?;
    let good = found.iter().all(|each| each.relative() <= flags.tolerance);
    if global.json {
        let differences = found.iter().map(|each| Difference {
            what: &each.what,
            largest: each.largest.into(),
            relative: each.relative().into(),
        });
        write_json(out, &Verdict { differences: differences.collect(), good })?;
    } else {
        let mut table = Table::new(["what", "largest difference", "of the largest number", ""]);
        for each in &found {
            let wrong = if each.relative() <= flags.tolerance { "" } else { "too far" };
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
