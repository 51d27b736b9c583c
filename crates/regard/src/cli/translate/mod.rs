//! `regard translate`: text in one language, or alphabet, into another.

mod lines;
mod show;

use super::inputs::{self, Unknown, note};
use super::search::Search;
use super::{Global, Outcome};
use crate::hub::Hub;
use crate::models;
use crate::show::terminal::When;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use regard_tasks::translate::{Parameters, Translated, Translator};
use show::{Asked, Show};
use std::io::{IsTerminal, Write};

const EXAMPLES: &str = "\
Examples:
  regard translate 'They are watching.' --model runs/tatoeba-en-fr-transformer
  regard translate < english.txt > french.txt --model tatoeba-en-fr-transformer
  regard translate --num-beams 5 --num-return-sequences 3 --scores 'I am hungry.' --model …
  regard translate --do-sample --temperature 0.8 --seed 7 'Where are you?' --model …
  regard translate --align pharaoh --json 'They are watching.' --model …

Without TEXT, standard input: a line out for each line in, in their order, as they come. An empty
line stays empty. A line that is longer than the model reads at once (max_position_embeddings of
its config.json, or 512 tokens) is translated sentence by sentence, and standard error says so; of
such a line there is no alignment. With --scores or --align, their columns follow behind tabs. A line that is not
UTF-8 is told on standard error, gives an empty line, and makes the exit code 1 at the end.

With --json: an object a line, with translation_text, score, log_prob, finished, source_tokens,
tokens, token_scores; with --align or --attend also source_words, words, word_scores, alignment
and attention; with --num-return-sequences also alternatives.

Scores are natural logarithms; that of a sentence is its mean for a token, as --length-penalty
has it. Attention is as the model has it, put together to words; what is missing to 1 in a row
went to the end of the source, which is not shown.";

/// Translate text with a trained model
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// What to translate, each by itself; without it, the lines of standard input
    text: Vec<String>,
    /// A model: a folder, a name that `regard models` lists, or an id of the Hugging Face Hub
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Draw where each word came from; `auto` on a terminal, for TEXT
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "auto", default_missing_value = "always")]
    attend: When,
    /// Also the score of each sentence and of each word
    #[arg(long)]
    scores: bool,
    /// Also which word of the source each word came from
    #[arg(long, value_enum, value_name = "HOW")]
    align: Option<Align>,
    /// Sentences at a time; the translations do not depend on it
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,
    /// Colours or shades; `auto` heeds NO_COLOR
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,
    /// What translations have to begin with
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    target_prefix: String,
    /// Put the word that was looked at most in place of an unknown one
    #[arg(long)]
    replace_unknowns: bool,
    /// Above 0, the whole source should be looked at
    #[arg(long, value_name = "X")]
    coverage_penalty: Option<f32>,
    #[command(flatten)]
    hub: Hub,
    #[command(flatten)]
    search: Search,
}

/// How an alignment is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Align {
    /// For each word, the place of its source word, or - for none: 0 1 1
    Hard,
    /// For each word, its weights on all source words
    Soft,
    /// Source-target places: 0-0 1-1 1-2
    Pharaoh,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let from_lines = flags.text.is_empty();
    let on_terminal = std::io::stdout().is_terminal() && !from_lines && !global.json;
    let asked = Asked {
        map: match flags.attend {
            When::Always => true,
            When::Auto => on_terminal,
            When::Never => false,
        },
        scores: flags.scores,
        align: flags.align,
        json: global.json,
        color: flags.color,
        // A map that nobody asked for is left out in silence where there is none.
        must: flags.attend == When::Always || flags.align.is_some(),
    };
    if from_lines && !global.json {
        if asked.map {
            bail!("--attend: standard input gives a line for each line; give TEXT, or --json");
        }
        if flags.search.num_return_sequences.is_some_and(|n| n > 1) {
            bail!(
                "--num-return-sequences: standard input gives a line for each line; add --json, \
                 or give TEXT"
            );
        }
    }
    inputs::not_files(&flags.text)?;
    let translator: Translator = models::open(flags.model.as_deref(), &flags.hub)?;
    let mut search = flags.search.parameters(translator.defaults(), global.seed)?;
    search.coverage_penalty = flags.coverage_penalty;
    search.over(translator.defaults())?;
    let parameters = Parameters {
        output_attentions: asked.look(),
        replace_unknowns: flags.replace_unknowns,
        target_prefix: flags.target_prefix,
        batch_size: Some(usize::from(flags.batch)),
        first: 0,
        search,
    };
    let job = Job { translator: &translator, parameters: parameters.clone() };
    let show = Show { translator: &translator, asked, parameters };
    if from_lines {
        return lines::run(&job, &show, out);
    }
    let (mut stopped, mut unknown) = (0, Unknown::default());
    for (i, text) in flags.text.iter().enumerate() {
        unknown.note(&translator.tokens().source, text);
        let found = job.translate(&[text], i as u64)?.remove(0);
        note_pieces(&format!("text {}", i + 1), &found, &translator);
        stopped += usize::from(is_stopped(&found));
        show.text(text, &found, out)?;
        out.flush()?;
    }
    note_stopped(stopped, flags.text.len() as u64);
    Ok(Outcome::Positive)
}

/// What is asked for, for texts that come in parts.
struct Job<'a> {
    translator: &'a Translator,
    parameters: Parameters,
}

impl Job<'_> {
    /// Translates some texts, of which `first` came before.
    fn translate(&self, texts: &[&String], first: u64) -> Result<Vec<Vec<Translated>>> {
        let parameters = Parameters { first, ..self.parameters.clone() };
        Ok(self.translator.translate_with(texts, &parameters)?)
    }

    /// Sentences at a time.
    fn batch(&self) -> usize {
        self.parameters.batch_size.unwrap_or(1)
    }
}

/// Says on standard error that a source was too long to be read at once.
fn note_pieces(name: &str, found: &[Translated], translator: &Translator) {
    let Some(first) = found.first() else { return };
    let (most, tokens) = (translator.most_tokens(), first.source_tokens.len());
    if first.pieces > 1 {
        note(&format!(
            "{name}: {tokens} tokens are more than the {most} that are read at once; it was \
             translated in {} pieces, sentence by sentence",
            first.pieces
        ));
    }
}

/// Whether a translation was stopped before its end.
fn is_stopped(found: &[Translated]) -> bool {
    found.first().is_some_and(|first| first.pieces > 0 && !first.found.finished)
}

/// Says on standard error how many translations were stopped before their ends.
fn note_stopped(stopped: usize, of: u64) {
    if stopped > 0 {
        note(&format!(
            "{stopped} of {of} translations stopped before their end, at the greatest length; \
             raise --max-length, or see `finished` of --json"
        ));
    }
}
