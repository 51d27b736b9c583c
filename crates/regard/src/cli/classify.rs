//! `regard classify`: a label for a text.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Result, anyhow};
use clap::Args;
use regard_models::text::Head;
use regard_tasks::reading::{Label, Reader, Weight};
use serde_json::{Value, json};
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard classify 'A film to fall in love with.' --model runs/sst2
  regard classify --top-k 3 --json --model … < texts.txt
  regard classify --why 'It never gets off the ground.' --model runs/sst2-words
  regard classify --pair $'first text\\tsecond text' --model …

Without TEXT, each line of standard input is one. A line out for each: the label, a tab, its
probability; with --top-k more of them, in the same line.

With --json: {\"label\", \"score\"}, with --top-k also {\"labels\": [{\"label\", \"score\"}, …]}, and
with --why also {\"words\": [{\"word\", \"weight\", \"start\", \"end\"}, …]}, in the order of the text.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.";

/// Give a text a label
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The texts; without them, the lines of standard input
    text: Vec<String>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// So many labels for each, the likeliest first
    #[arg(long, value_name = "N", default_value_t = 1)]
    top_k: usize,
    /// Each text is a pair, with a tab between
    #[arg(long)]
    pair: bool,
    /// Which words decided, the heaviest first: of models that pool words by attention
    #[arg(long, conflicts_with = "pair")]
    why: bool,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let reader = models::reader(Some(&flags.model), &flags.hub, Head::Sequence)?;
    inputs::each(&flags.text, global.json, out, &mut |text, out| {
        let parts = match text.split_once('\t').filter(|_| flags.pair) {
            Some((first, second)) => (first, Some(second)),
            None => (text, None),
        };
        let labels = reader.classify(&[parts])?.remove(0);
        let labels = &labels[..labels.len().min(flags.top_k.max(1))];
        let words = if flags.why { weights(&reader, text)? } else { vec![] };
        if global.json {
            let object = |l: &Label| json!({ "label": l.label, "score": l.score });
            let mut best = labels.first().map_or(Value::Null, object);
            if flags.top_k > 1 {
                best["labels"] = labels.iter().map(object).collect();
            }
            if flags.why {
                best["words"] = words.iter().map(word).collect();
            }
            return Ok(write_json(out, &best)?);
        }
        let columns: Vec<String> =
            labels.iter().map(|l| format!("{}\t{:.4}", l.label, l.score)).collect();
        writeln!(out, "{}", columns.join("\t"))?;
        let mut heaviest = words;
        heaviest.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        for Weight { word, weight, .. } in heaviest {
            writeln!(out, "  {weight:.4}\t{word}")?;
        }
        Ok(())
    })
}

/// The words of a text with their weights.
fn weights(reader: &Reader, text: &str) -> Result<Vec<Weight>> {
    let weights = reader.weigh(text)?;
    weights.ok_or_else(|| anyhow!("--why: this model does not pool words by attention"))
}

fn word(w: &Weight) -> Value {
    json!({ "word": w.word, "weight": w.weight, "start": w.start, "end": w.end })
}
