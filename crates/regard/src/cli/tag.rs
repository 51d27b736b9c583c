//! `regard tag`: labels for the words of a text.

use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::Result;
use clap::{Args, ValueEnum};
use regard_tasks::pipeline::Pipeline;
use regard_tasks::tag::{Entity, Grouping, Parameters, Tagger};
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
    let tagger: Tagger = models::open(flags.model.as_deref(), &flags.hub)?;
    let aggregation_strategy = flags.by.map(|by| match by {
        By::Entities => Grouping::Entities,
        By::Words => Grouping::Words,
        By::Tokens => Grouping::Tokens,
    });
    let parameters = Parameters { aggregation_strategy };
    let mut unknown = inputs::Unknown::default();
    inputs::each(&flags.text, global.json, out, &mut |text, out| {
        unknown.note(tagger.0.tokenizer(), text);
        let response = tagger.run_one(text.to_string(), &parameters)?;
        if global.json {
            return Ok(write_json(out, &response)?);
        }
        let part = |e: &Entity| format!("{}/{}", e.word, e.entity_group);
        let parts: Vec<String> = response.entities.iter().map(part).collect();
        Ok(writeln!(out, "{}", parts.join(" "))?)
    })
}
