//! Memory that the rows of a file may take. A compressed file, and JSON with many small values, can
//! need a thousand times its size: that is refused before the process is killed.

use super::findings::{Findings, Place};
use super::table::Row;
use crate::say;
use serde_json::Value;
use std::path::Path;

/// Most bytes of the rows of one file.
const MOST: usize = 3 << 30;
/// Bytes that the allocator adds to a text that is not empty.
const ALLOCATED: usize = 16;

/// Bytes that are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    most: usize,
    left: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::of(MOST)
    }
}

impl Budget {
    /// A budget of so many bytes.
    pub fn of(most: usize) -> Budget {
        Budget { most, left: most }
    }

    /// Takes bytes; false if there are not enough.
    pub fn take(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    /// Notes that the file needs more.
    pub fn refuse(&self, path: &Path, findings: &mut Findings) {
        findings.error("too large", Place::whole(path), self.message());
    }

    /// Says that the file needs more.
    pub fn message(&self) -> String {
        format!(
            "its rows need more than {} bytes of memory: keep the columns and rows that are needed",
            say::count(self.most)
        )
    }
}

/// Memory of a text.
pub(super) fn of_text(text: &str) -> usize {
    size_of::<String>() + if text.is_empty() { 0 } else { text.len() + ALLOCATED }
}

/// Memory of a row.
pub(super) fn of_row(cells: &[String]) -> usize {
    size_of::<Row>() + cells.iter().map(|cell| of_text(cell)).sum::<usize>()
}

/// Memory of a JSON value.
pub(super) fn of_value(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => of_text(text),
        Value::Array(all) => all.iter().map(of_value).sum(),
        Value::Object(all) => all.iter().map(|(key, value)| of_text(key) + of_value(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}
