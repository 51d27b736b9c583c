//! Problems that a check of the user's data found: all of them, with file and line.

use super::table::{PARQUET, end};
use crate::say;
use regard_models::Error;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Number of findings of one kind that are kept; the others are only counted.
const KEPT: usize = 1000;
/// Number of findings of one kind that a text lists.
const LISTED: usize = 5;
/// Characters of a message about one line, and of a message about the data as a whole, which may
/// list columns: a name that is cut off cannot be chosen.
const SHORT: usize = 300;
const LONG: usize = 3000;

/// Effect of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is trained.
    Error,
    /// Training goes on.
    Warning,
}

/// A problem of the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Effect of the problem.
    pub severity: Severity,
    /// Kind of the problem in a few words, such as `empty text`.
    pub kind: &'static str,
    /// File that has the problem.
    pub file: PathBuf,
    /// Line of the file, from 1, or the number of the row in a Parquet file; `None` if the whole
    /// file has the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Whether it is a problem of one row, which could be left out.
    pub is_row: bool,
    /// Description: what was found and what was expected.
    pub message: String,
}

/// All problems of the data, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<(Severity, &'static str), usize>,
    /// Whether problems of single rows are warnings, because those rows are left out.
    skip: bool,
    /// Number of rows left out.
    skipped: usize,
}

/// A place in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The file.
    pub file: &'a Path,
    /// Line from 1; `None` for the file as a whole.
    pub line: Option<u64>,
}

impl<'a> Place<'a> {
    /// The whole file.
    pub fn whole(file: &'a Path) -> Place<'a> {
        Place { file, line: None }
    }

    /// A problem at this place.
    fn finding(self, severity: Severity, kind: &'static str, message: String) -> Finding {
        let (file, line) = (self.file.to_path_buf(), self.line);
        Finding { severity, kind, file, line, is_row: false, message }
    }

    /// A line of the file.
    pub fn line(file: &'a Path, line: u64) -> Place<'a> {
        Place { file, line: Some(line) }
    }
}

impl Findings {
    /// Creates an empty list. With `skip`, rows with problems are left out instead of refused.
    pub fn new(skip: bool) -> Findings {
        Findings { skip, ..Findings::default() }
    }

    /// Adds a problem of the data as a whole: nothing can be trained.
    pub(crate) fn error(&mut self, kind: &'static str, place: Place, message: impl Into<String>) {
        self.add(place.finding(Severity::Error, kind, message.into()));
    }

    /// Adds a problem of one row. The caller leaves the row out.
    pub(crate) fn row(&mut self, kind: &'static str, place: Place, message: impl Into<String>) {
        let severity = if self.skip { Severity::Warning } else { Severity::Error };
        self.skipped += usize::from(self.skip);
        let finding = place.finding(severity, kind, message.into());
        self.add(Finding { is_row: true, ..finding });
    }

    /// Adds a problem that does not prevent training.
    pub(crate) fn warn(&mut self, kind: &'static str, place: Place, message: impl Into<String>) {
        self.add(place.finding(Severity::Warning, kind, message.into()));
    }

    /// Adds an error of a reader, whose message may begin with the file and the line.
    pub(crate) fn reader(&mut self, kind: &'static str, file: &Path, error: &Error) {
        let text = error.to_string();
        match parts(&text, file) {
            (Some(line), message) => self.row(kind, Place::line(file, line), message),
            (None, message) => self.error(kind, Place::whole(file), message),
        }
    }

    /// Adds an error of a reader that concerns `count` lines up to the one that it names: they
    /// cannot be left out as one row.
    pub(crate) fn reader_of_file(
        &mut self,
        kind: &'static str,
        file: &Path,
        error: &Error,
        count: u64,
    ) {
        let text = error.to_string();
        let (line, message) = parts(&text, file);
        let message = format!("{message}; {count} lines cannot be told apart: correct the file");
        self.error(kind, Place { file, line }, message);
    }

    fn add(&mut self, finding: Finding) {
        let count = self.counts.entry((finding.severity, finding.kind)).or_default();
        *count += 1;
        if *count <= KEPT {
            self.kept.push(finding);
        }
    }

    /// Returns the findings; of each kind the first thousand.
    pub fn list(&self) -> &[Finding] {
        &self.kept
    }

    /// Returns the number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.counts.iter().filter(|((each, _), _)| *each == severity).map(|(_, count)| count).sum()
    }

    /// Whether nothing can be trained.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Returns the number of rows left out.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Formats the findings, grouped by kind: the first few of each with their lines.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for ((severity, kind), count) in &self.counts {
            let name = if *severity == Severity::Error { "error" } else { "warning" };
            text += &format!("{name}: {kind} ({})\n", say::count(*count));
            let of_kind = |each: &&Finding| each.severity == *severity && each.kind == *kind;
            for each in self.kept.iter().filter(of_kind).take(LISTED) {
                let line = each.line;
                let line = line.map_or(String::new(), |l| format!(" {}:", numbered(&each.file, l)));
                let lists = each.line.is_none() || each.kind == "columns";
                let most = if lists { LONG } else { SHORT };
                let message = say::short(&each.message, most);
                text += &format!("  {}:{line} {message}\n", each.file.display());
            }
            if let more @ 1.. = count.saturating_sub(LISTED) {
                text += &format!("  … and {} more\n", say::count(more));
            }
        }
        text
    }
}

/// Name of a line of a file; of a row, if the file has no lines.
pub(crate) fn numbered(file: &Path, line: u64) -> String {
    let word = if end(file) == PARQUET { "row" } else { "line" };
    format!("{word} {line}")
}

/// Line and message of an error of a reader.
fn parts<'a>(text: &'a str, file: &Path) -> (Option<u64>, &'a str) {
    let text = text.strip_prefix(&format!("{}: ", file.display())).unwrap_or(text);
    match text.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((number, message)) => (number.parse().ok(), message),
        None => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_grouped_counted_and_cut() {
        let file = Path::new("a.csv");
        let mut found = Findings::new(false);
        for line in 2..2000 {
            found.row("empty text", Place::line(file, line), "the text is empty");
        }
        found.warn("imbalance", Place::whole(file), "9 of 10 are 'x'");
        assert_eq!((found.count(Severity::Error), found.count(Severity::Warning)), (1998, 1));
        assert_eq!(found.list().len(), 1001);
        let text = found.text();
        assert!(text.starts_with("error: empty text (1,998)\n  a.csv: line 2: the text"), "{text}");
        assert!(text.contains("  … and 1,993 more\nwarning: imbalance (1)"), "{text}");
    }

    #[test]
    fn columns_are_listed_as_a_whole() {
        let names: Vec<String> = (1..=60).map(|i| format!("a_column_with_a_name_{i}")).collect();
        let mut found = Findings::new(false);
        let shown = crate::data::choose::shown(&names);
        found.error("columns", Place::whole(Path::new("a.csv")), shown);
        let text = found.text();
        assert!(text.contains("\"a_column_with_a_name_40\" … and 20 more\n"), "{text}");
        found.row("label", Place::line(Path::new("a.csv"), 2), "x".repeat(1000));
        assert!(found.text().lines().last().unwrap().chars().count() < 400);
    }

    #[test]
    fn rows_that_are_left_out_are_counted_and_no_errors() {
        let mut found = Findings::new(true);
        found.row("empty text", Place::line(Path::new("a"), 3), "empty");
        assert!(!found.has_errors());
        assert_eq!(found.skipped(), 1);
        found.error("one label", Place::whole(Path::new("a")), "all rows have the label 'x'");
        assert!(found.has_errors());
    }

    #[test]
    fn errors_of_readers_keep_their_lines() {
        let file = Path::new("b.csv");
        let mut found = Findings::new(false);
        found.reader("encoding", file, &Error::file(file, "line 7: not UTF-8 at byte 3"));
        let Finding { line, message, .. } = &found.list()[0];
        assert_eq!((*line, &message[..]), (Some(7), "not UTF-8 at byte 3"));
    }
}
