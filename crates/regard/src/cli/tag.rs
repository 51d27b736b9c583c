//! `regard tag`: labels for the words of a text.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::Result;
use clap::{Args, ValueEnum};
use regard_models::text::Head;
use regard_tasks::tag::{Entity, Grouping};
use serde_json::{Value, json};
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  regard tag 'They are watching.'                  # by the model that ships
  regard tag --json --model … < texts.txt

Without TEXT, each line of standard input is one. A line out for each: word/LABEL, separated by
spaces. A long text is read in windows that overlap. Without --by, labels with B- and I- are put
together to entities, and others are those of words.

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
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face
    /// Hub [default: en-pos, which ships]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What stands by itself [default: entities if labels have B- and I-, else words]
    #[arg(long, value_enum)]
    by: Option<By>,
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
    let reader = models::reader(flags.model.as_deref(), &flags.hub, Head::Tokens)?;
    let inside = |label: &String| label.starts_with("B-") || label.starts_with("I-");
    let grouping = match flags.by {
        Some(By::Entities) => Grouping::Entities,
        Some(By::Words) => Grouping::Words,
        Some(By::Tokens) => Grouping::Tokens,
        None if reader.labels().iter().any(inside) => Grouping::Entities,
        None => Grouping::Words,
    };
    let mut unknown = inputs::Unknown::default();
    inputs::each(&flags.text, global.json, out, &mut |text, out| {
        unknown.note(reader.tokenizer(), text);
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
