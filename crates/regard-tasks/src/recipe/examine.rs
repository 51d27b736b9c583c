//! How good a trained model is at its task, on what it has not learned from.
//!
//! The numbers are those that an evaluation during training gives: the same code marks the same
//! examples. [`Task::examine`](crate::recipe::Task::examine) is where to begin.

use crate::data::Part;
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What a model is examined on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum On {
    /// A part of a data set.
    Set {
        /// Which set; none is the recipe's own.
        set: Option<String>,
        /// Which part; none is the test part, or the validation part of a set without one.
        part: Option<Part>,
    },
    /// All of a file, in the format that recipes of the task read.
    File(PathBuf),
}

/// A measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// What it is called, as in the log of a run but for `valid_`.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
}

/// Marks as the log of a run has them.
pub(crate) fn measures(marks: &[Mark]) -> Vec<(String, f64)> {
    marks.iter().map(|mark| (format!("valid_{}", mark.name), mark.value)).collect()
}

/// What came of an examination.
#[derive(Clone, Debug)]
pub struct Report {
    /// The data set or the file.
    pub data: String,
    /// Which part of a data set.
    pub part: Option<Part>,
    /// So many were asked.
    pub asked: usize,
    /// What was asked: texts, words, questions.
    pub unit: &'static str,
    /// Of the data, so many were not asked because the model has learned from them.
    pub excluded: usize,
    /// How the data were read, where that was not certain.
    pub note: Option<String>,
    /// How good it is.
    pub marks: Vec<Mark>,
    /// Numbers in the model's weights.
    pub parameters: usize,
    /// How long it took, without reading the model and the data.
    pub seconds: f64,
}

impl Report {
    /// Times `mark`, and puts together what came of it.
    pub(crate) fn of(
        sheet: Sheet,
        parameters: usize,
        mark: impl FnOnce() -> Result<Vec<Mark>>,
    ) -> Result<Report> {
        let Sheet { data, part, asked, unit, excluded, note } = sheet;
        if asked == 0 {
            return Err(Error::invalid(format!("{data}: there is nothing to ask")));
        }
        let began = Instant::now();
        let marks = mark()?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(Report { data, part, asked, unit, excluded, note, marks, parameters, seconds })
    }
}

/// What there is to say of examples before anybody is asked.
pub(crate) struct Sheet {
    pub data: String,
    pub part: Option<Part>,
    pub asked: usize,
    pub unit: &'static str,
    pub excluded: usize,
    pub note: Option<String>,
}

impl Sheet {
    /// So many of a unit, all of which are asked.
    pub(crate) fn new(source: &Source, asked: usize, unit: &'static str) -> Sheet {
        let (data, part) = (source.name(), source.part());
        Sheet { data, part, asked, unit, excluded: 0, note: None }
    }
}

/// Where examples are taken from, once it is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    Set(&'a str, Part),
    File(&'a Path),
}

impl On {
    /// Decides the set and the part; `has_test` says which sets have a test part.
    pub(crate) fn decide<'a>(
        &'a self,
        own: &'a str,
        has_test: impl Fn(&str) -> bool,
    ) -> Result<Source<'a>> {
        let (set, part) = match self {
            On::File(path) => return Ok(Source::File(path)),
            On::Set { set, part } => (set.as_deref().unwrap_or(own), *part),
        };
        match part {
            None if has_test(set) => Ok(Source::Set(set, Part::Test)),
            None => Ok(Source::Set(set, Part::Valid)),
            Some(Part::Test) if !has_test(set) => {
                Err(Error::invalid(format!("part: {set} has no test part; valid is held out")))
            }
            Some(part) => Ok(Source::Set(set, part)),
        }
    }
}

impl Source<'_> {
    /// How messages and reports call it.
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
