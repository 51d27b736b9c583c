//! Whether a table has a header, although the table that a run was trained with had none.

use super::{Column, FLAGS, Reading, TEXT_ROLES};
use crate::data::choose::{is_above_numbers, name, text_columns};
use crate::data::propose::quoted;
use crate::import::request::ColumnNames;
use crate::import::roles::is_known;
use crate::import::{answer, pairs, rerank};
use crate::say;

impl Reading {
    /// Whether a first row names the columns that the run reads by number. All of them must have
    /// known names: a text may be such a word too.
    pub(in crate::import) fn is_header(&self, first: &[String]) -> bool {
        let mut roles = self.columns.keys();
        !self.columns.is_empty() && roles.all(|role| self.names_role(role, first))
    }

    /// As [`Reading::is_header`], of the texts that a model reads to predict.
    pub(in crate::import) fn names_texts(&self, first: &[String]) -> bool {
        let role = TEXT_ROLES.into_iter().find(|role| self.columns.contains_key(*role));
        role.is_some_and(|role| self.names_role(role, first))
    }

    /// Whether a cell is the name of a column of such texts.
    pub(in crate::import) fn names_text(&self, cell: &str) -> bool {
        let role = TEXT_ROLES.into_iter().find(|role| self.columns.contains_key(*role));
        role.is_some_and(|role| self.is_name(role, cell))
    }

    fn names_role(&self, role: &str, first: &[String]) -> bool {
        let cell = |column: &Column| first.get(column.number?.checked_sub(1)?);
        let is_name = |cell: &String| self.is_name(role, cell);
        let mut columns = self.columns.get(role).into_iter().flatten();
        columns.all(|column| cell(column).is_some_and(is_name))
    }

    fn is_name(&self, role: &str, cell: &str) -> bool {
        let known = |names: &[&str]| is_known(cell, names);
        match role {
            // Beside names of the other roles, what is neither a label nor a number is a name.
            "label" => {
                let cell = cell.trim();
                cell.parse::<f64>().is_err() && !self.labels.iter().any(|label| label == cell)
            }
            "text" => !text_columns(&[cell.to_string()]).is_empty() || known(&rerank::TEXT),
            "source" | "target" => pairs::is_side(cell, role == "source"),
            "query" => known(&rerank::QUERY),
            "context" => known(&answer::CONTEXT),
            "question" => known(&answer::QUESTION),
            "answer" => known(&answer::ANSWERS),
            _ => false,
        }
    }
}

impl Reading {
    /// Message for a table with a header that does not name the columns which the run reads by
    /// number, because its training table had none: they may be others here. `None` if the first row
    /// names them, or is no header. `chosen` are the roles of columns that flags choose.
    pub(in crate::import) fn other_header(
        &self,
        sample: &[&[String]],
        chosen: &[&str],
    ) -> Option<String> {
        let first = sample.first()?;
        let roles = || self.columns.keys().map(String::as_str).filter(|role| *role != "label");
        let is_open = roles().any(|role| !chosen.contains(&role));
        if !is_open || self.is_header(first) || !self.looks_like_header(sample) {
            return None;
        }
        let mut taken = vec![];
        let mut choose = |role: &str| {
            let is_name = |at: &usize| role != "label" && self.is_name(role, &first[*at]);
            let others =
                |at: &usize| roles().any(|other| other != role && self.is_name(other, &first[*at]));
            let free: Vec<usize> = (0..first.len()).filter(|at| !taken.contains(at)).collect();
            let named = || free.iter().copied().filter(is_name);
            // A name of this role alone, such as "source"; of two languages, the first.
            let at = named().find(|at| !others(at)).or_else(|| named().next());
            let recorded = || self.columns[role].first()?.number?.checked_sub(1);
            let at = at.or_else(|| recorded().filter(|at| free.contains(at)))?;
            taken.push(at);
            Some(format!("--{role} {}", quoted(first[at].trim_start_matches('\u{feff}').trim())))
        };
        let ordered = FLAGS.into_iter().filter(|role| self.columns.contains_key(*role));
        let names: Vec<String> = ordered.clone().filter_map(&mut choose).collect();
        let read = ordered.filter_map(|role| {
            let number = self.columns[role].first()?.number?;
            Some(format!("{role}: column {number}"))
        });
        let cells: Vec<String> = first.iter().map(|c| format!("{:?}", say::short(c, 40))).collect();
        Some(format!(
            "the first row, {}, looks like a header that does not name the columns which the run \
             reads by number ({}), because it was trained on a table without a header. Choose the \
             columns by their names: {}; if the first row is an example, --no-header",
            say::list(&cells, 12),
            read.collect::<Vec<_>>().join(", "),
            names.join(" ")
        ))
    }

    /// Whether the first row is a header, by names of all texts or by a name above numbers. A single
    /// name of two may be a text, such as "Hi", the code of a language.
    pub(in crate::import) fn looks_like_header(&self, sample: &[&[String]]) -> bool {
        let Some((first, below)) = sample.split_first() else { return false };
        let roles: Vec<&str> =
            self.columns.keys().map(String::as_str).filter(|role| *role != "label").collect();
        // A name is on no other row of its column.
        let is_once = |at: usize| {
            let cell = |row: &&[String]| row.get(at).map(|cell| name(cell));
            below.iter().all(|row| cell(row) != cell(first))
        };
        let is_of = |role: &str, at: usize| self.is_name(role, &first[at]) && is_once(at);
        let is_named = |role: &&str| (0..first.len()).any(|at| is_of(role, at));
        let named = (0..first.len()).filter(|at| roles.iter().any(|role| is_of(role, *at))).count();
        let all = !roles.is_empty() && named >= roles.len() && roles.iter().all(is_named);
        all || is_above_numbers(sample)
    }
}

/// Whether a flag names a cell of a first row, which then is a header. A number names a column of
/// any table.
pub(super) fn is_named(columns: &ColumnNames, first: &[String]) -> bool {
    let ColumnNames { text, label, source, target, query, context, question, answer } = columns;
    let flags = [text, label, source, target, query, context, question, answer];
    let values = flags.into_iter().flatten().flat_map(|value| value.split(','));
    let mut names = values.map(name).filter(|value| value.parse::<usize>().is_err());
    names.any(|value| first.iter().any(|cell| name(cell) == value))
}
