//! Whether a table has a header, although the table that a run was trained with had none.

use super::{Column, Reading, TEXT_ROLES};
use crate::data::choose::{name, text_columns};
use crate::import::request::ColumnNames;
use crate::import::roles::is_known;
use crate::import::{answer, pairs, rerank};

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

/// Whether a flag names a cell of a first row, which then is a header. A number names a column of
/// any table.
pub(super) fn is_named(columns: &ColumnNames, first: &[String]) -> bool {
    let ColumnNames { text, label, source, target, query, context, question, answer } = columns;
    let flags = [text, label, source, target, query, context, question, answer];
    let values = flags.into_iter().flatten().flat_map(|value| value.split(','));
    let mut names = values.map(name).filter(|value| value.parse::<usize>().is_err());
    names.any(|value| first.iter().any(|cell| name(cell) == value))
}
