//! Tagging of files in CoNLL format, whose sentences are already split into words.

use super::{Flags, Outcome, print};
use crate::cli::inputs::{command_without, failed, note, of_line};
use crate::cli::say::quoted;
use crate::cli::texts::{BUFFER, open as open_file};
use crate::models::{self, ModelRef};
use anyhow::{Context, Result, bail};
use regard_tasks::Error;
use regard_tasks::import::{WordColumn, WordFormat, WordSentences, recorded_word_column};
use regard_tasks::tag::{Grouping, Response, Tagger};
use std::io::{BufRead, BufReader, Cursor, IsTerminal, Read, Write, stdin};
use std::path::Path;

/// Name of standard input in messages.
pub const INPUT: &str = "standard input";

/// Sentences of the file or of standard input.
pub type Sentences<'a> = WordSentences<'a, Box<dyn BufRead>>;

/// Input to be tagged.
pub enum Source<'a> {
    /// Sentences that are split into words.
    Words(Sentences<'a>),
    /// Lines of standard input that turned out to be texts. Their beginning, which was read to tell
    /// it, comes first.
    Lines { beginning: Vec<u8> },
    /// Texts; nothing was taken from standard input.
    Texts,
}

/// Opens the file or standard input if it has a word on each line; `labels` are those of the model.
pub fn open<'a>(flags: &'a Flags, labels: &[String]) -> Result<Source<'a>> {
    refuse_names(flags, labels)?;
    if !flags.text.is_empty() || flags.file.lines {
        return Ok(Source::Texts);
    }
    let path = flags.file.file.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = path {
        // What is taken from a pipe to look at cannot be read again.
        if !path.is_file() {
            return Ok(Source::Texts);
        }
        let mut reader = BufReader::with_capacity(BUFFER, open_file(path)?);
        let looked = WordFormat::look(path, &mut reader, labels).map_err(Error::io(path))?;
        return Ok(match looked {
            (Some(format), taken) => {
                let reader = Box::new(Cursor::new(taken).chain(reader));
                Source::Words(sentences(flags, path, format, reader)?)
            }
            // It is opened again.
            (None, _) => Source::Texts,
        });
    }
    let name = Path::new(INPUT);
    // Who types a line waits for its labels.
    if stdin().is_terminal() {
        return Ok(Source::Texts);
    }
    // The buffer of standard input outlives this lock.
    let mut reader = stdin().lock();
    let first = reader.fill_buf().map_err(Error::io(name))?;
    let found = WordFormat::recognise(name, first, labels);
    // A table is read from standard input itself: nothing must be taken before.
    let is_table = flags.file.table.is_given();
    let is_decided = is_table || WordFormat::is_decided(name, first, labels);
    let (format, beginning) = match (found, is_decided) {
        (None, true) => return Ok(Source::Texts),
        (Some(format), true) => (Some(format), vec![]),
        _ => WordFormat::look(name, &mut reader, labels).map_err(Error::io(name))?,
    };
    let Some(format) = format else { return Ok(Source::Lines { beginning }) };
    let reader = Box::new(Cursor::new(beginning).chain(reader));
    Ok(Source::Words(sentences(flags, name, format, reader)?))
}

/// Refuses names of files with words where texts are expected.
fn refuse_names(flags: &Flags, labels: &[String]) -> Result<()> {
    let is_words = |text: &&String| {
        let path = Path::new(text);
        path.is_file() && WordFormat::recognise(path, b"", labels).is_some()
    };
    match flags.text.iter().find(is_words) {
        None => Ok(()),
        Some(file) => bail!(
            "{file} is a file; need a text. To tag the words of the file: {} --file {}",
            command_without(&flags.text),
            quoted(file)
        ),
    }
}

/// Sentences of a reader, with a note about them.
fn sentences<'a>(
    flags: &'a Flags,
    name: &Path,
    format: WordFormat,
    reader: Box<dyn BufRead>,
) -> Result<Sentences<'a>> {
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
    Ok(WordSentences::new(reader, name, format, column)?)
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
        let read = read?;
        let tagged = match read.sentence {
            Ok(sentence) => tagger.0.tag_sentence(&sentence, grouping),
            Err(message) => Err(Error::Invalid(message)),
        };
        match tagged {
            Ok(entities) => print(&Response { entities }, json, out)?,
            Err(error) => {
                outcome = Outcome::Negative;
                failed(&of_line(read.line, &error), json, out)?;
            }
        }
    }
    if count == 0 {
        bail!("the file has no sentences");
    }
    out.flush().context("standard output")?;
    Ok(outcome)
}
