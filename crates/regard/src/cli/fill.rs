//! `regard fill`: the word that is hidden.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use crate::show::table::Table;
use anyhow::Result;
use clap::Args;
use regard_tasks::fill::{Candidate, Filler, Parameters};
use regard_tasks::pipeline::Pipeline;
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard fill 'The capital of France is [MASK].' --model google-bert/bert-base-uncased
  regard fill --top-k 3 --json 'Paris is the <mask> of France.' --model …

The hidden word is written as the model's vocabulary has it: [MASK] or <mask>.

With --json: {\"candidates\": [{token_str, token, score, sequence}, …]}; for a text with several
hidden words, a list for each of them.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.";

/// Guess a hidden word
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The texts; without them, the lines of standard input
    text: Vec<String>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// So many candidates for each
    #[arg(long, value_name = "N", default_value_t = 5)]
    top_k: usize,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let filler: Filler = models::open(flags.model.as_deref(), &flags.hub)?;
    let parameters = Parameters { top_k: flags.top_k };
    let mut unknown = inputs::Unknown::default();
    inputs::each(&flags.text, global.json, out, &mut |text, out| {
        unknown.note(filler.0.tokenizer(), text);
        let response = filler.run_one(text.to_string(), &parameters)?;
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        for list in response.candidates.lists() {
            let mut table = Table::new(["score", "token", "text"]);
            for Candidate { token_str, score, sequence, .. } in list {
                table.row([format!("{score:.4}"), token_str.clone(), sequence.clone()]);
            }
            write!(out, "{}", table.render("", None))?;
        }
        Ok(())
    })
}
