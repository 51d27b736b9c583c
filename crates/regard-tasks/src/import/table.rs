//! Tables of the user: CSV, TSV, JSON lines, a JSON array, Parquet. Every row is read, and every
//! problem is noted with its line or row.

use super::findings::{Findings, Place};
use super::glimpse::{comma, encoding_hint, foreign, glimpse, named};
use super::values::{cell, not_text, values_of};
use crate::data::columns::{Separator, row};
use crate::data::stream::{self, Lines};
use crate::say;
use regard_models::{Error, Result};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Line ends of a cell above which a quotation mark may be missing.
const LONG: usize = 100;
/// Most different keys of the objects of a table: each is a column of every row.
pub(super) const MOST_KEYS: usize = 1000;
/// Most cells of a table of objects: each takes memory even where an object lacks the key.
pub(super) const MOST_CELLS: usize = 1 << 25;
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
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Line on which the row ends, from 1; the number of the row in a Parquet file.
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

impl Table {
    /// Reads a table, whose type is the end of its name. Rows that cannot be read are noted in
    /// `findings` and left out. `like` is the separator of the training file.
    ///
    /// # Errors
    /// If the file cannot be opened or is of an unknown type.
    pub fn read(path: &Path, like: Option<char>, findings: &mut Findings) -> Result<Table> {
        let form = Form { kind: &end(path), like };
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
        let Form { kind, like } = form;
        let (first, reader) = glimpse(reader, path)?;
        let is_foreign = !cfg!(feature = "parquet") || kind != PARQUET;
        if let Some(message) = foreign(&first).filter(|_| is_foreign) {
            findings.error("encoding", Place::whole(path), message);
            return Ok(Table::empty(path));
        }
        let table = match kind {
            "csv" => {
                let between = match named(&first) {
                    None => comma(&first, like),
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
                let table = Table::columns((&first, reader), path, between, findings);
                let separator = match between {
                    Separator::Semicolon => ';',
                    Separator::Other(other) => other,
                    _ => ',',
                };
                Table { separator: Some(separator), ..table }
            }
            "tsv" | "tab" | "txt" => {
                Table::columns((&first, reader), path, Separator::Tab, findings)
            }
            "jsonl" | "ndjson" | "json" => {
                let values = values_of((kind, &first), reader, path, findings)?;
                Table::of_values(path, values, findings)
            }
            #[cfg(feature = "parquet")]
            PARQUET => super::parquet::read(reader, path, findings)?,
            #[cfg(not(feature = "parquet"))]
            PARQUET => return Err(Error::file(path, "is not a Parquet file")),
            _ => {
                let message = format!("is not a table: its name must end in .{}", ENDS.join(", ."));
                return Err(Error::file(path, message));
            }
        };
        if table.rows.is_empty() && !findings.has_errors() {
            findings.error("empty file", Place::whole(path), "has no rows");
        }
        Ok(table)
    }

    /// Reads columns; the first bytes of the reader tell the encoding of bad lines.
    fn columns(
        (first, reader): (&[u8], impl BufRead),
        path: &Path,
        between: Separator,
        findings: &mut Findings,
    ) -> Table {
        let mut lines = Lines::new(reader, path);
        if named(first).is_some() && between != Separator::Tab {
            let _ = lines.next();
        }
        let mut rows = VecDeque::new();
        let mut bad = 0;
        loop {
            let before = lines.number();
            match row(&mut lines, between) {
                Ok(Some(cells)) if cells.iter().any(|cell| cell.contains('\0')) => {
                    let place = Place::line(path, lines.number());
                    findings.row("encoding", place, "has a NUL byte: this is not a text file");
                }
                Ok(Some(cells)) => {
                    let line = lines.number();
                    let breaks = |cell: &String| cell.matches('\n').count();
                    let most = cells.iter().map(breaks).max().unwrap_or(0);
                    if most > LONG {
                        let message = format!(
                            "a text in quotation marks with {most} line ends is before this; if it \
                             is not one text, a quotation mark is missing"
                        );
                        findings.warn("quotation marks", Place::line(path, line), message);
                    }
                    rows.push_back(Row::new(line, cells));
                }
                Ok(None) => break,
                Err(error) => {
                    let text = error.to_string();
                    let encoding = text.contains("not UTF-8");
                    bad += usize::from(encoding);
                    let kind = if encoding { "encoding" } else { "quotation marks" };
                    let first = text.rsplit_once(" of line ").and_then(|(_, n)| n.parse().ok());
                    match first {
                        // Which of the lines are rows is unknown, so that none can be left out.
                        Some(first) => {
                            let count = 1 + lines.number().saturating_sub(first);
                            findings.reader_of_file(kind, path, &error, count);
                        }
                        None => findings.reader(kind, path, &error),
                    }
                    // An error of the reader itself repeats for ever.
                    if lines.number() == before {
                        break;
                    }
                }
            }
        }
        let is_foreign = |row: &&Row| row.cells.iter().any(|cell| !cell.is_ascii());
        if bad > 0 && rows.iter().filter(is_foreign).count() > bad {
            let message = "most lines are UTF-8 and these are not: correct them by hand";
            findings.warn("encoding", Place::whole(path), message);
        } else if bad > 0 {
            findings.warn("encoding", Place::whole(path), encoding_hint(first));
        }
        Table { rows, ..Table::empty(path) }
    }

    pub(super) fn empty(path: &Path) -> Table {
        let rows = VecDeque::new();
        Table { path: path.into(), keys: None, has_order: true, rows, separator: None }
    }

    /// Objects as rows: all their keys are the columns, and a key that an object lacks is an empty
    /// cell.
    fn of_values(path: &Path, values: Vec<(u64, Value)>, findings: &mut Findings) -> Table {
        let (mut keys, mut known): (Vec<String>, HashMap<String, usize>) = Default::default();
        let mut objects = vec![];
        for (line, value) in values {
            let place = Place::line(path, line);
            let Value::Object(object) = value else {
                findings.row("JSON", place, "is not a JSON object, such as {\"text\": …}");
                continue;
            };
            for key in object.keys().filter(|key| !known.contains_key(*key)).collect::<Vec<_>>() {
                known.insert(key.clone(), keys.len());
                keys.push(key.clone());
            }
            if keys.len() > MOST_KEYS {
                let message = format!("the objects have more than {MOST_KEYS} different keys");
                findings.error("JSON", place, message);
                break;
            }
            objects.push((line, object));
            if keys.len() * objects.len() > MOST_CELLS {
                let message = format!(
                    "{} objects with {} different keys are more than {MOST_CELLS} cells: keep the \
                     keys that are needed",
                    say::count(objects.len()),
                    say::count(keys.len())
                );
                findings.error("JSON", Place::whole(path), message);
                return Table::empty(path);
            }
        }
        let row = |(line, object): (u64, serde_json::Map<String, Value>)| {
            let mut row = Row::new(line, vec![String::new(); keys.len()]);
            for (key, value) in &object {
                // The object with one key too many is not read.
                let Some(at) = known.get(key) else { continue };
                row.cells[*at] = cell(value);
                row.other.extend(not_text(value).map(|kind| (*at, kind)));
            }
            if object.len() < keys.len() {
                row.absent = vec![0; keys.len().div_ceil(64)];
                for (at, key) in keys.iter().enumerate() {
                    row.absent[at / 64] |= u64::from(!object.contains_key(key)) << (at % 64);
                }
            }
            row
        };
        let rows = objects.into_iter().map(row).collect();
        Table { keys: Some(keys), has_order: false, rows, ..Table::empty(path) }
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

    /// Removes the first row, a header, and rows whose number of columns differs from it, which
    /// are noted.
    pub fn take_header(&mut self, is_header: bool, findings: &mut Findings) {
        if self.keys.is_some() {
            return;
        }
        let Some(width) = self.rows.front().map(|row| row.cells.len()) else { return };
        if is_header {
            self.rows.pop_front();
        }
        let path = self.path.clone();
        let comma = end(&path) == "csv";
        self.rows.retain(|row| {
            let found = row.cells.len();
            if found == width {
                return true;
            }
            let why = match (found > width, comma) {
                (true, true) => "; a text with a comma in it needs quotation marks",
                (true, false) => "; a text must not have a tab in it",
                (false, _) => "",
            };
            let first = if is_header { "the header" } else { "the first row" };
            let message = format!("has {found} columns, {first} has {width}{why}");
            findings.row("number of columns", Place::line(&path, row.line), message);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::scratch::with_file;

    fn read(name: &str, bytes: &[u8]) -> (Vec<(u64, Vec<String>)>, String) {
        with_file(name, bytes, |path| {
            let mut findings = Findings::new(false);
            let mut table = Table::read(path, None, &mut findings).unwrap();
            table.take_header(true, &mut findings);
            let rows = table.rows.into_iter().map(|row| (row.line, row.cells)).collect();
            (rows, findings.text())
        })
    }

    #[test]
    fn all_kinds_of_tables_hold_the_same_rows() {
        for (name, text) in [
            ("a.csv", "text,label\n\"a, b\",x\nc,y\n"),
            ("b.csv", "text;label\na, b;x\nc;y\n"),
            ("b1.csv", "sep=;\ntext;label\na, b;x\nc;y\n"),
            ("b2.csv", "\u{feff}SEP=|\r\ntext|label\r\na, b|x\r\nc|y\r\n"),
            ("b3.csv", "\"sep=,\"\ntext,label\n\"a, b\",x\nc,y\n"),
            ("b4.csv", "sep=\t\ntext\tlabel\n\"a, b\"\tx\nc\ty\n"),
            ("c.tsv", "text\tlabel\na, b\tx\nc\ty\n"),
            (
                "d.jsonl",
                "{\"text\": \"a, b\", \"label\": \"x\"}\n{\"label\": \"y\", \"text\": \"c\"}",
            ),
            (
                "e.json",
                "[{\"text\": \"a, b\", \"label\": \"x\"},\n{\"text\": \"c\", \"label\": \"y\"}]",
            ),
        ] {
            let (rows, told) = read(name, text.as_bytes());
            let cells: Vec<Vec<String>> = rows.into_iter().map(|(_, cells)| cells).collect();
            assert_eq!(cells, [["a, b", "x"], ["c", "y"]], "{name}");
            assert_eq!(told, "", "{name}");
        }
    }

    #[test]
    fn every_bad_row_is_noted_with_its_line_and_the_others_are_read() {
        let csv = b"text,label\nfine,x\ntoo,many,y\nbad \xff byte,x\nshort\n\"q\"uote,x\nlast,y\n";
        let (rows, told) = read("a.csv", csv);
        assert_eq!(rows.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 7]);
        for part in [
            "line 3: has 3 columns, the header has 2; a text with a comma",
            "line 4: not UTF-8 at byte 5",
            "line 5: has 1 columns",
            "line 6: got \"uote\" after a quotation mark",
            "may be WINDOWS-1252; convert it: iconv",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let (rows, told) =
            read("b.jsonl", b"{\"text\": \"a\", \"n\": 1}\n[1]\n{\"text\"\n{\"n\": 2}\n");
        assert_eq!(rows[0], (1, vec!["a".to_string(), "1".into()]));
        assert_eq!(rows[1], (4, vec![String::new(), "2".into()]), "a key may be missing");
        for part in ["line 2: is not a JSON object", "line 3: is not JSON"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    /// Rows that a stray quotation mark hides are never left out as one row.
    #[test]
    fn a_missing_quotation_mark_is_an_error_of_the_file() {
        let rows = "fine,x\n".repeat(40);
        for (middle, wanted) in [
            ("\"Great film,pos\n", "within the quotation marks of line 42; 41 lines cannot be"),
            ("\"one\ntwo\"three,x\n", "after the quotation marks of line 42; 2 lines cannot"),
            ("\"one\n\u{fffd}\nend\",x\n", "the line is within the quotation marks of line 42"),
        ] {
            let text = format!("text,label\n{rows}{middle}{rows}");
            let bytes: Vec<u8> = match middle.contains('\u{fffd}') {
                true => text
                    .replace('\u{fffd}', "\u{1}")
                    .bytes()
                    .map(|b| if b == 1 { 0xff } else { b })
                    .collect(),
                false => text.into_bytes(),
            };
            with_file("a.csv", &bytes, |path| {
                let mut findings = Findings::new(true);
                Table::read(path, None, &mut findings).unwrap();
                let told = findings.text();
                assert!(findings.has_errors() && told.contains(wanted), "{wanted}: {told}");
            });
        }
        let long = format!("text,label\n\"{}\",x\n", "a line\n".repeat(120));
        assert!(
            read("b.csv", long.as_bytes())
                .1
                .contains("a text in quotation marks with 120 line ends")
        );
    }

    #[test]
    fn lists_are_no_texts_and_later_keys_are_columns() {
        let text = b"{\"text\": [\"The\", \"cat\"]}\n{\"text\": \"a\", \"title\": {\"b\": 1}}\n";
        with_file("a.jsonl", text, |path| {
            let mut findings = Findings::new(false);
            let mut table = Table::read(path, None, &mut findings).unwrap();
            assert_eq!(table.keys.as_deref(), Some(&["text".to_string(), "title".into()][..]));
            table.take_nested(&[0], &mut findings);
            assert_eq!(table.rows.len(), 1);
            let told = findings.text();
            assert!(told.contains("line 1: \"text\" is [\"The\",\"cat\"], need a text"), "{told}");
        });
    }

    #[test]
    fn values_that_are_no_texts_are_known() {
        let text = "{\"text\": 5, \"label\": 1}\n{\"text\": \"5\", \"label\": null}\n";
        with_file("n.jsonl", text.as_bytes(), |path| {
            let table = Table::read(path, None, &mut Findings::new(false)).unwrap();
            let keys = table.keys.as_deref();
            let text = keys.unwrap().iter().position(|key| key == "text").unwrap();
            let said = table.rows[0].not_text(&[text], keys).unwrap();
            assert_eq!(said, "\"text\" is a number, 5; need a text, as a string");
            assert_eq!(table.rows[1].not_text(&[0, 1], keys), None);
        });
    }

    /// A build without the feature says how to get one, and how to do without.
    #[cfg(not(feature = "parquet"))]
    #[test]
    fn parquet_is_refused_with_what_to_do() {
        for name in ["a.parquet", "a.csv"] {
            let told = read(name, b"PAR1\x15\x04").1;
            for part in ["--features parquet, as in cargo install", "pandas.read_parquet('FILE')"] {
                assert!(told.contains(part), "{name}: {told}");
            }
        }
    }

    #[test]
    fn other_encodings_are_named() {
        let utf16: Vec<u8> =
            [0xff, 0xfe].into_iter().chain("a,b\n".bytes().flat_map(|b| [b, 0])).collect();
        assert!(read("a.csv", &utf16).1.contains("is UTF-16"));
        // "很好,正面" in GBK.
        let gbk = b"text,label\n\xba\xdc\xba\xc3,\xd5\xfd\xc3\xe6\n";
        assert!(read("b.csv", gbk).1.contains("may be GB18030"), "{}", read("b.csv", gbk).1);
        assert!(read("c.csv", b"PK\x03\x04....").1.contains("spreadsheet"));
        assert!(read("d.csv", b"").1.contains("has no rows"));
        let told = read("e.csv", b"sep=semicolon\ntext;label\na;b\n").1;
        assert!(told.contains("line 1: names the separator \"semicolon\"; need one"), "{told}");
    }
}
