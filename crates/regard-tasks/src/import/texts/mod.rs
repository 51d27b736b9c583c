//! Texts of a file: its lines, or the text columns of its table, read as training reads them.
//!
//! | name ends in | texts |
//! |---|---|
//! | `.csv`, `.tsv`, `.tab`, `.jsonl`, `.ndjson`, `.json`, `.parquet` | text columns |
//! | anything else | lines; with chosen columns, a table as its first line shows |
//!
//! and each with `.gz` after it.

mod columns;
mod sniff;
#[cfg(test)]
mod tests;

pub use sniff::{LooksLikeTable, looks_like_table};

use super::budget::Budget;
use super::findings::{Finding, Findings, Severity, numbered};
use super::glimpse::first_line;
use super::reading::{Column, Reading, TEXT_ROLES, TrainedImport};
use super::roles::first_row;
use super::table::characters::DAMAGED;
use super::table::{Form, PARQUET, Table, end};
use crate::data::sets::hex;
use crate::data::stream::Lines;
use crate::say;
use columns::{TextColumns, text_columns_of};
use flate2::bufread::MultiGzDecoder;
use regard_models::{Error, Result};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

/// Ends of file names that are tables even if no column is chosen.
const TABLES: [&str; 7] = ["csv", "tsv", "tab", "jsonl", "ndjson", "json", PARQUET];

/// Texts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTexts {
    /// Texts in the order of the file.
    pub texts: Vec<FileText>,
    /// Names of the columns, or their numbers from 1 if the first row is not a header, separated
    /// by ` + `; `None` if the texts are lines.
    pub column: Option<String>,
    /// Whether the first row of a table names its columns.
    pub has_header: bool,
    /// Number of empty lines or cells.
    pub empty: usize,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

/// A text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// Line of the file on which it begins, or its row begins, from 1; the number of the row in a
    /// Parquet file.
    pub line: u64,
    /// The text, trimmed.
    pub text: String,
}

/// Which texts of a file are wanted.
#[derive(Clone, Debug, Default)]
pub struct TextChoice<'a> {
    /// Names of columns, or numbers from 1, separated by commas.
    pub columns: Option<&'a str>,
    /// Flag that chooses them, without hyphens, for messages.
    pub flag: &'static str,
    /// Whether the first row of a table names its columns; `None` to detect it.
    pub header: Option<bool>,
    /// How the table was read that a model was trained with: its text columns are taken if nothing
    /// is chosen and the table has them.
    pub like: Option<Reading>,
    /// Whether empty lines and cells are kept.
    pub keep_empty: bool,
}

/// Whether the name of a file is that of a table.
pub fn is_table_name(path: &Path) -> bool {
    TABLES.contains(&end(path).as_str())
}

/// Returns how a run read the table that it was trained with; `None` if it was trained with no table
/// of texts. The folder may be that of its model.
///
/// # Errors
/// If the record of the run is damaged, or of an earlier version.
pub fn recorded_reading(run: &Path) -> Result<Option<Reading>> {
    let reading = TrainedImport::of_run(run)?.map(|trained| trained.reading);
    // The columns of words in files of taggers are none of texts.
    let is_table = |reading: &Reading| !["conll", "conllu"].contains(&reading.format.as_str());
    Ok(reading.filter(|reading| is_table(reading) && !text_roles(reading).is_empty()))
}

/// Returns the names of the text columns of the training table; empty if it had no header.
pub fn text_names(reading: &Reading) -> Vec<String> {
    let names = text_roles(reading).iter().map(|column| column.name.clone());
    names.collect::<Option<_>>().unwrap_or_default()
}

fn text_roles(reading: &Reading) -> &[Column] {
    let columns = TEXT_ROLES.into_iter().find_map(|role| reading.columns.get(role));
    columns.map_or(&[], Vec::as_slice)
}

impl FileTexts {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read, is not UTF-8 or has no texts; if one of its rows has a problem;
    /// if it is a table, and which columns are meant is not clear.
    pub fn open(path: impl AsRef<Path>, choice: &TextChoice) -> Result<FileTexts> {
        let path = path.as_ref();
        FileTexts::read(File::open(path).map_err(Error::io(path))?, path, choice)
    }

    /// Reads a file from any reader; `name` is its name in errors, and its end is its format.
    ///
    /// # Errors
    /// As [`FileTexts::open`].
    pub fn read(from: impl Read, name: impl AsRef<Path>, choice: &TextChoice) -> Result<FileTexts> {
        let name = name.as_ref();
        // Hashed while it is read, so that the hash is of these texts even if the file changes.
        let digest = Rc::new(RefCell::new(Sha256::new()));
        let hashed = BufReader::new(Hashed { from, digest: digest.clone() });
        let is_zipped = name.to_string_lossy().to_lowercase().ends_with(".gz");
        let mut reader: Box<dyn BufRead + '_> = match is_zipped {
            true => Box::new(BufReader::new(MultiGzDecoder::new(hashed))),
            false => Box::new(hashed),
        };
        let mut found = FileTexts::default();
        let kind = match end(name) {
            end if TABLES.contains(&end.as_str()) => end,
            _ if choice.columns.is_some() || choice.header.is_some() => {
                let (first, again) = first_line(reader, name)?;
                reader = Box::new(again);
                sniff::kind(&first).to_string()
            }
            _ => String::new(),
        };
        if kind.is_empty() {
            found.lines(&mut Lines::new(&mut reader, name), choice)?;
        } else {
            let mut findings = Findings::new(false);
            let like = choice.like.as_ref().and_then(|reading| reading.separator);
            let form = Form { kind: &kind, like, budget: Budget::default() };
            let table = Table::of(form, &mut reader, name, &mut findings)?;
            found.of_table(table, choice, findings)?;
        }
        drop(reader);
        found.sha256 = hex(&digest.borrow().clone().finalize());
        found.not_empty(name)
    }

    fn not_empty(self, name: &Path) -> Result<FileTexts> {
        match self.texts.is_empty() {
            true => Err(Error::file(name, "has no texts, need at least one line or row")),
            false => Ok(self),
        }
    }

    fn push(&mut self, line: u64, text: &str, choice: &TextChoice) {
        let text = text.trim();
        self.empty += usize::from(text.is_empty());
        if !text.is_empty() || choice.keep_empty {
            self.texts.push(FileText { line, text: text.to_string() });
        }
    }

    fn lines(&mut self, lines: &mut Lines<impl BufRead>, choice: &TextChoice) -> Result<()> {
        while let Some(text) = lines.next().transpose()? {
            self.push(lines.number(), &text, choice);
        }
        Ok(())
    }

    fn of_table(
        &mut self,
        mut table: Table,
        choice: &TextChoice,
        mut findings: Findings,
    ) -> Result<()> {
        let path = table.path.clone();
        refuse(&path, &findings)?;
        if table.rows.is_empty() {
            return Ok(());
        }
        let TextColumns { at, has_header } =
            text_columns_of(&table, choice).map_err(|message| Error::file(&path, message))?;
        let first = first_row(&table).to_vec();
        let name = |at: &usize| match has_header {
            true => first[*at].trim().trim_start_matches('\u{feff}').to_string(),
            false => (at + 1).to_string(),
        };
        self.column = Some(at.iter().map(name).collect::<Vec<_>>().join(" + "));
        self.has_header = has_header;
        table.take_header(has_header, &mut findings);
        refuse(&path, &findings)?;
        for row in &table.rows {
            let line = row.line;
            if let Some(message) = row.not_text(&at, Some(&first)) {
                return Err(Error::file(&path, format!("{}: {message}", numbered(&path, line))));
            }
            let cells = at.iter().map(|at| row.cells[*at].trim()).filter(|cell| !cell.is_empty());
            let text = cells.collect::<Vec<_>>().join(" ");
            if row.lacks(&at) {
                let message = format!("{}: has no {:?}", numbered(&path, line), first[at[0]]);
                return Err(Error::file(&path, message));
            }
            self.push(line, &text, choice);
        }
        Ok(())
    }
}

/// Makes the first error of a table the error of the command.
fn refuse(path: &Path, findings: &Findings) -> Result<()> {
    let mut errors = findings.list().iter().filter(|each| each.severity == Severity::Error);
    let Some(first) = errors.next() else { return Ok(()) };
    if first.kind == "empty file" {
        return Ok(());
    }
    let line = first.line.map_or(String::new(), |line| format!("{}: ", numbered(path, line)));
    // A warning about the reading of the table may explain the error.
    let is_hint = |each: &&Finding| each.severity == Severity::Warning && each.kind != DAMAGED;
    let warned = findings.list().iter().find(is_hint);
    let hint = warned.map_or(String::new(), |each| format!("; {}", each.message));
    let more = match findings.count(Severity::Error) - 1 {
        0 => String::new(),
        more => format!(" (and {} more)", say::many(more, "problem")),
    };
    Err(Error::file(path, format!("{line}{}{hint}{more}", first.message)))
}

/// Reader that hashes what is read from it.
struct Hashed<R> {
    from: R,
    digest: Rc<RefCell<Sha256>>,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(to)?;
        self.digest.borrow_mut().update(&to[..read]);
        Ok(read)
    }
}
