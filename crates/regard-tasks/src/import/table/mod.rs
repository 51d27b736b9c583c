//! Tables of the user: CSV, TSV, JSON lines, a JSON array, Parquet. Every row is read, and every
//! problem is noted with its line or row.

pub(super) mod characters;
mod columns;
pub(super) mod objects;
mod swallowed;

use super::budget::Budget;
use super::findings::{Findings, Place};
use super::glimpse::{comma, foreign, glimpse, named};
use super::values::values_of;
use crate::data::columns::Separator;
use crate::data::stream;
use crate::data::twins::is_copy;
use crate::say;
use regard_models::{Error, Result};
use std::collections::VecDeque;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Ends of file names that are tables.
pub(crate) const ENDS: [&str; 8] = ["csv", "tsv", "tab", "txt", "jsonl", "ndjson", "json", PARQUET];
/// End of the names of Parquet files. They are known without the feature too, and refused with what
/// to do.
pub(crate) const PARQUET: &str = "parquet";

/// Kinds of values that are neither texts nor labels.
const NESTED: [&str; 3] = ["a list", "an object", "binary"];

/// A table in memory.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub path: PathBuf,
    /// Names of the columns: the keys of JSON objects, or those of a Parquet file. `None` for CSV and
    /// TSV, whose first row may be a header.
    pub keys: Option<Vec<String>>,
    /// Whether the columns have an order: keys of JSON objects have none.
    pub has_order: bool,
    pub rows: VecDeque<Row>,
    /// Separator of a CSV file.
    pub separator: Option<char>,
}

/// How a table is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'a> {
    /// Type, named as the end of a file name.
    pub kind: &'a str,
    /// Separator of the training file, which is used if the first line has it.
    pub like: Option<char>,
    /// Memory that the rows may take.
    pub budget: Budget,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Line on which the row begins, from 1; the number of the row in a Parquet file.
    pub line: u64,
    pub cells: Vec<String>,
    /// Columns whose value is no text, with the kind of the value. Labels may be such, texts
    /// may not.
    pub other: Vec<(usize, &'static str)>,
    /// Columns whose key a JSON object lacks, as bits.
    absent: Vec<u64>,
}

impl Row {
    /// Returns a row of texts.
    pub fn new(line: u64, cells: Vec<String>) -> Row {
        Row { line, cells, other: vec![], absent: vec![] }
    }

    /// Whether the object lacks all of these columns.
    pub fn lacks(&self, columns: &[usize]) -> bool {
        let bit =
            |at: &usize| self.absent.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
        !columns.is_empty() && columns.iter().all(bit)
    }

    /// Message about the first of these columns that is no text, if there is one. `names` are the
    /// names of all columns.
    pub fn not_text(&self, columns: &[usize], names: Option<&[String]>) -> Option<String> {
        let (column, kind) = self.other.iter().find(|(column, _)| columns.contains(column))?;
        let name = names.and_then(|names| names.get(*column)).map_or("", String::as_str);
        let cell = say::short(&self.cells[*column], 40);
        Some(format!("{name:?} is {kind}, {cell}; need a text, as a string"))
    }
}

/// Returns the end of a file's name in lower case, without `.gz`.
pub(crate) fn end(path: &Path) -> String {
    let name = path.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or("", |(_, end)| end).to_string()
}

/// Whether a file name is that of a table.
pub(crate) fn is_table(path: &Path) -> bool {
    ENDS.contains(&end(path).as_str())
}

/// Name of a separator in messages.
fn mark_name(separator: char) -> String {
    match separator {
        ',' => "comma".to_string(),
        ';' => "semicolon".to_string(),
        '\t' => "tab".to_string(),
        other => format!("{other:?}"),
    }
}

/// Notes that a CSV file is read with a separator that it does not name and training did not use.
fn note_rare(between: Separator, like: Option<char>, path: &Path, findings: &mut Findings) {
    if let Separator::Other(mark) = between
        && like != Some(mark)
    {
        let message = format!("its columns are read as separated by a {}", mark_name(mark));
        findings.warn("separator", Place::whole(path), message);
    }
}

impl Table {
    /// Reads a table, whose type is the end of its name. Rows that cannot be read are noted in
    /// `findings` and left out. `like` is the separator of the training file.
    ///
    /// # Errors
    /// If the file cannot be opened or is of an unknown type.
    pub fn read(path: &Path, like: Option<char>, findings: &mut Findings) -> Result<Table> {
        let form = Form { kind: &end(path), like, budget: Budget::default() };
        Table::of(form, stream::open(path)?, path, findings)
    }

    /// Reads a table from a reader.
    ///
    /// # Errors
    /// As [`Table::read`].
    pub fn of(
        form: Form,
        reader: impl BufRead,
        path: &Path,
        findings: &mut Findings,
    ) -> Result<Table> {
        let Form { kind, like, mut budget } = form;
        let (first, reader) = glimpse(reader, path)?;
        let is_foreign = !cfg!(feature = "parquet") || kind != PARQUET;
        if let Some(message) = foreign(&first).filter(|_| is_foreign) {
            findings.error("encoding", Place::whole(path), message);
            return Ok(Table::empty(path));
        }
        let table = match kind {
            "csv" => {
                let between = match named(&first) {
                    None => {
                        let between = comma(&first, like);
                        note_rare(between, like, path, findings);
                        between
                    }
                    Some(Ok(between)) => between,
                    Some(Err(found)) => {
                        let message = format!(
                            "names the separator {:?}; need one character, such as sep=;",
                            say::short(&found, 40)
                        );
                        findings.error("separator", Place::line(path, 1), message);
                        return Ok(Table::empty(path));
                    }
                };
                let table = Table::columns((&first, reader), path, between, &mut budget, findings);
                let separator = match between {
                    Separator::Semicolon => ';',
                    Separator::Other(other) => other,
                    _ => ',',
                };
                swallowed::check(&table.rows, separator, path, findings);
                Table { separator: Some(separator), ..table }
            }
            "tsv" | "tab" | "txt" => {
                let tabs = Separator::Tab;
                let table = Table::columns((&first, reader), path, tabs, &mut budget, findings);
                characters::check_quotes(&table.rows, path, findings);
                table
            }
            "jsonl" | "ndjson" | "json" => {
                let values = values_of((kind, &first), reader, path, &mut budget, findings)?;
                Table::of_values(path, values, findings)
            }
            #[cfg(feature = "parquet")]
            PARQUET => super::parquet::read(reader, path, budget, findings)?,
            #[cfg(not(feature = "parquet"))]
            PARQUET => return Err(Error::file(path, "is not a Parquet file")),
            _ => {
                let message = format!("is not a table: its name must end in .{}", ENDS.join(", ."));
                return Err(Error::file(path, message));
            }
        };
        characters::check_encoding(&table.rows, path, findings);
        if table.rows.is_empty() && !findings.has_errors() {
            findings.error("empty file", Place::whole(path), "has no rows");
        }
        Ok(table)
    }

    pub(super) fn empty(path: &Path) -> Table {
        let rows = VecDeque::new();
        Table { path: path.into(), keys: None, has_order: true, rows, separator: None }
    }

    /// Removes rows with a list or an object in one of the chosen columns, which are noted.
    pub fn take_nested(&mut self, columns: &[usize], findings: &mut Findings) {
        let (keys, path) = (self.keys.clone().unwrap_or_default(), self.path.clone());
        self.rows.retain(|row| {
            let is_nested =
                |(column, kind): &&(usize, &str)| columns.contains(column) && NESTED.contains(kind);
            let Some((column, _)) = row.other.iter().find(is_nested) else { return true };
            let message = format!(
                "{:?} is {}, need a text or a number",
                keys[*column],
                say::short(&row.cells[*column], 60)
            );
            findings.row("list", Place::line(&path, row.line), message);
            false
        });
    }

    /// Returns the first rows, from which columns are chosen.
    pub fn sample(&self, most: usize) -> Vec<&[String]> {
        let rows = self.rows.iter().take(most).map(|row| &row.cells[..]);
        match &self.keys {
            Some(keys) => std::iter::once(&keys[..]).chain(rows).collect(),
            None => rows.collect(),
        }
    }

    /// Removes the first row, a header, and rows that repeat it or whose number of columns differs
    /// from it, which are noted.
    pub fn take_header(&mut self, is_header: bool, findings: &mut Findings) {
        if self.keys.is_some() {
            return;
        }
        let Some(width) = self.rows.front().map(|row| row.cells.len()) else { return };
        let header = is_header.then(|| self.rows.pop_front()).flatten();
        let path = self.path.clone();
        let mark = self.separator.map(mark_name);
        self.rows.retain(|row| {
            let found = row.cells.len();
            // A text alone may be any word.
            if width > 1 && header.as_ref().is_some_and(|header| is_copy(&row.cells, &header.cells))
            {
                let message = "is the header again, as in files that were joined: remove the line";
                findings.row("repeated header", Place::line(&path, row.line), message);
                return false;
            }
            if found == width {
                return true;
            }
            let why = match (found > width, &mark) {
                (true, Some(mark)) => format!("; a text with a {mark} in it needs quotation marks"),
                (true, None) => "; a text must not have a tab in it".to_string(),
                (false, _) => String::new(),
            };
            let first = if is_header { "the header" } else { "the first row" };
            let found = say::many(found, "column");
            let message = format!("has {found}, {first} has {width}{why}");
            findings.row("number of columns", Place::line(&path, row.line), message);
            false
        });
    }
}

#[cfg(test)]
mod tests;
