//! Texts that a verb processes one after the other: the lines of standard input or of a file, or
//! the text columns of a table. The flags are the same for every verb.

use super::binary::refuse_binary;
use super::file_names;
use super::inputs::{STANDARD_INPUT, command_without, note, standard_input};
use super::say::quoted;
use super::tables::refuse_tables;
use crate::models;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::Error;
use regard_tasks::data::Lines;
use regard_tasks::import::Reading;
use regard_tasks::import::texts::{
    FileText, FileTexts, LooksLikeTable, TextChoice, is_table_name, looks_like_table,
    recorded_reading, text_names,
};
use regard_tasks::say;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::{Path, PathBuf};

/// Capacity of a pipe in bytes: a smaller buffer would not show that more lines are ready.
pub(super) const BUFFER: usize = 1 << 16;
/// Heading of these flags in `--help`.
const HEADING: &str = "Texts of a file";

/// Flags for a file of texts.
#[derive(Args, Default)]
#[group(skip)]
#[command(next_help_heading = HEADING)]
pub struct FileFlags {
    /// Texts: the lines of a file, or a column of a table (.csv, .tsv, .jsonl); - is standard input
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Each line is a text, even if the lines look like the rows of a table
    #[arg(long)]
    pub lines: bool,
    #[command(flatten)]
    pub table: TableFlags,
}

impl FileFlags {
    /// Returns an error if a flag is given where no texts are processed.
    pub fn refuse(&self, verb: &str, instead: &str) -> Result<()> {
        match (&self.file, self.lines) {
            (Some(file), _) => {
                bail!("{verb}: --file {} is for texts, not for {instead}", file.display())
            }
            (None, true) => bail!("{verb}: --lines is for texts, not for {instead}"),
            (None, false) => Ok(()),
        }
    }
}

/// Flags for the columns of a table.
#[derive(Args, Default)]
#[group(skip)]
#[command(next_help_heading = HEADING)]
pub struct TableFlags {
    /// Columns of a table, by name or number from 1; several are joined: title,description
    /// [default: those of the training, or those with the names of texts]
    #[arg(long = "text", id = "columns", value_name = "COLUMNS", requires = "file")]
    pub columns: Option<String>,
    /// The first row of a table is a text and not a header
    #[arg(long, requires = "file")]
    pub no_header: bool,
}

impl TableFlags {
    /// Whether a flag says that the file is a table.
    pub fn is_given(&self) -> bool {
        self.columns.is_some() || self.no_header
    }

    /// Reads the texts of a table, one for each row, and notes which columns they are in.
    pub fn read(&self, file: &Path, model: Option<&str>) -> Result<Vec<FileText>> {
        let like = match (trained_reading(model), &self.columns) {
            (Ok(like), _) => like,
            // The record also has the separator, which is guessed without it.
            (Err(error), Some(_)) => {
                note(&error.to_string());
                None
            }
            (Err(error), None) => bail!("{error}; --text COLUMN chooses the column"),
        };
        let choice = TextChoice {
            columns: self.columns.as_deref(),
            flag: "text",
            header: self.no_header.then_some(false),
            like,
            keep_empty: true,
        };
        let found = match file == Path::new("-") {
            true => FileTexts::read(stdin().lock(), STANDARD_INPUT, &choice)?,
            false => FileTexts::open(file, &choice)?,
        };
        if let Some(column) = &found.column {
            let file = if file == Path::new("-") { Path::new(STANDARD_INPUT) } else { file };
            let header = if found.has_header { "" } else { ", no header" };
            note(&format!(
                "{}: text: column {}{header}; {}",
                file.display(),
                say::short(column, 80),
                say::many(found.texts.len(), "row")
            ));
        }
        Ok(found.texts)
    }
}

/// Text columns of the table that a model was trained with; none if the record is damaged, which is
/// told where the table is read.
pub(super) fn trained_columns(model: Option<&str>) -> Vec<String> {
    let reading = trained_reading(model).ok().flatten();
    reading.map_or_else(Vec::new, |reading| text_names(&reading))
}

/// How the table was read that a model was trained with.
///
/// # Errors
/// If the record of the run is damaged.
fn trained_reading(model: Option<&str>) -> Result<Option<Reading>, Error> {
    match model.map(models::called) {
        Some(Ok(models::ModelRef::Folder(run))) => recorded_reading(&run),
        _ => Ok(None),
    }
}

/// Where the texts of a verb come from.
#[derive(Default)]
pub struct TextSource<'a> {
    /// Texts of the command line; without them and a file, standard input is read.
    pub given: &'a [String],
    /// Flags for a file; `None` if the verb has none.
    pub file: Option<&'a FileFlags>,
    /// Value of `--model`.
    pub model: Option<&'a str>,
    /// Whether a text is a pair, with a tab in it.
    pub pairs: bool,
    /// Name of the flag for a file, without hyphens.
    pub flag: &'static str,
}

impl<'a> TextSource<'a> {
    /// Texts of the command line, of the file that `--file` names, or of standard input.
    pub fn of(given: &'a [String], file: &'a FileFlags, model: Option<&'a str>) -> TextSource<'a> {
        TextSource { given, file: Some(file), model, pairs: false, flag: "file" }
    }
}

impl TextSource<'_> {
    /// Checks the texts of the command line.
    ///
    /// # Errors
    /// If there are texts and a file, or if a text is the name of a file.
    pub fn check(&self) -> Result<()> {
        let Some(flags) = self.file else { return file_names::not_files(self.given) };
        match (&flags.file, self.given) {
            (_, []) => Ok(()),
            (None, given) => {
                refuse_tables(given, self.model)?;
                file_names::not_files(given)
            }
            (Some(file), [text, ..]) => bail!(
                "got the text {:?} and --file {}; need one of them",
                say::short(text, 40),
                file.display()
            ),
        }
    }

    /// Opens the file or standard input.
    ///
    /// # Errors
    /// If the file cannot be read, or if lines that should be texts are rows of a table.
    pub fn open(&self) -> Result<TextStream> {
        let none = FileFlags::default();
        let FileFlags { file, lines, table } = self.file.unwrap_or(&none);
        if let Some(file) = file
            && !lines
            && (table.is_given() || is_table_name(file))
        {
            let rows = table.read(file, self.model)?.into_iter();
            return Ok(TextStream { texts: Texts::Rows(rows), line: 0 });
        }
        if *lines && table.is_given() {
            bail!("--lines takes each line as a text, and --text or --no-header a table: give one");
        }
        let (reader, name): (Box<dyn Read>, &Path) = match file {
            Some(path) if path != Path::new("-") => (open(path)?, path),
            _ => (Box::new(stdin().lock()), Path::new(STANDARD_INPUT)),
        };
        let mut reader = BufReader::with_capacity(BUFFER, reader);
        let first = reader.fill_buf().map_err(Error::io(name))?;
        refuse_binary(first, name)?;
        if !lines {
            let known = trained_reading(self.model).unwrap_or_else(|error| {
                note(&error.to_string());
                None
            });
            let known = known.as_ref().map(text_names).unwrap_or_default();
            if let Some(found) = looks_like_table(first, &known, self.pairs) {
                return Err(self.refused(name, file.as_deref(), &found));
            }
        }
        Ok(TextStream { texts: Texts::Lines(Lines::new(reader, name)), line: 0 })
    }

    /// Error for rows of a table that would be taken for texts, with the command for a column.
    fn refused(&self, name: &Path, file: Option<&Path>, found: &LooksLikeTable) -> anyhow::Error {
        let LooksLikeTable { first_line, header, text } = found;
        let columns = match header.is_empty() {
            true => String::new(),
            false => format!(", with the columns {}", say::list_in_line(header)),
        };
        let looks = format!(
            "{}: looks like a table{columns}, not like a text on each line; its first line is \
             {first_line:?}",
            name.display()
        );
        if self.file.is_none() {
            return anyhow::anyhow!("{looks}. Pass one text on each line");
        }
        let (command, text) = (command_without(&[]), quoted(text));
        let flag = self.flag;
        let (read, from) = match (file, standard_input()) {
            (Some(_), _) => (String::new(), String::new()),
            (None, Some(path)) => {
                (format!(" --{flag} -"), format!(" < {}", quoted(path.display())))
            }
            (None, None) => (format!(" --{flag} -"), " < FILE".to_string()),
        };
        anyhow::anyhow!(
            "{looks}\nTo process a column of it: {command}{read} --text {text}{from}\nIf each line \
             is a text: {command} --lines{from}"
        )
    }
}

/// Opens a file of lines; one whose name ends in `.gz` is decompressed.
pub(super) fn open(path: &Path) -> Result<Box<dyn Read>, Error> {
    Ok(Box::new(regard_tasks::data::stream::open(path)?))
}

/// Texts that are processed one after the other.
pub struct TextStream {
    texts: Texts,
    line: u64,
}

enum Texts {
    Lines(Lines<BufReader<Box<dyn Read>>>),
    Rows(std::vec::IntoIter<FileText>),
}

impl TextStream {
    /// Takes each line of a reader, whose name errors give, as a text.
    pub fn of_lines(reader: Box<dyn Read>, name: &str) -> TextStream {
        let reader = BufReader::with_capacity(BUFFER, reader);
        TextStream { texts: Texts::Lines(Lines::new(reader, name)), line: 0 }
    }

    /// Line of the last text, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Whether the next text may have to be waited for: half a line does not count.
    pub fn is_waiting(&self) -> bool {
        match &self.texts {
            Texts::Lines(lines) => !lines.reader().buffer().contains(&b'\n'),
            Texts::Rows(rows) => rows.len() == 0,
        }
    }

    /// Waits for a text, then takes those that are already there, up to `most`, or until they have
    /// `bytes`. Returns each with its line; none at the end.
    ///
    /// # Errors
    /// If no further text can be read. Those before it were returned: only a text that has to be
    /// waited for, the first one of a window, needs the reader.
    pub fn window(&mut self, most: usize, bytes: usize) -> Result<Vec<Line>, Error> {
        let (mut texts, mut size) = (vec![], 0);
        while let Some(text) = self.next() {
            let text = match text {
                // An error of this line only: the next one may be valid.
                Ok(_) | Err(Error::File { .. }) => text,
                Err(problem) => return Err(problem),
            };
            size += text.as_ref().map_or(0, String::len);
            texts.push((self.line(), text));
            if self.is_waiting() || texts.len() >= most || size >= bytes {
                break;
            }
        }
        Ok(texts)
    }
}

/// The line of a text, and the text, or why it cannot be read.
pub type Line = (u64, Result<String, Error>);

impl Iterator for TextStream {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Result<String, Error>> {
        match &mut self.texts {
            Texts::Lines(lines) => {
                let text = lines.next();
                self.line = lines.number();
                text
            }
            Texts::Rows(rows) => rows.next().map(|FileText { line, text }| {
                self.line = line;
                Ok(text)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Gives the parts one at a time, then an error; `None` is one that must not be asked for yet.
    struct Parts(Vec<Option<&'static str>>);

    impl Read for Parts {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            match self.0.is_empty() {
                true => Err(io::Error::other("the disk is gone")),
                false => {
                    let part = self.0.remove(0).expect("nothing is waited for");
                    to[..part.len()].copy_from_slice(part.as_bytes());
                    Ok(part.len())
                }
            }
        }
    }

    fn texts(found: Vec<Line>) -> Vec<String> {
        found.into_iter().map(|(_, text)| text.unwrap()).collect()
    }

    #[test]
    fn half_a_line_is_not_waited_for() {
        let parts = Parts(vec![Some("one\ntwo\nthr"), None]);
        let mut stream = TextStream::of_lines(Box::new(parts), "in");
        assert_eq!(texts(stream.window(100, 100).unwrap()), ["one", "two"]);
    }

    #[test]
    fn lines_before_an_error_are_returned_before_it() {
        let parts = Parts(vec![Some("one\ntwo\nthr"), Some("ee\nfour\n")]);
        let mut stream = TextStream::of_lines(Box::new(parts), "in");
        // A window that is not full, at the end of what can be read.
        assert_eq!(texts(stream.window(100, 100).unwrap()), ["one", "two"]);
        assert_eq!(texts(stream.window(100, 100).unwrap()), ["three", "four"]);
        let error = stream.window(100, 100).unwrap_err().to_string();
        assert!(error.contains("the disk is gone"), "{error}");
    }
}
