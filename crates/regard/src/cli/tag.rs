//! `regard tag`: token classification.

mod lines;
mod sentences;

use super::texts::{FileFlags, TextSource};
use super::{Global, Outcome, inputs, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::Result;
use clap::{Args, ValueEnum};
use regard_tasks::pipeline::Pipeline;
use regard_tasks::tag::{Entity, Grouping, Parameters, Response, Tagger};
use sentences::Source;
use std::io::{Write, stdin};

const EXAMPLES: &str = "\
Labels every word of a text: parts of speech with the built-in model, named entities with a model
that was trained for them. Prints word/LABEL, separated by spaces, on one line per text.

Examples:
  regard tag 'They are watching.'                  # built-in model `en-pos`
  regard tag --json 'They are watching.'
  regard tag < texts.txt                           # your file: one text per line
  regard tag --file words.conll                    # your file: one word per line
  regard tag 'Ann lives in Paris.' --model dslim/bert-base-NER   # downloads from the Hub

Long texts are processed in overlapping windows. Without --by, labels with the prefixes B- and I-
are merged into entities; other labels are given per word.

A file in CoNLL format is recognised by its name (.conll, .conllu, .iob, .iob2, .bio, .tags) or its
first lines: one word per line with its columns, and a blank line after each sentence. Its words are
labelled as they are; labels in the file are not read. --text chooses the column of the words,
--lines takes each line as a text. To compare with the labels in the file:
regard eval RUN --data FILE

--json prints {\"entities\": [{entity_group, score, word, start, end}, …]}; start and end are
character offsets.

If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.";

/// Label the words of a text
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Texts to label [default: the lines of standard input]
    text: Vec<String>,
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    /// [default: `en-pos`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Unit that gets a label [default: entities if the labels have B- and I-, else words]
    #[arg(long, value_enum)]
    by: Option<By>,
    #[command(flatten)]
    file: FileFlags,
    #[command(flatten)]
    hub: Hub,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Adjacent words of one entity, by B- and I-; O is left out
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
    let beginning = match sentences::open(&flags, tagger.0.labels())? {
        Source::Words(sentences) => {
            let grouping = tagger.grouping(aggregation_strategy);
            return sentences::run(sentences, &tagger, grouping, global.json, out);
        }
        Source::Lines { beginning } => Some(beginning),
        Source::Texts => None,
    };
    let parameters = Parameters { aggregation_strategy };
    let mut unknown = inputs::Unknown::default();
    let mut answer = |text: &str, out: &mut dyn Write| -> Result<(), inputs::InputError> {
        unknown.note(tagger.0.tokenizer(), text);
        let response = tagger.run_one(text.to_string(), &parameters)?;
        Ok(print(&response, global.json, out)?)
    };
    match beginning {
        Some(beginning) => {
            lines::each(&flags, beginning, stdin().lock(), global.json, out, &mut answer)
        }
        None => {
            let source = TextSource::of(&flags.text, &flags.file, flags.model.as_deref());
            inputs::each(&source, global.json, out, &mut answer)
        }
    }
}

/// Prints the labelled spans of a text or sentence.
fn print(response: &Response, json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        return write_json(out, response);
    }
    let part = |e: &Entity| format!("{}/{}", e.word, e.entity_group);
    let parts: Vec<String> = response.entities.iter().map(part).collect();
    Ok(writeln!(out, "{}", parts.join(" "))?)
}
