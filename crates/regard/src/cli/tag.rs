//! `regard tag`: labels for the words of a text.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::Result;
use clap::{Args, ValueEnum};
use regard_models::text::Head;
use regard_tasks::reading::{Entity, Grouping};
use serde_json::{Value, json};
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard tag 'They are watching.' --by words --model runs/ewt
  regard tag --json --model … < texts.txt

Without TEXT, each line of standard input is one. A line out for each: word/LABEL, separated by
spaces. A long text is read in windows that overlap.

With --json: {\"entities\": [{entity_group, score, word, start, end}, …]}, places counted in
characters.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.";

/// Label the words of a text
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The texts; without them, the lines of standard input
    text: Vec<String>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// What stands by itself
    #[arg(long, value_enum, default_value_t = By::Entities)]
    by: By,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Neighbours with the same label, by B- and I-; O is left out
    Entities,
    /// Every word
    Words,
    /// Every token
    Tokens,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let reader = models::reader(&flags.model, &flags.hub, Head::Tokens)?;
    let grouping = match flags.by {
        By::Entities => Grouping::Entities,
        By::Words => Grouping::Words,
        By::Tokens => Grouping::Tokens,
    };
    inputs::each(&flags.text, global.json, out, &mut |text, out| {
        let entities = reader.tag(&[text], grouping)?.remove(0);
        if global.json {
            let all: Vec<Value> = entities.iter().map(object).collect();
            return Ok(write_json(out, &json!({ "entities": all }))?);
        }
        let parts: Vec<String> =
            entities.iter().map(|e| format!("{}/{}", e.word, e.entity_group)).collect();
        Ok(writeln!(out, "{}", parts.join(" "))?)
    })
}

fn object(e: &Entity) -> Value {
    json!({
        "entity_group": e.entity_group, "score": e.score, "word": e.word,
        "start": e.start, "end": e.end,
    })
}
