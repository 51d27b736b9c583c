//! A label for a text.

use super::super::{Outcome, inputs};
use super::{Asked, write_json};
use crate::models;
use anyhow::{Result, anyhow};
use clap::Args;
use regard_models::Error;
use regard_models::text::Head;
use regard_tasks::classify::Weight;
use regard_tasks::reader::Reader;
use serde_json::{Value, json};
use std::io::Write;

// Without a group of its own, whose name would be that of the others here.
#[derive(Args)]
#[group(skip)]
pub struct Flags {
    /// The texts; without them, the lines of standard input
    text: Vec<String>,
    /// Each text is a pair, with a tab between
    #[arg(long)]
    pair: bool,
    /// Which words decided, the heaviest first: of models that pool words by attention
    #[arg(long, conflicts_with = "pair")]
    why: bool,
}

pub fn run(flags: &Flags, asked: &Asked, out: &mut dyn Write) -> Result<Outcome> {
    let reader = models::reader(asked.model, asked.hub, Head::Sequence)?;
    let mut number = 0;
    let mut unknown = inputs::Unknown::default();
    inputs::each(&flags.text, asked.json, out, &mut |text, out| {
        unknown.note(reader.tokenizer(), text);
        let parts = match (text.split_once('\t'), flags.pair) {
            (Some((first, second)), true) => (first, Some(second)),
            (None, true) => {
                let message = "--pair: there is no tab between a first and a second text";
                return Err(Error::invalid(message).into());
            }
            (_, false) => (text, None),
        };
        number += 1;
        let unread = reader.unread(parts.0, parts.1)?;
        if unread > 0 {
            inputs::note(&format!(
                "text {number}: {unread} tokens are cut off, because it is longer than the model \
                 reads"
            ));
        }
        let labels = reader.classify(&[parts])?.remove(0);
        let words = if flags.why { weights(&reader, text)? } else { vec![] };
        if asked.json {
            let mut object = asked.object(&labels);
            if flags.why {
                object["words"] = words.iter().map(word).collect();
            }
            return Ok(write_json(out, &object)?);
        }
        writeln!(out, "{}", asked.line(&labels))?;
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
