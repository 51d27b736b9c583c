//! Evaluation of a trained model on held-out data.
//!
//! The metrics are those of an evaluation during training, computed by the same code. The entry
//! point is [`Task::evaluate`](crate::recipe::Task::evaluate).

pub use super::details::{Details, LabelMetrics, Prediction, WorstExample, WorstLabel, WorstText};

use crate::data::{Part, known};
use crate::generate::WIKITEXT_RAW;
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Data that a model is evaluated on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationData {
    /// A part of a data set.
    Set {
        /// Name of the data set; `None` for the recipe's own.
        set: Option<String>,
        /// Part; `None` for the test part, or the validation part of a set without one.
        part: Option<Part>,
    },
    /// All of a file, in the format that recipes of the task read.
    File(PathBuf),
}

/// A metric with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Name, as in the log of a run without the prefix `valid_`.
    pub name: &'static str,
    /// Value of the metric, in `unit`.
    pub value: f64,
    /// Unit, such as `% of tokens` or `nats a token`.
    pub unit: &'static str,
}

/// Metrics of model selection that are percentages, by their names in the log of a run without the
/// prefix `valid_`. Those with the unit `percent` in their name are too.
const PERCENTAGES: [&str; 10] =
    ["accuracy", "f1", "exact", "mrr", "ndcg", "wer", "per", "cer", "error", "wrong"];

/// Whether a metric of the log of a run is a percentage.
pub fn is_percentage(metric: &str) -> bool {
    let name = metric.strip_prefix("valid_").unwrap_or(metric);
    name.ends_with(", percent") || PERCENTAGES.contains(&name)
}

/// Returns the metrics with the names that the log of a run uses.
pub(crate) fn measures(marks: &[Metric]) -> Vec<(String, f64)> {
    marks.iter().map(|mark| (format!("valid_{}", mark.name), mark.value)).collect()
}

/// Result of an evaluation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the data set or file.
    pub data: String,
    /// Part of the data set; `None` for a file.
    pub part: Option<Part>,
    /// Number of evaluated examples, in `unit`.
    pub asked: usize,
    /// Unit of `asked` and `excluded`: texts, words, questions.
    pub unit: &'static str,
    /// Number of examples left out because the model was trained on them.
    pub excluded: usize,
    /// Note on how the data were interpreted, where that is ambiguous, or on what was left out.
    pub note: Option<String>,
    /// Columns of a file that were read, if it is a table.
    pub columns: Option<String>,
    /// Metrics with their values.
    pub marks: Vec<Metric>,
    /// Number of parameters of the model.
    pub parameters: usize,
    /// Duration in seconds, without reading the model and the data.
    pub seconds: f64,
    /// Metrics of each label and the worst examples; `None` for tasks that have neither.
    pub details: Option<Details>,
}

impl Report {
    /// Runs and times `mark`, which computes the metrics, and builds the report.
    pub(crate) fn of(
        sheet: EvaluationSet,
        parameters: usize,
        mark: impl FnOnce() -> Result<Vec<Metric>>,
    ) -> Result<Report> {
        Report::detailed(sheet, parameters, || Ok((mark()?, None)))
    }

    /// As [`Report::of`], for a task whose evaluation also gives details.
    pub(crate) fn detailed(
        sheet: EvaluationSet,
        parameters: usize,
        mark: impl FnOnce() -> Result<DetailedMarks>,
    ) -> Result<Report> {
        let EvaluationSet { data, part, asked, unit, excluded, note, columns } = sheet;
        if asked == 0 {
            return Err(Error::invalid(format!("{data}: no examples to evaluate")));
        }
        let began = Instant::now();
        let (marks, details) = mark()?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(Report {
            data,
            part,
            asked,
            unit,
            excluded,
            note,
            columns,
            marks,
            parameters,
            seconds,
            details,
        })
    }
}

/// Metrics of an evaluation, and its details.
pub(crate) type DetailedMarks = (Vec<Metric>, Option<Details>);

/// Description of an evaluation set; the fields are those of [`Report`].
pub(crate) struct EvaluationSet {
    pub data: String,
    pub part: Option<Part>,
    pub asked: usize,
    pub unit: &'static str,
    pub excluded: usize,
    pub note: Option<String>,
    pub columns: Option<String>,
}

impl EvaluationSet {
    /// Creates the description of `asked` examples, none of them excluded.
    pub(crate) fn new(source: &Source, asked: usize, unit: &'static str) -> EvaluationSet {
        let (data, part) = (source.name(), source.part());
        EvaluationSet { data, part, asked, unit, excluded: 0, note: None, columns: None }
    }
}

/// Resolved source of the evaluation examples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    Set(&'a str, Part),
    File(&'a Path),
}

/// Returns the names of the data sets that models of a task can be evaluated on.
pub fn data_sets(task: &str) -> Vec<&'static str> {
    let mut names = known::names(task);
    if task == "generate" {
        names.push(WIKITEXT_RAW);
    }
    names
}

impl EvaluationData {
    /// Resolves the set and the part; `has_test` returns whether a set has a test part.
    pub(crate) fn decide<'a>(
        &'a self,
        own: &'a str,
        has_test: impl Fn(&str) -> bool,
    ) -> Result<Source<'a>> {
        let (set, part) = match self {
            EvaluationData::File(path) => return Ok(Source::File(path)),
            EvaluationData::Set { set, part } => (set.as_deref().unwrap_or(own), *part),
        };
        match part {
            None if has_test(set) => Ok(Source::Set(set, Part::Test)),
            None => Ok(Source::Set(set, Part::Valid)),
            Some(Part::Test) if !has_test(set) => {
                Err(Error::invalid(format!("part: {set} has no test part; use valid")))
            }
            Some(part) => Ok(Source::Set(set, part)),
        }
    }
}

impl Source<'_> {
    /// Returns the name for messages and reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::Set(set, _) => set.to_string(),
            Source::File(path) => path.display().to_string(),
        }
    }

    pub(crate) fn part(&self) -> Option<Part> {
        match self {
            Source::Set(_, part) => Some(*part),
            Source::File(_) => None,
        }
    }
}
