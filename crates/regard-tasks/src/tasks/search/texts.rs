//! Texts of a file: its lines, or a column of its table.
//!
//! | name ends in | texts |
//! |---|---|
//! | `.csv` | a column; commas between columns, quoted where needed |
//! | `.tsv` | a column; tabs between columns |
//! | `.jsonl`, `.ndjson` | the value of a key of an object on each line |
//! | anything else | lines |
//!
//! and each with `.gz` after it. Empty lines and cells are left out.

use crate::data::choose::text_columns;
use crate::data::columns::{Separator, row};
use crate::data::sets::hex;
use crate::data::stream::Lines;
use crate::say;
use flate2::bufread::MultiGzDecoder;
use regard_models::{Error, Result};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

/// Texts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTexts {
    /// Texts in the order of the file; none is empty.
    pub texts: Vec<FileText>,
    /// Name of the column, or its number from 1 if the first row is not a header; `None` if the
    /// texts are lines.
    pub column: Option<String>,
    /// Number of empty lines or cells, which are left out.
    pub empty: usize,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

/// A text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// Line of the file on which it begins, or its row begins, from 1.
    pub line: u64,
    /// The text, trimmed.
    pub text: String,
}

impl FileTexts {
    /// Reads a file. `column` is the name of a column or key, or the number of a column from 1 if
    /// the first row is not a header; without it, the only text column by its name is taken.
    ///
    /// # Errors
    /// If the file cannot be read, is not UTF-8 or has no texts; if it is no table and `column` is
    /// given; if it is one, and which column is meant is not clear.
    pub fn open(path: impl AsRef<Path>, column: Option<&str>) -> Result<FileTexts> {
        let path = path.as_ref();
        FileTexts::read(File::open(path).map_err(Error::io(path))?, path, column)
    }

    /// Reads a file from any reader; `name` is its name in errors, and its end is its format.
    ///
    /// # Errors
    /// As [`FileTexts::open`].
    pub fn read(
        from: impl Read,
        name: impl AsRef<Path>,
        column: Option<&str>,
    ) -> Result<FileTexts> {
        let name = name.as_ref();
        let lower = name.to_string_lossy().to_lowercase();
        let (lower, is_zipped) = match lower.strip_suffix(".gz") {
            Some(lower) => (lower, true),
            None => (lower.as_str(), false),
        };
        // Hashed while it is read, so that the hash is of these texts even if the file changes.
        let digest = Rc::new(RefCell::new(Sha256::new()));
        let hashed = BufReader::new(Hashed { from, digest: digest.clone() });
        let reader: Box<dyn BufRead + '_> = match is_zipped {
            true => Box::new(BufReader::new(MultiGzDecoder::new(hashed))),
            false => Box::new(hashed),
        };
        let mut lines = Lines::new(reader, name);
        let mut found = FileTexts::default();
        match lower.rsplit_once('.').map_or("", |(_, end)| end) {
            "csv" => found.read_table(&mut lines, Separator::Comma, column)?,
            "tsv" => found.read_table(&mut lines, Separator::Tab, column)?,
            "jsonl" | "ndjson" => found.read_objects(&mut lines, column)?,
            _ => match column {
                None => found.read_lines(&mut lines)?,
                Some(column) => {
                    return Err(Error::file(
                        name,
                        format!(
                            "has no column {column:?}: it is not a table, whose name ends in .csv, \
                             .tsv or .jsonl"
                        ),
                    ));
                }
            },
        }
        if found.texts.is_empty() {
            return Err(Error::file(name, "has no texts, need at least one line or row"));
        }
        found.sha256 = hex(&digest.borrow().clone().finalize());
        Ok(found)
    }

    fn push(&mut self, line: u64, text: &str) {
        match text.trim() {
            "" => self.empty += 1,
            text => self.texts.push(FileText { line, text: text.to_string() }),
        }
    }

    fn read_lines(&mut self, lines: &mut Lines<impl BufRead>) -> Result<()> {
        while let Some(text) = lines.next().transpose()? {
            self.push(lines.number(), &text);
        }
        Ok(())
    }

    fn read_table(
        &mut self,
        lines: &mut Lines<impl BufRead>,
        between: Separator,
        asked: Option<&str>,
    ) -> Result<()> {
        let Some(first) = row(lines, between)? else { return Ok(()) };
        let chosen = choose(&first, asked).map_err(|message| Error::file(lines.name(), message))?;
        let Column { at, is_named } = chosen;
        self.column = Some(match is_named {
            true => first[at].trim().to_string(),
            false => (at + 1).to_string(),
        });
        let mut next = Some(first).filter(|_| !is_named);
        loop {
            let cells = match next.take() {
                Some(cells) => cells,
                None => match row(lines, between)? {
                    Some(cells) => cells,
                    None => return Ok(()),
                },
            };
            let Some(text) = cells.get(at) else {
                let got = say::many(cells.len(), "column");
                return Err(lines.error(format!("the row has {got}, need {}", at + 1)));
            };
            // A row with line ends in quotation marks begins before the last line that was read.
            let within: usize = cells.iter().map(|cell| cell.matches('\n').count()).sum();
            self.push(lines.number().saturating_sub(within as u64), text);
        }
    }

    fn read_objects(&mut self, lines: &mut Lines<impl BufRead>, asked: Option<&str>) -> Result<()> {
        while let Some(line) = lines.next().transpose()? {
            if line.trim().is_empty() {
                continue;
            }
            let object: Map<String, Value> = serde_json::from_str(&line)
                .map_err(|e| lines.error(format!("not a JSON object: {e}")))?;
            let key = match self.column.take() {
                Some(key) => key,
                None => choose_key(&object, asked).map_err(|message| lines.error(message))?,
            };
            match object.get(&key) {
                Some(Value::String(text)) => self.push(lines.number(), text),
                Some(Value::Null) => self.empty += 1,
                Some(_) => return Err(lines.error(format!("{key:?} is not a string"))),
                None => {
                    let keys: Vec<&String> = object.keys().collect();
                    let keys = say::list(&keys, 8);
                    return Err(lines.error(format!("has no {key:?}; its keys are {keys}")));
                }
            }
            self.column = Some(key);
        }
        Ok(())
    }
}

/// A chosen column of a table.
struct Column {
    at: usize,
    /// Whether the first row names it, and therefore is a header.
    is_named: bool,
}

/// Chooses the column of a table by its first row.
fn choose(first: &[String], asked: Option<&str>) -> Result<Column, String> {
    let named = |at: usize| Ok(Column { at, is_named: true });
    let cells: Vec<&str> = first.iter().map(|cell| cell.trim()).collect();
    let shown = || {
        let cells: Vec<String> =
            cells.iter().map(|cell| format!("{:?}", say::short(cell, 40))).collect();
        format!("the first row is: {}", say::list(&cells, 8))
    };
    if let Some(asked) = asked {
        if let Some(at) = position(&cells, asked) {
            return named(at);
        }
        return match asked.parse().ok().filter(|number| (1..=first.len()).contains(number)) {
            Some(number) => Ok(Column { at: number - 1, is_named: false }),
            None => {
                let mean = say::did_you_mean(asked, &cells);
                Err(format!("has no column {asked:?}; {mean}{}", shown()))
            }
        };
    }
    match text_columns(first)[..] {
        [only] => named(only),
        [] if first.len() == 1 => Ok(Column { at: 0, is_named: false }),
        _ => Err(format!(
            "cannot tell which column to search: {}. Name one: --column NAME, or a number from 1 \
             if the first row is not a header",
            shown()
        )),
    }
}

/// Chooses the key of JSON objects by the first one.
fn choose_key(object: &Map<String, Value>, asked: Option<&str>) -> Result<String, String> {
    let keys: Vec<&str> = object.keys().map(String::as_str).collect();
    if let Some(asked) = asked {
        return match position(&keys, asked) {
            Some(at) => Ok(keys[at].to_string()),
            None => {
                let mean = say::did_you_mean(asked, &keys);
                Err(format!("has no {asked:?}; {mean}its keys are {}", say::list(&keys, 8)))
            }
        };
    }
    let strings = object.iter().filter(|(_, value)| value.is_string());
    let strings: Vec<String> = strings.map(|(key, _)| key.clone()).collect();
    match (&text_columns(&strings)[..], &strings[..]) {
        ([only], _) => Ok(strings[*only].clone()),
        ([], [only]) => Ok(only.clone()),
        _ => Err(format!(
            "cannot tell which key to search: its keys are {}. Name one: --column NAME",
            say::list(&keys, 8)
        )),
    }
}

/// Index of a name: exactly, or but for case.
fn position(names: &[&str], asked: &str) -> Option<usize> {
    let asked = asked.trim();
    let exact = names.iter().position(|name| *name == asked);
    let lower = asked.to_lowercase();
    exact.or_else(|| names.iter().position(|name| name.to_lowercase() == lower))
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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn read(name: &str, text: &str, column: Option<&str>) -> Result<FileTexts, String> {
        FileTexts::read(text.as_bytes(), name, column).map_err(|e| e.to_string())
    }

    /// Column, and lines with their texts.
    fn found(name: &str, text: &str, column: Option<&str>) -> (Option<String>, Vec<(u64, String)>) {
        let found = read(name, text, column).unwrap_or_else(|e| panic!("{name}: {text:?}: {e}"));
        (found.column, found.texts.into_iter().map(|text| (text.line, text.text)).collect())
    }

    #[test]
    fn lines_keep_their_numbers() {
        let all = read("notes.txt", " a b \n\nc\r\n  \nd", None).unwrap();
        let texts: Vec<(u64, &str)> = all.texts.iter().map(|t| (t.line, t.text.as_str())).collect();
        assert_eq!(texts, [(1, "a b"), (3, "c"), (5, "d")]);
        assert_eq!((all.empty, all.column), (2, None));
        assert_eq!(all.sha256, hex(&Sha256::digest(b" a b \n\nc\r\n  \nd")));
    }

    #[test]
    fn a_column_is_found_or_named() {
        let both = |line, text: &str| (line, text.to_string());
        for (name, text, column, wanted) in [
            ("x.csv", "id,Text\n1,a\n2,\"b\nc\"\n3,d\n", None, "Text"),
            ("x.csv", "id,Text\n1,a\n2,\"b\nc\"\n3,d\n", Some("text"), "Text"),
            ("x.CSV", "id,wort\n1,a\n2,\"b\nc\"\n3,d\n", Some("wort"), "wort"),
        ] {
            let (column, texts) = found(name, text, column);
            assert_eq!(column.as_deref(), Some(wanted));
            assert_eq!(texts, [both(2, "a"), both(3, "b\nc"), both(5, "d")], "{text}");
        }
        let (column, texts) = found("x.tsv", "1\ta\n2\tb\n", Some("2"));
        assert_eq!((column.as_deref(), texts), (Some("2"), vec![both(1, "a"), both(2, "b")]));
        // A single column needs no name.
        let (column, texts) = found("x.tsv", "a b\nc\n", None);
        assert_eq!((column.as_deref(), texts), (Some("1"), vec![both(1, "a b"), both(2, "c")]));
    }

    #[test]
    fn a_key_is_found_or_named() {
        let rows = "{\"id\": 1, \"body\": \"a\", \"url\": \"u\"}\n\n\
                    {\"id\": 2, \"body\": null}\n{\"id\": 3, \"body\": \"b\"}\n";
        for column in [None, Some("Body")] {
            let (column, texts) = found("x.jsonl", rows, column);
            assert_eq!(column.as_deref(), Some("body"));
            assert_eq!(texts, [(1, "a".to_string()), (4, "b".to_string())]);
        }
        let (column, _) = found("x.jsonl", "{\"n\": 1, \"wort\": \"a\"}\n", None);
        assert_eq!(column.as_deref(), Some("wort"));
    }

    #[test]
    fn what_is_not_clear_is_not_guessed() {
        for (name, text, column, says) in [
            ("x.csv", "id,titel\n1,a\n", None, "the first row is: \"id\", \"titel\""),
            ("x.csv", "title,body\na,b\n", None, "--column NAME"),
            ("x.csv", "id,titel\n1,a\n", Some("titl"), "did you mean 'titel'?"),
            ("x.csv", "id,titel\n1,a\n", Some("3"), "has no column \"3\""),
            ("x.csv", "text\n\"a\n", None, "quotation marks of line 2"),
            ("x.tsv", "id\ttext\n1\n", None, "line 2: the row has 1 column, need 2"),
            ("x.txt", "a\n", Some("text"), "not a table"),
            ("x.txt", " \n\n", None, "has no texts"),
            ("x.csv", "text\n", None, "has no texts"),
            ("x.csv", "", None, "has no texts"),
            ("x.jsonl", "[1]\n", None, "line 1: not a JSON object"),
            ("x.jsonl", "{\"a\": \"x\", \"b\": \"y\"}\n", None, "its keys are a, b"),
            ("x.jsonl", "{\"text\": \"x\"}\n{\"txt\": 1}\n", None, "line 2: has no \"text\""),
            ("x.jsonl", "{\"text\": 3}\n", Some("text"), "\"text\" is not a string"),
            ("x.jsonl", "{\"text\": \"x\"}\n", Some("txt"), "did you mean 'text'?"),
        ] {
            let error = read(name, text, column).unwrap_err();
            assert!(error.contains(says) && error.contains(name), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_compressed_file_is_hashed_as_it_is() {
        let mut zip = GzEncoder::new(vec![], Compression::default());
        zip.write_all(b"text\na\n").unwrap();
        let zip = zip.finish().unwrap();
        let all = FileTexts::read(&zip[..], "x.csv.gz", None).unwrap();
        assert_eq!(all.texts, [FileText { line: 2, text: "a".into() }]);
        assert_eq!(all.sha256, hex(&Sha256::digest(&zip)));
    }
}
