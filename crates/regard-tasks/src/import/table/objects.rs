//! Rows of JSON objects.

use super::{Row, Table};
use crate::import::findings::{Findings, Place};
use crate::import::values::{cell, not_text};
use crate::say;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// Most different keys of the objects of a table: each is a column of every row.
pub(in crate::import) const MOST_KEYS: usize = 1000;
/// Most cells of a table of objects: each takes memory even where an object lacks the key.
pub(in crate::import) const MOST_CELLS: usize = 1 << 25;

impl Table {
    /// Objects as rows: all their keys are the columns, and a key that an object lacks is an empty
    /// cell.
    pub(super) fn of_values(
        path: &Path,
        values: Vec<(u64, Value)>,
        findings: &mut Findings,
    ) -> Table {
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
}
