//! Choice of single columns of a table by their names.

use super::findings::{Findings, Place};
use super::part_of_name;
use super::table::{Row, Table};
pub(super) use crate::data::choose::shown;
use crate::data::choose::{ColumnSelection, Spelling, name, place};
use crate::data::propose::{Wanted, is_number, propose, quoted};
use crate::say;
use std::collections::BTreeSet;

/// Names of a column that says in which part a row is.
pub(super) const PART: [&str; 4] = ["part", "split", "set", "subset"];
/// Rows from which another column is proposed.
const SAMPLE: usize = 200;
/// Rows from which a column of numbers is none of texts by chance.
const ENOUGH: usize = 3;

/// Returns the column with a known name; earlier names are preferred.
pub(super) fn known(first: &[String], names: &[&str]) -> Option<usize> {
    names.iter().find_map(|wanted| first.iter().position(|cell| name(cell) == *wanted))
}

/// Returns the column that a flag chose by its name or its number from 1. `header` is whether the
/// first row names the columns, if that is known.
pub(super) fn asked(
    flag: &str,
    asked: &str,
    first: &[String],
    header: Option<bool>,
) -> Result<usize, String> {
    let spelling = Spelling::Flags;
    let selection = ColumnSelection { header, spelling, ..ColumnSelection::default() };
    place(flag, asked, first, &selection).map(|(column, _)| column)
}

/// Describes a column: by its name, or by its number from 1 if there is no header.
pub(super) fn told(column: usize, header: Option<&[String]>) -> String {
    match header {
        Some(names) => format!("column '{}'", say::short(&names[column], 30)),
        None => format!("column {}", column + 1),
    }
}

/// Notes a column that says in which part each row is: the parts of a table are not read from it, and
/// rows that were meant for the test would be trained on. `table` has no header any more.
pub(super) fn note_parts(table: &Table, names: &[String], findings: &mut Findings) {
    for (at, column) in names.iter().enumerate().filter(|(_, n)| PART.contains(&name(n).as_str())) {
        let cells = table.rows.iter().map(|row| name(&row.cells[at])).filter(|c| !c.is_empty());
        let parts: Option<BTreeSet<usize>> = cells.map(|cell| part_of_name(&cell)).collect();
        if parts.is_none_or(|parts| parts.len() < 2) {
            continue;
        }
        let message = format!(
            "the column {:?} says which rows are for training and which for the test, and is not \
             read: write each part to a file of its own, and give --data, --valid and --test",
            say::short(column.trim(), 40)
        );
        findings.warn("parts in a column", Place::whole(&table.path), message);
    }
}

/// Columns of texts that were chosen.
pub(super) struct TextColumns<'a> {
    /// Flag that chooses them, without hyphens.
    pub flag: &'static str,
    /// Value of the flag.
    pub asked: Option<&'a str>,
    /// The columns, counted from 0.
    pub at: &'a [usize],
    /// Names of all columns; `None` if there is no header.
    pub names: Option<&'a [String]>,
    /// Column of the labels, which may be swapped with that of the texts.
    pub label: Option<usize>,
}

impl TextColumns<'_> {
    /// Refuses columns that hold nothing but numbers, such as ids, unless the flag names them: a
    /// number that is off by one would train a model of ids. Returns whether they may be read.
    /// `table` has no header any more.
    pub fn check(&self, table: &Table, findings: &mut Findings) -> bool {
        let cells = |row: &Row| self.at.iter().all(|at| is_number(&row.cells[*at]));
        if table.rows.len() < ENOUGH || self.at.is_empty() || !table.rows.iter().all(cells) {
            return true;
        }
        let (flag, row) = (self.flag, &table.rows[0]);
        let shown: Vec<String> = self.at.iter().map(|at| told(*at, self.names)).collect();
        let found = format!(
            "the {flag}, {}, is nothing but numbers, such as {:?}",
            shown.join(" + "),
            say::short(row.cells[self.at[0]].trim(), 40)
        );
        let is_named =
            |asked: &str| asked.split(',').all(|one| one.trim().parse::<usize>().is_err());
        if self.names.is_some() && self.asked.is_some_and(is_named) {
            let message = format!("{found}; it was named, so they are read as texts");
            findings.warn("numbers", Place::line(&table.path, row.line), message);
            return true;
        }
        let rows = table.rows.iter().map(|row| &row.cells[..]);
        let sample: Vec<&[String]> = self.names.into_iter().chain(rows).take(SAMPLE).collect();
        let wanted = [Wanted::Longest, Wanted::Few];
        let wanted = if self.label.is_some() { &wanted[..] } else { &wanted[..1] };
        let other = propose(&sample, Some(self.names.is_some()), wanted).map(|found| {
            let called = self.label.map(|at| match self.names {
                Some(names) => quoted(names[at].trim()),
                None => (at + 1).to_string(),
            });
            // The columns are swapped: the texts are where labels were expected.
            let label = found.values.get(1).filter(|_| called.as_ref() == found.values.first());
            let label = label.map_or(String::new(), |name| format!(" --label {name}"));
            format!(", such as --{flag} {}{label}", found.values[0])
        });
        let other = other.unwrap_or_default();
        let meant = match self.names {
            Some(names) => {
                let names = self.at.iter().map(|at| names[*at].trim());
                format!("--{flag} {}", quoted(&names.collect::<Vec<_>>().join(",")))
            }
            None => "give the table a header and choose the column by its name".into(),
        };
        let message = format!(
            "{found}: choose a column of texts{other}; if these numbers are meant, {meant}"
        );
        findings.error("numbers", Place::whole(&table.path), message);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_numbers_and_misspelt_ones_are_told() {
        let first = ["Path ", "Label", "2"].map(String::from);
        assert_eq!(known(&first, &["image", "label", "path"]), Some(1));
        assert_eq!(known(&first, &["image"]), None);
        assert_eq!(asked("label", "label", &first, None), Ok(1));
        assert_eq!(asked("label", "2", &first, None), Ok(2));
        assert_eq!(asked("label", "2", &first, Some(false)), Ok(1));
        let error = asked("label", "lable", &first, None).unwrap_err();
        assert!(error.contains("--label") && error.contains("did you mean 'Label'?"), "{error}");
        assert!(asked("label", "4", &first, None).is_err());
        assert_eq!(told(1, Some(&first)), "column 'Label'");
        assert_eq!(told(1, None), "column 2");
    }
}
