//! `regard score`: log-probability and perplexity of a text.

use super::generate::note_truncated;
use super::inputs::InputError;
use super::sequences::CacheFlags;
use super::texts::{FileFlags, TextSource};
use super::together::{self, Each};
use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use crate::show::table::Table;
use anyhow::Result;
use clap::Args;
use regard_tasks::batching::Cancel;
use regard_tasks::say;
use regard_tasks::score::{Parameters, Response, Scorer};
use std::io::Write;

const EXAMPLES: &str = "\
Prints the natural-log probability of each token, and of the text with its perplexity. The first
token has no probability, unless the tokenizer puts a BOS token before it (as Llama's does and
GPT-2's does not); the BOS token itself is not counted.

A text longer than the model's context is an error. --truncate drops its first tokens; --windows
reads it in windows that overlap by half, so that each token has at least half a context before it.

Examples:
  regard score 'to be or not to be'                # built-in model `shakespeare`
  regard score --json 'to be or not to be'
  regard score < sentences.txt                     # your file: one result per line
  regard score --model gpt2 'to be or not to be'   # downloads GPT-2 from the Hub

Standard input: for each line its log-probability, a tab, and its perplexity.

--json prints one object per line: tokens, token_logprobs (null for a token without one), logprob,
perplexity; with --truncate also truncated_tokens, if there are any.

If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.";

/// Compute the log-probability of a text, token by token
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Texts to score [default: the lines of standard input]
    text: Vec<String>,
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    /// [default: `shakespeare`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Drop the first tokens of a text that is longer than the model's context
    #[arg(long, conflicts_with = "windows")]
    truncate: bool,
    /// Read a text that is longer than the model's context in overlapping windows
    #[arg(long)]
    windows: bool,
    #[command(flatten)]
    file: FileFlags,
    #[command(flatten)]
    hub: Hub,
    #[command(flatten)]
    caches: CacheFlags,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let mut scorer: Scorer = models::open(flags.model.as_deref(), &flags.hub)?;
    flags.caches.apply(&mut scorer.0)?;
    let scorer = scorer;
    let mut unknown = inputs::Unknown::default();
    let parameters = Parameters { truncate: flags.truncate, windows: flags.windows };
    let cancel = &Cancel::new();
    let compute = |_: u64, text: &str| scorer.run_until(text, &parameters, cancel);
    let mut show = |number: u64,
                    text: &str,
                    response: Response,
                    out: &mut dyn Write|
     -> Result<(), InputError> {
        unknown.note(scorer.0.tokenizer(), text);
        note_truncated(number, response.truncated_tokens);
        // Its perplexity is 1, which looks like a perfect prediction.
        if response.token_logprobs.iter().flatten().count() == 0 {
            inputs::note(&format!(
                "{:?} has no token with a probability: the first one has no context to be predicted \
                 from",
                say::short(text, 40)
            ));
        }
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        let Response { tokens, token_logprobs, logprob, perplexity, .. } = response;
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
    };
    let source = TextSource::of(&flags.text, &flags.file, flags.model.as_deref());
    let each = Each { compute: &compute, cancel, show: &mut show, alone: None };
    let outcome = together::each(&source, global.json, out, each)?;
    flags.caches.report(&scorer.0);
    Ok(outcome)
}
