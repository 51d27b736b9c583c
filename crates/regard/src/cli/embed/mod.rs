//! `regard embed`: a vector for a text.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::Result;
use clap::{Args, ValueEnum};
use regard_models::text::Head;
use regard_tasks::reading::Pooling;
use serde_json::json;
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard embed 'They are watching.' --normalize --model sentence-transformers/all-MiniLM-L6-v2
  regard embed --json --model … < sentences.txt > vectors.jsonl

Without TEXT, each line of standard input is one. The numbers of a vector stand on one line,
separated by spaces; with --json: {\"embedding\": […]}. A text that is longer than the model can
read is read in parts, of which the mean is taken.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.";

/// Make a vector of a text
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The texts; without them, the lines of standard input
    text: Vec<String>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// How the vectors of a text's tokens become one
    #[arg(long, value_enum, default_value_t = How::Mean)]
    pooling: How,
    /// Vectors of length 1
    #[arg(long)]
    normalize: bool,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Clone, Copy, ValueEnum)]
enum How {
    /// Their mean
    Mean,
    /// That of the first token
    Cls,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let reader = models::reader(Some(&flags.model), &flags.hub, Head::Bare)?;
    let pooling = match flags.pooling {
        How::Mean => Pooling::Mean,
        How::Cls => Pooling::Cls,
    };
    inputs::each(&flags.text, global.json, out, &mut |text, out| {
        let vector = reader.embed(&[text], pooling, flags.normalize)?.remove(0);
        match global.json {
            true => write_json(out, &json!({ "embedding": vector }))?,
            false => {
                let numbers: Vec<String> = vector.iter().map(|x| x.to_string()).collect();
                writeln!(out, "{}", numbers.join(" "))?;
            }
        }
        Ok(())
    })
}
