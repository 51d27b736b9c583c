//! Classification of texts.

use super::super::inputs::InputError;
use super::super::texts::{FileFlags, TextSource};
use super::super::{Outcome, inputs};
use super::{CommonOptions, line, write_json};
use crate::models;
use anyhow::{Result, anyhow};
use clap::Args;
use regard_models::Error;
use regard_tasks::classify::{Classifier, Inputs, Parameters, WordWeight};
use regard_tasks::pipeline::Pipeline;
use std::io::Write;

// No group: clap would name it after the struct, like those of images and graphs.
#[derive(Args)]
#[group(skip)]
pub struct Flags {
    /// Texts to classify [default: the lines of standard input]
    text: Vec<String>,
    /// Each text is a pair, separated by a tab
    #[arg(long)]
    pair: bool,
    /// Print the attention weight of each word, largest first (models with attention pooling)
    #[arg(long, alias = "why", conflicts_with = "pair")]
    attention_weights: bool,
    #[command(flatten)]
    pub file: FileFlags,
}

pub fn run(flags: &Flags, asked: &CommonOptions, out: &mut dyn Write) -> Result<Outcome> {
    let classifier: Classifier = models::open(asked.model, asked.hub)?;
    if let (None, Some(note)) = (asked.model, models::default_note::<Classifier>()) {
        inputs::note(&note);
    }
    let parameters = Parameters { top_k: asked.top_k, output_attentions: flags.attention_weights };
    let mut number = 0;
    let mut unknown = inputs::Unknown::default();
    let source =
        TextSource { pairs: flags.pair, ..TextSource::of(&flags.text, &flags.file, asked.model) };
    inputs::each(&source, asked.json, out, &mut |text, out| {
        unknown.note(classifier.0.tokenizer(), text);
        unknown.note_words(&classifier.0, text);
        let input = match (text.split_once('\t'), flags.pair) {
            (Some((first, second)), true) => {
                Inputs::Pair { text: first.to_string(), text_pair: second.to_string() }
            }
            (None, true) => {
                let message = "--pair: there is no tab between a first and a second text";
                return Err(Error::invalid(message).into());
            }
            (_, false) => Inputs::Text(text.to_string()),
        };
        number += 1;
        let (first, second) = input.texts();
        let unread = classifier.0.unread(first, second)?;
        if unread > 0 {
            inputs::note(&format!(
                "text {number}: longer than the model's maximum length; {unread} tokens are \
                 truncated"
            ));
        }
        let response = classifier.run_one(input, &parameters).map_err(|error| {
            match error.to_string().strip_prefix("attention: ") {
                // A property of the model, so every line would fail.
                Some(why) => anyhow!(
                    "--attention-weights: {why}. The built-in model does (leave out --model); to \
                     train one that does: regard train classify --data FILE --set \
                     model.pooling=attention"
                )
                .into(),
                None => InputError::from(error),
            }
        })?;
        if asked.json {
            return Ok(write_json(out, &response)?);
        }
        writeln!(out, "{}", line(&response.labels))?;
        let mut heaviest = response.words.unwrap_or_default();
        heaviest.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        for WordWeight { word, weight, .. } in heaviest {
            writeln!(out, "  {weight:.4}\t{word}")?;
        }
        Ok(())
    })
}
