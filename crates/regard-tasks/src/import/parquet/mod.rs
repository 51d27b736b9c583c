//! Tables in Parquet files.
//!
//! The crate `parquet` decodes the values of pages. What it takes from a file before that is checked
//! here, because it trusts the sizes in it: `footer.rs` checks the schema, `pages.rs` reads the
//! headers of pages, and `codec.rs` decompresses to the size that was checked. A panic of a decoder
//! is an error of the file.

mod codec;
mod footer;
mod pages;
mod quiet;
#[cfg(test)]
mod tests;
mod thrift;
mod values;

use super::budget::{Budget, of_row, of_text, of_value};
use super::findings::{Findings, Place};
use super::table::objects::{MOST_CELLS, MOST_KEYS};
use super::table::{Row, Table};
use super::values::{cell, not_text};
use crate::say;
use ::parquet::basic::{ConvertedType, Repetition};
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use ::parquet::schema::types::SchemaDescriptor;
use bytes::Bytes;
use pages::Pages;
use quiet::quietly;
use regard_models::{Error, Result};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{BufRead, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Largest file in bytes: it is held in memory as a whole.
const LARGEST: u64 = 1 << 30;
/// Cells of a table of any size, and cells per byte of the file. Equal values take a few bytes in
/// the file however many they are, and each takes memory here; a row takes that of three cells.
const CELLS: usize = 1 << 20;
const CELLS_PER_BYTE: usize = 20;
const CELLS_OF_ROW: usize = 3;
/// Bytes of a file of any size, and per byte of the file: of its pages when they are decompressed,
/// and of its long texts. A text that a dictionary has once may be in every row.
const BYTES: usize = 1 << 24;
const BYTES_PER_BYTE: usize = 100;
/// Bytes of a cell that its place in memory takes anyway.
const SHORT: usize = 32;

/// Something that was read, or what is wrong with the file.
type Read<T> = std::result::Result<T, String>;

fn failed(what: &str, message: String) -> String {
    format!("{what} {message}")
}

/// Reads a table. A file that cannot be read is noted.
///
/// # Errors
/// If the reader fails.
pub(super) fn read(
    reader: impl BufRead,
    path: &Path,
    budget: Budget,
    findings: &mut Findings,
) -> Result<Table> {
    let mut file = vec![];
    reader.take(LARGEST + 1).read_to_end(&mut file).map_err(Error::io(path))?;
    if file.len() as u64 > LARGEST {
        let message = format!("has more than {LARGEST} bytes; write it as several files, or CSV");
        return Err(Error::file(path, message));
    }
    let table = quietly(|| File::open(file.into(), budget)?.table())
        .unwrap_or_else(|_| Err("is damaged: its values cannot be decoded".into()));
    match table {
        Ok((keys, rows)) => Ok(Table { keys: Some(keys), rows, ..Table::empty(path) }),
        Err(message) => {
            findings.error("Parquet", Place::whole(path), message);
            Ok(Table::empty(path))
        }
    }
}

/// How the cells of a column are made.
enum Source {
    /// From a column of the file.
    One(usize),
    /// From a group of columns with these names: a JSON object.
    Object(Vec<(String, usize)>),
    /// Not read: lists, bytes and groups of groups.
    Unread(&'static str),
}

/// A file whose footer was read.
struct File {
    bytes: Bytes,
    /// Where the footer begins.
    end: usize,
    about: ParquetMetaData,
    /// Bytes that pages may still have.
    pages: Arc<AtomicUsize>,
    /// Bytes that long texts may still have.
    texts: Cell<usize>,
    /// Memory that the rows may still take.
    budget: Cell<Budget>,
}

impl File {
    fn open(bytes: Bytes, budget: Budget) -> Read<File> {
        let (end, found) = footer::find(&bytes)?;
        let about = ParquetMetaDataReader::decode_metadata(found)
            .map_err(|error| format!("is damaged: in its footer, {error}"))?;
        let most = BYTES.saturating_add(bytes.len().saturating_mul(BYTES_PER_BYTE));
        let pages = Arc::new(AtomicUsize::new(most));
        let (texts, budget) = (Cell::new(most), Cell::new(budget));
        Ok(File { bytes, end, about, pages, texts, budget })
    }

    /// Names of the columns, and the rows.
    fn table(&self) -> Read<(Vec<String>, VecDeque<Row>)> {
        let schema = self.about.file_metadata().schema_descr();
        let fields = schema.root_schema().get_fields();
        let names: Vec<String> = fields.iter().map(|field| field.name().to_string()).collect();
        if names.len() > MOST_KEYS {
            return Err(format!("has {} columns, need at most {MOST_KEYS}", names.len()));
        }
        let sources = sources(schema);
        if sources.iter().all(|source| matches!(source, Source::Unread(_))) {
            return Err("has no column of texts or numbers".into());
        }
        self.check_cells(names.len())?;
        let mut rows: VecDeque<Row> = VecDeque::new();
        for group in self.about.row_groups() {
            let before = rows.len();
            for (at, source) in sources.iter().enumerate() {
                // A row is made when its first value is there, and not because the footer says so.
                let mut put = |row: usize, value: Value| {
                    if before + row == rows.len() {
                        self.take(of_row(&[]))?;
                        let cells = vec![String::new(); names.len()];
                        rows.push_back(Row::new(rows.len() as u64 + 1, cells));
                    }
                    let text = cell(&value);
                    let other = not_text(&value).map(|kind| (at, kind));
                    self.count(&text)?;
                    self.take(of_text(&text) + size_of_val(other.as_slice()))?;
                    let row = &mut rows[before + row];
                    row.cells[at] = text;
                    row.other.extend(other);
                    Ok(())
                };
                let read = match source {
                    Source::One(leaf) => self.column(group, *leaf, &mut put),
                    Source::Object(leaves) => self.objects(group, leaves, &mut put),
                    Source::Unread(_) => continue,
                };
                read.map_err(|message| format!("column {:?}: {message}", names[at]))?;
            }
            for (at, source) in sources.iter().enumerate() {
                let Source::Unread(kind) = source else { continue };
                for row in rows.range_mut(before..) {
                    row.cells[at] = "…".into();
                    row.other.push((at, kind));
                    self.take(of_text(&row.cells[at]) + size_of_val(&(at, kind)))?;
                }
            }
        }
        Ok((names, rows))
    }

    /// Counts the memory of a text.
    fn count(&self, text: &str) -> Read<()> {
        let left = self.texts.get().checked_sub(text.len().saturating_sub(SHORT));
        let message =
            "its texts have more bytes than a file of this size may have; write it as CSV";
        self.texts.set(left.ok_or(message)?);
        Ok(())
    }

    /// Takes memory of rows.
    fn take(&self, bytes: usize) -> Read<()> {
        let mut budget = self.budget.get();
        let is_enough = budget.take(bytes);
        self.budget.set(budget);
        if is_enough { Ok(()) } else { Err(budget.message()) }
    }

    /// Checks the number of cells before anything is decoded.
    fn check_cells(&self, width: usize) -> Read<()> {
        let schema = self.about.file_metadata().schema_descr();
        let mut rows = 0_usize;
        for group in self.about.row_groups() {
            let count = usize::try_from(group.num_rows())
                .map_err(|_| format!("is damaged: a row group has {} rows", group.num_rows()))?;
            rows = rows.saturating_add(count);
        }
        let said = self.about.file_metadata().num_rows();
        if i64::try_from(rows) != Ok(said) {
            return Err(format!("is damaged: it has {rows} rows, its footer says {said}"));
        }
        let columns = width.max(schema.num_columns());
        let told = format!("{} rows with {} columns", say::count(rows), say::count(columns));
        if rows.saturating_mul(columns) > MOST_CELLS {
            return Err(format!(
                "{told} are more than {MOST_CELLS} cells: keep the columns that are needed"
            ));
        }
        let most = CELLS.saturating_add(self.bytes.len().saturating_mul(CELLS_PER_BYTE));
        if rows.saturating_mul(columns + CELLS_OF_ROW) > most {
            return Err(format!(
                "{told} are more than a file of this size may have; write it as CSV"
            ));
        }
        Ok(())
    }

    /// Reads a column of a row group.
    fn column(
        &self,
        group: &RowGroupMetaData,
        leaf: usize,
        each: &mut dyn FnMut(usize, Value) -> Read<()>,
    ) -> Read<()> {
        let about = group.column(leaf);
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        if about.num_values() != group.num_rows() {
            return Err(format!("it has {} values in {rows} rows", about.num_values()));
        }
        if about.file_path().is_some() {
            return Err("it is in another file".into());
        }
        let data = about.data_page_offset();
        let start = about.dictionary_page_offset().filter(|at| (1..data).contains(at));
        let start = usize::try_from(start.unwrap_or(data)).unwrap_or(usize::MAX);
        let length = usize::try_from(about.compressed_size()).unwrap_or(usize::MAX);
        let end = start.saturating_add(length);
        if end > self.end {
            return Err(format!("it is cut off: it ends at byte {end} of {}", self.end));
        }
        let pages = Pages {
            file: self.bytes.clone(),
            rest: start..end,
            codec: about.compression(),
            column: about.column_descr_ptr(),
            values: rows,
            left: self.pages.clone(),
        };
        values::read(pages, rows, each)
    }

    /// Reads a group of columns as JSON objects.
    fn objects(
        &self,
        group: &RowGroupMetaData,
        leaves: &[(String, usize)],
        each: &mut dyn FnMut(usize, Value) -> Read<()>,
    ) -> Read<()> {
        let before = self.budget.get();
        let mut columns: Vec<std::vec::IntoIter<Value>> = vec![];
        for (_, leaf) in leaves {
            let mut values = vec![];
            self.column(group, *leaf, &mut |_, value| {
                self.count(value.as_str().unwrap_or_default())?;
                self.take(of_value(&value))?;
                values.push(value);
                Ok(())
            })?;
            columns.push(values.into_iter());
        }
        // The objects have the values from here on.
        self.budget.set(before);
        let rows = columns.first().map_or(0, |column| column.len());
        (0..rows).try_for_each(|row| {
            let values = leaves.iter().zip(&mut columns);
            let pairs =
                values.filter_map(|((name, _), column)| Some((name.clone(), column.next()?)));
            each(row, Value::Object(pairs.collect::<Map<String, Value>>()))
        })
    }
}

/// How the cells of each column of the table are made.
fn sources(schema: &SchemaDescriptor) -> Vec<Source> {
    let fields = schema.root_schema().get_fields();
    let mut leaves: Vec<Vec<usize>> = vec![vec![]; fields.len()];
    (0..schema.num_columns()).for_each(|leaf| leaves[schema.get_column_root_idx(leaf)].push(leaf));
    let of = |(field, leaves): (&Arc<::parquet::schema::types::Type>, Vec<usize>)| {
        let about = field.get_basic_info();
        let columns = || leaves.iter().map(|leaf| schema.column(*leaf));
        let is_flat = columns().all(|column| column.max_rep_level() == 0);
        match &leaves[..] {
            [leaf] if field.is_primitive() && is_flat => {
                match values::is_read(&schema.column(*leaf)) {
                    true => Source::One(*leaf),
                    false => Source::Unread("binary"),
                }
            }
            _ if about.converted_type() == ConvertedType::LIST => Source::Unread("a list"),
            _ if about.has_repetition() && about.repetition() == Repetition::REPEATED => {
                Source::Unread("a list")
            }
            [_, ..]
                if is_flat
                    && columns().all(|column| {
                        column.path().parts().len() == 2 && values::is_read(&column)
                    }) =>
            {
                let name = |leaf: &usize| (schema.column(*leaf).name().to_string(), *leaf);
                Source::Object(leaves.iter().map(name).collect())
            }
            _ => Source::Unread("an object"),
        }
    };
    fields.iter().zip(leaves).map(of).collect()
}
