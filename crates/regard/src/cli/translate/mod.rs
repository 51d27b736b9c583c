//! `regard translate`: translation, and grapheme-to-phoneme conversion.

mod lines;
mod show;

use super::inputs::{Unknown, note};
use super::search::Search;
use super::texts::{FileFlags, TextSource};
use super::{Global, Outcome};
use crate::hub::Hub;
use crate::models;
use crate::show::terminal::When;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use regard_kernels::pool;
use regard_tasks::translate::{Parameters, Translated, Translator, sentence_count};
use show::{OutputOptions, TranslationPrinter};
use std::io::{IsTerminal, Write};

const EXAMPLES: &str = "\
Translates each TEXT, or each line of standard input, by beam search. On a terminal, TEXT also gets
a map of the attention from each target word to the source words.

Examples:
  regard translate 'They are watching.'            # built-in model `en-fr`
  regard translate --model zh-en '他們在看。'      # built-in model, Chinese to English
  regard translate --num-beams 5 --num-return-sequences 3 --scores 'I am hungry.'
  regard translate --align pharaoh --json 'They are watching.'
  regard translate < english.txt > french.txt      # your file, one sentence per line

Standard input: one line of output for each line of input, in order; an empty line stays empty. With
--scores or --align, further columns follow, separated by tabs. A source that is longer than the
model's limit (max_position_embeddings of config.json, or 512 tokens) is split into sentences, with
a note on stderr; such a source has no alignment.
If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.

--json prints one object per line: translation_text, score, log_prob, finished, source_tokens,
tokens, token_scores; with --align or --attend also source_words, words, word_scores, alignment,
attention; with --num-return-sequences also alternatives.

Scores are natural logarithms; the score of a sentence is the mean log-probability of its tokens,
adjusted by --length-penalty. Attention weights of a Transformer are those of one decoder layer (the
last, or alignment_layer of config.json), averaged over heads; they are summed over the tokens of a
source word and averaged over those of a target word. A row may sum to less than 1: the rest is
attention to the end-of-source token.";

/// Translate text with a trained model
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Texts to translate, each independently [default: the lines of standard input]
    text: Vec<String>,
    /// Model: a folder, a name listed by `regard models`, or a Hugging Face Hub id
    /// [default: `en-fr`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Draw the attention map; `auto`: for TEXT, if stdout is a terminal; --attend alone means
    /// always
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "auto", default_missing_value = "always")]
    attend: When,
    /// Also print the score of each sentence and word
    #[arg(long)]
    scores: bool,
    /// Also print the alignment of target words to source words
    #[arg(long, value_enum, value_name = "FORMAT")]
    align: Option<Align>,
    /// Batch size in sentences; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,
    /// Number of batches that are translated at once, each on one core; results do not depend on it
    /// [default: one for each thread if there are enough sentences, else 1 with all threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Use colours; `auto`: if stdout is a terminal and NO_COLOR is not set
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,
    /// Text that every translation must begin with
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    target_prefix: String,
    /// Replace unknown target words by the source word with the highest attention
    #[arg(long)]
    replace_unknowns: bool,
    /// Coverage penalty: above 0, favours translations that attend to the whole source
    #[arg(long, value_name = "X")]
    coverage_penalty: Option<f32>,
    #[command(flatten)]
    file: FileFlags,
    #[command(flatten)]
    hub: Hub,
    #[command(flatten)]
    search: Search,
}

/// Format of an alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Align {
    /// For each target word, the index of its source word, or - for none: 0 1 1
    Hard,
    /// For each target word, its attention weights over all source words
    Soft,
    /// Pairs of source and target index: 0-0 1-1 1-2
    Pharaoh,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let is_when = |text: &&String| ["auto", "always", "never"].contains(&text.as_str());
    if let Some(when) = flags.text.iter().find(is_when).filter(|_| flags.attend == When::Always) {
        bail!("--attend: write --attend={when}, with '='; without a value it means always");
    }
    let from_lines = flags.text.is_empty();
    let on_terminal = std::io::stdout().is_terminal() && !from_lines && !global.json;
    let asked = OutputOptions {
        map: match flags.attend {
            When::Always => true,
            When::Auto => on_terminal,
            When::Never => false,
        },
        scores: flags.scores,
        align: flags.align,
        json: global.json,
        color: flags.color,
        // Without an explicit --attend or --align, a missing map is no error.
        must: flags.attend == When::Always || flags.align.is_some(),
    };
    if from_lines && !global.json {
        if asked.map {
            bail!("--attend: maps are drawn for TEXT only; pass TEXT, or add --json");
        }
        if flags.search.num_return_sequences.is_some_and(|n| n > 1) {
            bail!(
                "--num-return-sequences: output for standard input is one line per input line; add \
                 --json, or pass TEXT"
            );
        }
    }
    let source = TextSource::of(&flags.text, &flags.file, flags.model.as_deref());
    source.check()?;
    let translator: Translator = models::open(flags.model.as_deref(), &flags.hub)?;
    let mut search = flags.search.parameters(translator.defaults(), global.seed)?;
    search.coverage_penalty = flags.coverage_penalty;
    search.over(translator.defaults())?;
    let parameters = Parameters {
        output_attentions: asked.look(),
        replace_unknowns: flags.replace_unknowns,
        target_prefix: flags.target_prefix,
        batch_size: Some(usize::from(flags.batch)),
        workers: flags.workers.map(usize::from),
        first: 0,
        search,
    };
    let job = Job { translator: &translator, parameters: parameters.clone() };
    let show = TranslationPrinter { translator: &translator, asked, parameters };
    if from_lines {
        return lines::run(&mut source.open()?, &job, &show, out);
    }
    let (mut stopped, mut unknown) = (0, Unknown::default());
    for (i, text) in flags.text.iter().enumerate() {
        unknown.note(&translator.tokens().source, text);
        let found = job.translate(&[text], i as u64)?.remove(0);
        note_pieces(&format!("text {}", i + 1), &found, &translator);
        note_sentences(&format!("text {}", i + 1), text);
        stopped += usize::from(is_stopped(&found));
        show.text(text, &found, out)?;
        out.flush()?;
    }
    note_stopped(stopped, flags.text.len() as u64);
    Ok(Outcome::Positive)
}

/// Translator and parameters, for input that arrives in batches.
struct Job<'a> {
    translator: &'a Translator,
    parameters: Parameters,
}

impl Job<'_> {
    /// Translates a batch; `first` is the number of texts before it.
    fn translate(&self, texts: &[&String], first: u64) -> Result<Vec<Vec<Translated>>> {
        let parameters = Parameters { first, ..self.parameters.clone() };
        Ok(self.translator.translate_with(texts, &parameters)?)
    }

    /// Sentences that are translated together: a batch for each worker.
    fn batch(&self) -> usize {
        let workers = self.parameters.workers.unwrap_or_else(pool::threads);
        self.parameters.batch_size.unwrap_or(1) * workers.min(pool::threads())
    }
}

/// Notes on standard error that a source was split because of its length.
fn note_pieces(name: &str, found: &[Translated], translator: &Translator) {
    let Some(first) = found.first() else { return };
    let (most, tokens) = (translator.most_tokens(), first.source_tokens.len());
    if first.pieces > 1 {
        note(&format!(
            "{name}: {tokens} tokens exceed the model's limit of {most}; it was translated in {} \
             pieces, sentence by sentence",
            first.pieces
        ));
    }
}

/// Sentences of one text from which on a note is printed.
const MANY_SENTENCES: usize = 3;

/// Notes on standard error that a text has several sentences, of which models that were trained on
/// single ones lose some.
fn note_sentences(name: &str, text: &str) {
    let count = sentence_count(text);
    if count >= MANY_SENTENCES {
        note(&format!(
            "{name}: {count} sentences are translated as one; models that were trained on single \
             sentences lose some of them. Give one sentence per line (standard input or --file)"
        ));
    }
}

/// Whether a translation reached the length limit before its end-of-sequence token.
fn is_stopped(found: &[Translated]) -> bool {
    found.first().is_some_and(|first| first.pieces > 0 && !first.found.finished)
}

/// Notes on standard error how many translations reached the length limit.
fn note_stopped(stopped: usize, of: u64) {
    if stopped > 0 {
        note(&format!(
            "{stopped} of {of} translations are incomplete: they reached the length limit; raise \
             --max-length (`finished` in --json tells which)"
        ));
    }
}
