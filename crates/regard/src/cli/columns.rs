//! Flags that say how files of the user are read: by `train`, and by `eval` of such a run.

use clap::Args;
use regard_tasks::import::Request;
use std::path::PathBuf;

/// Columns of the user's files, and what to do with bad rows.
#[derive(Args)]
#[command(next_help_heading = "Your own data")]
pub struct ColumnFlags {
    /// Edges of a graph
    #[arg(long, value_name = "FILE", requires = "data")]
    edges: Option<PathBuf>,
    /// Columns of the text, by name or number from 1; several are joined: title,description
    #[arg(long, value_name = "COLUMNS", requires = "data")]
    text: Option<String>,
    /// Column of the label
    #[arg(long, value_name = "COLUMN", requires = "data")]
    label: Option<String>,
    /// Column of the source text; for parallel files the end of its name, such as en
    #[arg(long, value_name = "COLUMN", requires = "data")]
    source: Option<String>,
    /// Column of the target text or summary; for parallel files the end of its name
    #[arg(long, value_name = "COLUMN", requires = "data")]
    target: Option<String>,
    /// Column of the query
    #[arg(long, value_name = "COLUMN", requires = "data")]
    query: Option<String>,
    /// Column of the text that has the answer (answer)
    #[arg(long, value_name = "COLUMN", requires = "data")]
    context: Option<String>,
    /// Column of the question (answer)
    #[arg(long, value_name = "COLUMN", requires = "data")]
    question: Option<String>,
    /// Column of the answer (answer)
    #[arg(long, value_name = "COLUMN", requires = "data")]
    answer: Option<String>,
    /// The first row of a table is an example and not a header
    #[arg(long, requires = "data")]
    no_header: bool,
    /// Leave rows with problems out, instead of refusing the data
    #[arg(long, requires = "data")]
    skip_bad: bool,
}

impl ColumnFlags {
    /// Sets the fields of a request.
    pub fn apply(&self, request: &mut Request) {
        request.edges = self.edges.clone();
        request.columns.text = self.text.clone();
        request.columns.label = self.label.clone();
        request.columns.source = self.source.clone();
        request.columns.target = self.target.clone();
        request.columns.query = self.query.clone();
        request.columns.context = self.context.clone();
        request.columns.question = self.question.clone();
        request.columns.answer = self.answer.clone();
        request.header = self.no_header.then_some(false);
        request.skip_bad = self.skip_bad;
    }

    /// Returns the flags that were given, with their hyphens.
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--edges", self.edges.is_some()),
            ("--text", self.text.is_some()),
            ("--label", self.label.is_some()),
            ("--source", self.source.is_some()),
            ("--target", self.target.is_some()),
            ("--query", self.query.is_some()),
            ("--context", self.context.is_some()),
            ("--question", self.question.is_some()),
            ("--answer", self.answer.is_some()),
            ("--no-header", self.no_header),
            ("--skip-bad", self.skip_bad),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }
}
