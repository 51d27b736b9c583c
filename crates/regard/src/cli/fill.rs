//! `regard fill`: prediction of masked tokens.

use super::texts::{FileFlags, TextSource};
use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use crate::show::table::Table;
use anyhow::Result;
use clap::Args;
use regard_tasks::fill::{Filler, Parameters, TokenCandidate};
use regard_tasks::pipeline::Pipeline;
use std::io::Write;

const EXAMPLES: &str = "\
Predicts the most probable tokens for each mask. The mask is written as in the model's vocabulary:
[MASK] for BERT, <mask> for RoBERTa and XLNet. The built-in models are small, for lessons:
wiki-bert has seen 400,000 words.

Examples:
  regard fill 'The song was [MASK] in the United States .'
  regard fill 'The song was <mask> in the United States .' --model wiki-xlnet
  regard fill 'The capital of France is [MASK].' --model google-bert/bert-base-uncased # downloads
  regard fill --top-k 3 'Paris is the <mask> of France.' --model FacebookAI/roberta-base # downloads
  regard fill --json --model runs/wikitext2-bert < texts.txt  # regard train wikitext2-bert

--json prints {\"candidates\": [{token_str, token, score, sequence}, …]}; for a text with several
masks, one list for each of them.

If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.";

/// Predict masked tokens of a text
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Texts with a mask token [default: the lines of standard input]
    text: Vec<String>,
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id [default:
    /// `wiki-bert`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Number of candidates for each mask
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = inputs::at_least_one)]
    top_k: usize,
    #[command(flatten)]
    file: FileFlags,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let filler: Filler = models::open(flags.model.as_deref(), &flags.hub)?;
    if let (None, Some(note)) = (&flags.model, models::default_note::<Filler>()) {
        inputs::note(&note);
    }
    let parameters = Parameters { top_k: flags.top_k };
    let mut unknown = inputs::Unknown::default();
    let source = TextSource::of(&flags.text, &flags.file, flags.model.as_deref());
    inputs::each(&source, global.json, out, &mut |text, out| {
        unknown.note(filler.0.tokenizer(), text);
        let response = filler.run_one(text.to_string(), &parameters)?;
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        for list in response.candidates.lists() {
            let mut table = Table::new(["score", "token", "text"]);
            for TokenCandidate { token_str, score, sequence, .. } in list {
                table.row([format!("{score:.4}"), token_str.clone(), sequence.clone()]);
            }
            write!(out, "{}", table.render("", None))?;
        }
        Ok(())
    })
}
