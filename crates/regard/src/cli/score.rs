//! `regard score`: how likely a language model finds a text.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use crate::show::table::Table;
use anyhow::Result;
use clap::Args;
use regard_tasks::pipeline::Pipeline;
use regard_tasks::score::{Parameters, Response, Scorer};
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard score 'to be or not to be'                # by the model that ships
  regard score --json --model gpt2 < sentences.txt

Without TEXT, each line of standard input is one: its log-probability, a tab, and its perplexity.
Logarithms are natural. The first token has no probability unless the model has a first word.

With --json: an object a line with tokens, token_logprobs (null for a token without one), logprob,
perplexity.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.";

/// Say how likely a text is, token by token
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The texts; without them, the lines of standard input
    text: Vec<String>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face
    /// Hub [default: shakespeare, which ships]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let scorer: Scorer = models::open(flags.model.as_deref(), &flags.hub)?;
    let mut unknown = inputs::Unknown::default();
    inputs::each(&flags.text, global.json, out, &mut |text, out| {
        unknown.note(scorer.0.tokenizer(), text);
        let response = scorer.run_one(text.to_string(), &Parameters::default())?;
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        let Response { tokens, token_logprobs, logprob, perplexity } = response;
        if flags.text.is_empty() {
            return Ok(writeln!(out, "{logprob:.4}\t{perplexity:.3}")?);
        }
        let mut table = Table::new(["token", "log-probability"]);
        for (token, logprob) in tokens.iter().zip(&token_logprobs) {
            table.row([
                token.escape_debug().to_string(),
                logprob.map_or("–".into(), |x| format!("{x:.4}")),
            ]);
        }
        write!(out, "{}", table.render("", None))?;
        writeln!(out, "log-probability {logprob:.4}, perplexity {perplexity:.3}")?;
        Ok(())
    })
}
