//! Texts of a file: its lines, or the text columns of its table, read as training reads them.
//!
//! | name ends in | texts |
//! |---|---|
//! | `.csv`, `.tsv`, `.tab`, `.jsonl`, `.ndjson`, `.json`, `.parquet` | text columns |
//! | anything else | lines; with chosen columns, a table as its first line shows |
//!
//! and each with `.gz` after it.

mod sniff;
#[cfg(test)]
mod tests;

pub use sniff::{LooksLikeTable, looks_like_table};

use super::findings::{Findings, Severity, numbered};
use super::reading::{Column, Reading, TrainedImport};
use super::roles::first_row;
use super::table::{Form, PARQUET, Table, end};
use crate::data::choose::{self, ColumnSelection, Spelling, is_header, shown, text_columns};
use crate::data::sets::hex;
use crate::data::stream::Lines;
use crate::say;
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
/// Rows from which a header is recognised.
const SAMPLE: usize = 1000;

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
    /// Columns that are taken if nothing is chosen and the table has all of them, such as those
    /// that a model was trained with.
    pub like: Vec<String>,
    /// Whether empty lines and cells are kept.
    pub keep_empty: bool,
}

/// Whether the name of a file is that of a table.
pub fn is_table_name(path: &Path) -> bool {
    TABLES.contains(&end(path).as_str())
}

/// Names of the text columns of the table that a run was trained with, as its record says; empty
/// if it was trained with no table, or with one without a header.
pub fn recorded_columns(run: &Path) -> Vec<String> {
    let Some(reading) = recorded(run) else { return vec![] };
    let names = text_roles(&reading).map(|column| column.name.clone());
    names.collect::<Option<_>>().unwrap_or_default()
}

/// Numbers of these columns from 1, separated by commas, if the table had no header.
pub fn recorded_numbers(run: &Path) -> Option<String> {
    let reading = recorded(run).filter(|reading| reading.header == Some(false))?;
    let numbers = text_roles(&reading).map(|column| Some(column.number?.to_string()));
    let numbers = numbers.collect::<Option<Vec<_>>>()?;
    (!numbers.is_empty()).then(|| numbers.join(","))
}

fn recorded(run: &Path) -> Option<Reading> {
    let mut folders = [Some(run), run.parent()].into_iter().flatten();
    folders.find_map(|folder| Some(TrainedImport::of_run(folder).ok().flatten()?.reading))
}

fn text_roles(reading: &Reading) -> impl Iterator<Item = &Column> {
    let columns = ["text", "source"].into_iter().find_map(|role| reading.columns.get(role));
    columns.into_iter().flatten()
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
                sniff::kind(reader.fill_buf().map_err(Error::io(name))?).to_string()
            }
            _ => String::new(),
        };
        if kind.is_empty() {
            found.lines(&mut Lines::new(&mut reader, name), choice)?;
        } else {
            let mut findings = Findings::new(false);
            let form = Form { kind: &kind, like: None };
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
            // A row with line ends in quotation marks begins before the line on which it ends.
            let within: usize = row.cells.iter().map(|cell| cell.matches('\n').count()).sum();
            let line = match table.keys {
                Some(_) => row.line,
                None => row.line.saturating_sub(within as u64),
            };
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

/// Text columns of a table.
struct TextColumns {
    at: Vec<usize>,
    has_header: bool,
}

/// Chooses the text columns: those that were asked for, those of the training, or those with the
/// names of texts, as training does.
fn text_columns_of(table: &Table, choice: &TextChoice) -> Result<TextColumns, String> {
    let first = first_row(table);
    let is_object = table.keys.is_some();
    let given = if is_object { Some(true) } else { choice.header };
    let flag = choice.flag;
    if let Some(asked) = choice.columns {
        let selection = ColumnSelection {
            header: given.filter(|given| !given),
            spelling: Spelling::Flags,
            ..ColumnSelection::default()
        };
        let places = asked.split(',').map(|one| choose::place(flag, one, first, &selection));
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let by_name = places.iter().any(|(_, by_name)| *by_name);
        let has_header = given.unwrap_or_else(|| by_name || is_header(&table.sample(SAMPLE)));
        return Ok(TextColumns { at: places.into_iter().map(|(at, _)| at).collect(), has_header });
    }
    if given != Some(false) {
        let find =
            |name: &String| first.iter().position(|cell| choose::name(cell) == choose::name(name));
        let like: Option<Vec<usize>> = choice.like.iter().map(find).collect();
        if let Some(at) = like.filter(|like| !like.is_empty()) {
            return Ok(TextColumns { at, has_header: true });
        }
        let at = text_columns(first);
        // A text may be such a word too: then other rows have it in this column.
        let is_header = || table.rows.len() < 2 || is_header(&table.sample(SAMPLE));
        if !at.is_empty() && (given == Some(true) || is_header()) {
            return Ok(TextColumns { at, has_header: true });
        }
    }
    // Of the keys of an object, the only one that has texts.
    let texts: Vec<usize> = (0..first.len())
        .filter(|at| {
            let mut rows = table.rows.iter().take(SAMPLE);
            !is_object || rows.all(|row| row.other.iter().all(|(other, _)| other != at))
        })
        .collect();
    match texts[..] {
        [only] if first.len() == 1 || is_object => {
            Ok(TextColumns { at: vec![only], has_header: given == Some(true) })
        }
        _ => Err(format!(
            "cannot tell which column is the text: {}. Choose it: --{flag} NAME, or its number \
             from 1",
            shown(first)
        )),
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
    let warned = findings.list().iter().find(|each| each.severity == Severity::Warning);
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
