//! `regard embed`: a vector for a text.

use super::{Global, Outcome, inputs, write_json};
use crate::models;
use anyhow::Result;
use clap::{Args, ValueEnum};
use regard_models::text::Head;
use regard_tasks::reading::Pooling;
use serde_json::json;
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard embed 'They are watching.' --model all-MiniLM-L6-v2 --normalize
  regard embed --json --model … < sentences.txt > vectors.jsonl

Without TEXT, each line of standard input is one. The numbers of a vector stand on one line,
separated by spaces; with --json: {\"embedding\": […]}. A text that is longer than the model can
read is read in parts, of which the mean is taken.";

/// Make a vector of a text
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The texts; without them, the lines of standard input
    text: Vec<String>,
    /// A model's name (in runs/ or models/) or folder
    #[arg(long, value_name = "NAME or FOLDER")]
    model: String,
    /// How the vectors of a text's tokens become one
    #[arg(long, value_enum, default_value_t = How::Mean)]
    pooling: How,
    /// Vectors of length 1
    #[arg(long)]
    normalize: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum How {
    /// Their mean
    Mean,
    /// That of the first token
    Cls,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let reader = models::reader(&flags.model, Head::Bare)?;
    let pooling = match flags.pooling {
        How::Mean => Pooling::Mean,
        How::Cls => Pooling::Cls,
    };
    inputs::each(&flags.text, |text| {
        let vector = reader.embed(&[text], pooling, flags.normalize)?.remove(0);
        match global.json {
            true => write_json(out, &json!({ "embedding": vector }))?,
            false => {
                let numbers: Vec<String> = vector.iter().map(|x| x.to_string()).collect();
                writeln!(out, "{}", numbers.join(" "))?;
            }
        }
        Ok(())
    })?;
    Ok(Outcome::Positive)
}
