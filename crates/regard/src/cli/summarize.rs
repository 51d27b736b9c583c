//! `regard summarize`: abstractive summaries.

use super::binary::read_text;
use super::tables::{not_rows, refuse_tables};
use super::texts::TableFlags;
use super::{Global, Outcome, file_names, write_json};
use crate::hub::Hub;
use crate::models;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::decode::SearchParameters;
use regard_tasks::import::texts::is_table_name;
use regard_tasks::pipeline::Pipeline;
use regard_tasks::summarize::{Parameters, Summarizer, SummaryWord};
use std::io::{Read, Write, stdin};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Generates a short summary of each TEXT. Only the first --max-words words are encoded. No built-in
model summarises; `regard train aeslc-pointer` trains a pointer-generator for subjects of e-mails.

Examples (with a model trained by `regard train aeslc-pointer`):
  regard summarize 'Attached is the service agreement. …' --model runs/aeslc-pointer
  regard summarize --file mail.txt --show-copied --model runs/aeslc-pointer  # your file
  regard summarize --json --model runs/aeslc-pointer < mail.txt              # your file
  regard summarize --file mails.csv --text body --model runs/aeslc-pointer   # a summary a row

Without TEXT and --file, all of standard input is one text; if it looks like a table, that is an
error.

A pointer-generator generates words of its vocabulary or copies words of the text, including words
outside its vocabulary. --show-copied prints for each word its probability and the fraction of it
that comes from copying; above 0.5 the word counts as copied.

--json prints {summary, log_prob}, with --show-copied also words: [{word, probability, copied,
known}, …].";

/// Summarise a text in a few words
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Texts to summarise, each independently [default: all of standard input as one text]
    text: Vec<String>,
    /// File with the text, or a table with a text in each row (.csv, .tsv, .jsonl)
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    #[command(flatten)]
    table: TableFlags,
    /// Model: a folder, or a name listed by `regard models` (required)
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Print which words were copied
    #[arg(long, alias = "why")]
    show_copied: bool,
    /// Number of words of a text to encode; the rest is ignored
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    max_words: u32,
    /// Number of beams; 1 is greedy search [default: the model's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    num_beams: Option<u16>,
    /// Maximum length in words, including BOS and EOS [default: the model's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(3..=512))]
    max_length: Option<u16>,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    refuse_tables(&flags.text, flags.model.as_deref())?;
    file_names::not_files_but(&flags.text, "--file")?;
    let summarizer: Summarizer = models::open(flags.model.as_deref(), &flags.hub)?;
    let texts = texts(&flags)?;
    if let Some(at) = texts.iter().position(|text| text.trim().is_empty()) {
        bail!("text {}: got an empty text, need words to summarise", at + 1);
    }
    let parameters = Parameters {
        max_words: Some(flags.max_words as usize),
        output_attentions: flags.show_copied,
        search: SearchParameters {
            num_beams: flags.num_beams.map(usize::from),
            max_length: flags.max_length.map(usize::from),
            ..SearchParameters::default()
        },
    };
    for response in summarizer.run(&texts, &parameters)? {
        let response = response?;
        if global.json {
            write_json(out, &response)?;
            continue;
        }
        writeln!(out, "{}", response.summary)?;
        for SummaryWord { word, probability, copied, known } in response.words.iter().flatten() {
            let how = if *copied > 0.5 { "copied" } else { "generated" };
            let new = if *known { "" } else { ", not in the vocabulary" };
            writeln!(out, "  {probability:.3}  {:>3.0} %  {word}  {how}{new}", 100.0 * copied)?;
        }
    }
    Ok(Outcome::Positive)
}

fn texts(flags: &Flags) -> Result<Vec<String>> {
    match &flags.file {
        Some(path) if flags.table.is_given() || is_table_name(path) => {
            let rows = flags.table.read(path, flags.model.as_deref())?;
            if let Some(row) = rows.iter().find(|row| row.text.is_empty()) {
                bail!(
                    "{}: line {}: the text is empty, need words to summarise",
                    path.display(),
                    row.line
                );
            }
            Ok(rows.into_iter().map(|row| row.text).collect())
        }
        Some(path) => {
            let text = read_text(path)?;
            not_rows(&text, Some(path), flags.model.as_deref())?;
            Ok(vec![text])
        }
        None if flags.text.is_empty() => {
            let mut text = String::new();
            stdin().lock().read_to_string(&mut text).context("standard input")?;
            not_rows(&text, None, flags.model.as_deref())?;
            Ok(vec![text])
        }
        None => Ok(flags.text.clone()),
    }
}
