//! Tagging of files in CoNLL format, whose sentences are already split into words.

use super::{Flags, Outcome, print};
use crate::cli::inputs::{command_without, failed, note};
use crate::cli::say::quoted;
use crate::cli::texts::{BUFFER, open as open_file};
use crate::models::{self, ModelRef};
use anyhow::{Context, Result, bail};
use regard_tasks::Error;
use regard_tasks::import::{WordColumn, WordFormat, WordSentences, recorded_word_column};
use regard_tasks::tag::{Grouping, Response, Tagger};
use std::io::{BufRead, BufReader, Write, stdin};
use std::path::Path;

/// Sentences of the file or of standard input.
pub type Sentences<'a> = WordSentences<'a, Box<dyn BufRead>>;

/// Opens the file or standard input if it has a word on each line; `labels` are those of the model.
/// Nothing is taken from standard input otherwise.
pub fn open<'a>(flags: &'a Flags, labels: &[String]) -> Result<Option<Sentences<'a>>> {
    let is_words = |text: &&String| {
        let path = Path::new(text);
        path.is_file() && WordFormat::recognise(path, b"", labels).is_some()
    };
    if let Some(file) = flags.text.iter().find(is_words) {
        bail!(
            "{file} is a file; need a text. To tag the words of the file: {} --file {}",
            command_without(&flags.text),
            quoted(file)
        );
    }
    if !flags.text.is_empty() || flags.file.lines {
        return Ok(None);
    }
    let (mut reader, name): (Box<dyn BufRead>, &Path) = match flags.file.file.as_deref() {
        // What is taken from a pipe to look at cannot be read again.
        Some(path) if path != Path::new("-") && !path.is_file() => return Ok(None),
        Some(path) if path != Path::new("-") => {
            (Box::new(BufReader::with_capacity(BUFFER, open_file(path)?)), path)
        }
        // The buffer of standard input outlives this lock.
        _ => (Box::new(stdin().lock()), Path::new("standard input")),
    };
    let first = reader.fill_buf().map_err(Error::io(name))?;
    let Some(format) = WordFormat::recognise(name, first, labels) else { return Ok(None) };
    let recorded = match flags.model.as_deref().map(models::called) {
        Some(Ok(ModelRef::Folder(run))) => recorded_word_column(&run)?,
        _ => None,
    };
    let table = &flags.file.table;
    let header = table.no_header.then_some(false);
    let column = WordColumn { asked: table.columns.as_deref(), recorded, header };
    let what = match format {
        WordFormat::ConllU => "CoNLL-U",
        WordFormat::Columns => "CoNLL columns",
    };
    note(&format!(
        "{}: {what}; its words are tagged as they are given, and its labels are not read. If each \
         line is a text: {} --lines",
        name.display(),
        command_without(&[])
    ));
    Ok(Some(WordSentences::new(reader, name, format, column)?))
}

/// Tags the sentences, and prints a line for each.
pub fn run(
    mut sentences: Sentences,
    tagger: &Tagger,
    grouping: Grouping,
    json: bool,
    out: &mut dyn Write,
) -> Result<Outcome> {
    if grouping == Grouping::Tokens {
        bail!("--by tokens is for texts; the words of this file get a label each: --by words");
    }
    let (mut outcome, mut count) = (Outcome::Positive, 0);
    while let Some(read) = sentences.next() {
        if count == 0
            && let Some(column) = sentences.column()
        {
            note(&format!("words: column {column}"));
        }
        count += 1;
        let (line, tagged) = match read {
            Ok(read) => (read.line, tagger.0.tag_sentence(&read.sentence, grouping)),
            // The message of a sentence names its line.
            Err(Error::File { message, .. }) if message.starts_with("line ") => {
                (0, Err(Error::Invalid(message)))
            }
            Err(error @ Error::Invalid(_)) if error.to_string().starts_with("line ") => {
                (0, Err(error))
            }
            Err(error) => return Err(error.into()),
        };
        match tagged {
            Ok(entities) => print(&Response { entities }, json, out)?,
            Err(error) => {
                outcome = Outcome::Negative;
                failed(&error, line, json, out)?;
            }
        }
    }
    if count == 0 {
        bail!("the file has no sentences");
    }
    out.flush().context("standard output")?;
    Ok(outcome)
}
