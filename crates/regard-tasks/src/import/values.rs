//! JSON values of the user with their lines: JSON lines, or an array.

use super::budget::{Budget, of_value};
use super::findings::{Findings, Place};
use super::glimpse::{foreign, glimpse};
use super::table::end;
use crate::data::stream::{self, Lines};
use regard_models::{Error, Result};
use serde::Deserializer;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use std::io::{BufRead, Read};
use std::path::Path;

/// Largest JSON file that is one array, in bytes: it is held in memory as a whole.
const WHOLE: u64 = 1 << 30;

/// Byte-order mark, which some editors put before the text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads JSON values with their lines: JSON lines, or an array in a file whose name ends in
/// `.json`, where the place is the number of the element. Those that cannot be read are noted and
/// left out.
pub(crate) fn json_values(path: &Path, findings: &mut Findings) -> Result<Vec<(u64, Value)>> {
    let (first, reader) = glimpse(stream::open(path)?, path)?;
    if let Some(message) = foreign(&first) {
        findings.error("encoding", Place::whole(path), message);
        return Ok(vec![]);
    }
    values_of((&end(path), &first), reader, path, &mut Budget::default(), findings)
}

/// As [`json_values`], from a reader whose type and first bytes are known.
pub(super) fn values_of(
    (kind, first): (&str, &[u8]),
    reader: impl BufRead,
    path: &Path,
    budget: &mut Budget,
    findings: &mut Findings,
) -> Result<Vec<(u64, Value)>> {
    let first = first.strip_prefix(MARK).unwrap_or(first);
    match kind == "json" && first.trim_ascii_start().starts_with(b"[") {
        true => array(reader, path, budget, findings),
        false => Ok(objects(reader, path, budget, findings)),
    }
}

fn objects(
    reader: impl BufRead,
    path: &Path,
    budget: &mut Budget,
    findings: &mut Findings,
) -> Vec<(u64, Value)> {
    let mut lines = Lines::new(reader, path);
    let mut all = vec![];
    while let Some(line) = lines.next() {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                findings.reader("encoding", path, &error);
                continue;
            }
        };
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Value>(&line) {
            Ok(value) if !budget.take(of_value(&value)) => {
                budget.refuse(path, findings);
                return vec![];
            }
            Ok(value) => all.push((lines.number(), value)),
            Err(error) => {
                let place = Place::line(path, lines.number());
                findings.row("JSON", place, format!("is not JSON: {}", plain(&error)));
            }
        }
    }
    all
}

fn array(
    reader: impl BufRead,
    path: &Path,
    budget: &mut Budget,
    findings: &mut Findings,
) -> Result<Vec<(u64, Value)>> {
    let text = whole_of(reader, path)?;
    let text = text.strip_prefix(MARK).unwrap_or(&text);
    let mut from = serde_json::Deserializer::from_slice(text);
    let read = from.deserialize_seq(Elements(budget));
    match read.and_then(|values| from.end().map(|()| values)) {
        Ok(Some(values)) => Ok(values),
        Ok(None) => {
            budget.refuse(path, findings);
            Ok(vec![])
        }
        Err(error) => {
            // No element is read, so that none can be left out.
            let place = Place::line(path, error.line() as u64);
            let message = format!(
                "is not JSON: {}; the file is one array, of which nothing can be read before it is \
                 corrected. With JSON lines, an object on each line, the other rows could be",
                plain(&error)
            );
            findings.error("JSON", place, message);
            Ok(vec![])
        }
    }
}

/// Reads the elements of an array with their numbers, one after the other, so that their memory is
/// known before all are there. `None` if it is too much.
struct Elements<'a>(&'a mut Budget);

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Option<Vec<(u64, Value)>>;

    fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut all = vec![];
        while let Some(value) = from.next_element::<Value>()? {
            if !self.0.take(of_value(&value)) {
                // The rest must be read for the list to end.
                while from.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            all.push((all.len() as u64 + 1, value));
        }
        Ok(Some(all))
    }
}

/// Reads a JSON file that is one value.
pub(crate) fn whole(path: &Path) -> Result<Vec<u8>> {
    whole_of(stream::open(path)?, path)
}

fn whole_of(reader: impl BufRead, path: &Path) -> Result<Vec<u8>> {
    let mut text = vec![];
    reader.take(WHOLE + 1).read_to_end(&mut text).map_err(Error::io(path))?;
    match text.len() as u64 > WHOLE {
        true => {
            let message = format!("is one JSON value of more than {WHOLE} bytes; use JSON lines");
            Err(Error::file(path, message))
        }
        false => Ok(text),
    }
}

/// Text of a JSON value: strings as they are, null as nothing, anything else as JSON.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Kind of a JSON value that is neither a text nor nothing.
pub(crate) fn not_text(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) | Value::Null => None,
        Value::Number(_) => Some("a number"),
        Value::Bool(_) => Some("true or false"),
        Value::Array(_) => Some("a list"),
        Value::Object(_) => Some("an object"),
    }
}

/// Message of a JSON error without its place, which the finding has.
pub(crate) fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_string()
}
