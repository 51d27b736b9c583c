//! Files of the user that are to be read, and the columns that flags choose.

use super::reading::Purpose;
use crate::data::Part;
use std::path::PathBuf;

/// Files of the user, and how to read them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Request {
    /// Name of the task.
    pub task: String,
    /// Files or a folder: all examples, or the training part if others are given.
    pub data: Vec<PathBuf>,
    /// Files of the validation part; empty to hold out a tenth.
    pub valid: Vec<PathBuf>,
    /// Files of the test part; empty to hold out a tenth.
    pub test: Vec<PathBuf>,
    /// Edges of a graph.
    pub edges: Option<PathBuf>,
    /// Columns that the user chose.
    pub columns: ColumnNames,
    /// Whether the first row of a table names its columns; `None` to detect it.
    pub header: Option<bool>,
    /// Side of images in pixels; `None` to choose it.
    pub image_size: Option<usize>,
    /// Whether rows with problems are left out instead of refused.
    pub skip_bad: bool,
    /// Seed of the split.
    pub seed: u64,
    /// What the files are read for.
    pub purpose: Purpose,
    /// Part to evaluate on, if the data have parts; `None` to choose it.
    pub part: Option<Part>,
}

/// Names of columns, or numbers from 1; several separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNames {
    /// Columns of the text.
    pub text: Option<String>,
    /// Column of the label.
    pub label: Option<String>,
    /// Column of the source text, or its language.
    pub source: Option<String>,
    /// Column of the target text or summary, or its language.
    pub target: Option<String>,
    /// Column of the query.
    pub query: Option<String>,
    /// Column of the text that has the answer.
    pub context: Option<String>,
    /// Column of the question.
    pub question: Option<String>,
    /// Column of the answer.
    pub answer: Option<String>,
}

impl Request {
    /// Creates a request for a task.
    pub fn new(task: impl Into<String>) -> Request {
        Request { task: task.into(), ..Request::default() }
    }

    /// Returns the flags that were given and that only some tasks use, with their names.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let others = [
            ("edges", self.edges.is_some()),
            ("no-header", self.header.is_some()),
            ("image-size", self.image_size.is_some()),
        ];
        let others = others.into_iter().filter(|(_, given)| *given).map(|(name, _)| name);
        self.columns.chosen().into_iter().chain(others).collect()
    }
}

impl ColumnNames {
    /// Returns the roles whose columns were chosen.
    pub(super) fn chosen(&self) -> Vec<&'static str> {
        let ColumnNames { text, label, source, target, query, context, question, answer } = self;
        let all = [
            ("text", text),
            ("label", label),
            ("source", source),
            ("target", target),
            ("query", query),
            ("context", context),
            ("question", question),
            ("answer", answer),
        ];
        all.into_iter().filter(|(_, asked)| asked.is_some()).map(|(name, _)| name).collect()
    }
}
