//! How training read the user's files, so that other files are read in the same way.
//!
//! An importer notes in a [`Reading`] which columns it chose, the header, the separator and the
//! labels. Training writes it to [`RECORD`], under the key `reading`; evaluation and
//! prediction read it back as a [`TrainedImport`].

use super::copies::DATA;
use super::table::{PARQUET, Table};
use super::{RECORD, Request};
use crate::data::Part;
use crate::data::choose::name;
use crate::say;
use regard_models::checkpoint::read_text;
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// Roles of columns that flags choose.
const FLAGS: [&str; 8] =
    ["text", "label", "source", "target", "query", "context", "question", "answer"];

/// How files were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Reading {
    /// Kind of the files: `table`, `json`, `parquet`, `conll`, `conllu`, `folders`, `parallel`,
    /// `squad`, `text`.
    pub format: String,
    /// Columns by role: `text`, `label`, `source`, `target`, `query`, `context`, `question`,
    /// `answer`; for graphs also `id`, `features`, `edge_features`.
    pub columns: BTreeMap<String, Vec<Column>>,
    /// Whether the first row names the columns; `None` if the files are not tables.
    pub header: Option<bool>,
    /// Separator of a CSV file.
    pub separator: Option<char>,
    /// Labels of the training part; empty if examples have none.
    pub labels: Vec<String>,
    /// Languages of source and target, or the ends of the names of their files.
    pub languages: Option<[String; 2]>,
    /// Side of images in pixels.
    pub image_size: Option<usize>,
    /// Whether images are read in colour.
    pub colour: Option<bool>,
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Column {
    /// Its name; `None` without a header.
    pub name: Option<String>,
    /// Its number from 1; `None` for a key of JSON objects, which have no order.
    pub number: Option<usize>,
}

impl Reading {
    /// Creates the description of files of a kind without columns.
    pub(super) fn of(format: &str) -> Reading {
        Reading { format: format.into(), ..Reading::default() }
    }

    /// Creates the description of a table, without columns.
    pub(super) fn of_table(table: &Table, has_header: bool) -> Reading {
        Reading {
            format: match (&table.keys, table.has_order) {
                (None, _) => "table",
                (_, true) => PARQUET,
                (_, false) => "json",
            }
            .into(),
            header: Some(has_header),
            separator: table.separator,
            ..Reading::default()
        }
    }

    /// Adds the columns of a role, counted from 0. `names` are those of all columns.
    pub(super) fn with(mut self, role: &str, at: &[usize], names: Option<&[String]>) -> Reading {
        let is_json = self.format == "json";
        let column = |at: &usize| Column {
            name: names.map(|names| names[*at].trim_start_matches('\u{feff}').trim().to_string()),
            number: (!is_json).then_some(at + 1),
        };
        self.columns.insert(role.into(), at.iter().map(column).collect());
        self
    }

    /// Sets the labels.
    pub(super) fn with_labels<S: Into<String>>(
        mut self,
        labels: impl IntoIterator<Item = S>,
    ) -> Reading {
        self.labels = labels.into_iter().map(Into::into).collect();
        self
    }

    /// Message for a label that training did not see; `None` for a known one.
    pub(super) fn unknown(&self, label: &str) -> Option<String> {
        (!self.labels.iter().any(|known| known == label)).then(|| {
            format!(
                "the label {:?} is not one that the run has learned: {}",
                say::short(label, 40),
                say::list(&self.labels, 8)
            )
        })
    }
}

/// What files are read for.
#[derive(Clone, Debug, Default)]
pub enum Purpose {
    /// To train on them.
    #[default]
    Train,
    /// To evaluate a trained model on them: all examples are one part.
    Evaluate(TrainedImport),
    /// To predict: labels may be missing.
    Predict(TrainedImport),
}

/// Import of a run's data, as its folder records it.
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct TrainedImport {
    /// Name of the task.
    pub task: String,
    /// Files that were read.
    #[serde(default)]
    pub data: Vec<PathBuf>,
    /// Edges of a graph.
    #[serde(default)]
    pub edges: Option<PathBuf>,
    /// How they were read.
    pub reading: Reading,
    /// Folder of the record.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl TrainedImport {
    /// Reads the record of a run, which may be one of several with different seeds. `None` if the
    /// run was not trained on imported data.
    ///
    /// # Errors
    /// If the record cannot be read, or does not say how the files were read.
    pub fn of_run(run: &Path) -> Result<Option<TrainedImport>> {
        let inside = Some(run.join(DATA));
        let above = run.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seed-"));
        let above = run.parent().filter(|_| above).map(|parent| parent.join(DATA));
        let mut folders = [inside, above].into_iter().flatten();
        let Some(folder) = folders.find(|folder| folder.join(RECORD).is_file()) else {
            return Ok(None);
        };
        let path = folder.join(RECORD);
        let text = read_text(&path)?;
        let read = serde_json::from_str::<TrainedImport>(&text).map_err(|error| {
            let again = match error.to_string().contains("missing field `reading`") {
                true => "; an earlier version trained this run: train it again",
                false => "",
            };
            Error::file(&path, format!("does not say how its files were read: {error}{again}"))
        })?;
        Ok(Some(TrainedImport { folder, ..read }))
    }

    /// Returns a file of the user, an image or a recording, on which the model can be tried.
    pub fn example(&self) -> Option<PathBuf> {
        let lists = ["t10k-files.txt", "test.tsv", "valid.tsv", "train.tsv"];
        let list = lists.iter().find_map(|name| read_text(&self.folder.join(name)).ok())?;
        let path = PathBuf::from(list.lines().next()?.split('\t').next()?);
        path.is_file().then_some(path)
    }

    /// Whether the run was trained on one of these files.
    pub fn has_read<'a>(&self, files: &'a [PathBuf]) -> Option<&'a Path> {
        let real = |path: &PathBuf| path.canonicalize().ok();
        let mine: HashSet<PathBuf> = self.data.iter().filter_map(real).collect();
        // Also a file of the folder that was read.
        let is_mine = |path: &&PathBuf| {
            real(path).is_some_and(|path| path.ancestors().any(|part| mine.contains(part)))
        };
        files.iter().find(is_mine).map(PathBuf::as_path)
    }
}

impl Request {
    /// Returns how training read its files; `None` if this is for training.
    pub(super) fn like(&self) -> Option<&Reading> {
        match &self.purpose {
            Purpose::Train => None,
            Purpose::Evaluate(import) | Purpose::Predict(import) => Some(&import.reading),
        }
    }

    /// Returns the recorded separator.
    pub(super) fn separator(&self) -> Option<char> {
        self.like().and_then(|reading| reading.separator)
    }

    /// Returns the recorded columns of a role in a table with this first row, counted from 0;
    /// `None` if none are recorded.
    ///
    /// # Errors
    /// A message about the table, if it lacks one.
    pub(super) fn recorded(
        &self,
        role: &str,
        first: &[String],
        is_json: bool,
    ) -> Result<Option<Vec<usize>>, String> {
        let Some(reading) = self.like() else { return Ok(None) };
        let Some(columns) = reading.columns.get(role) else { return Ok(None) };
        let by_name = is_json || (reading.header == Some(true) && self.header != Some(false));
        // Keys of objects have names only.
        if is_json && columns.iter().any(|column| column.name.is_none()) {
            return Ok(None);
        }
        let one = |column: &Column| match (&column.name, column.number) {
            (Some(wanted), number) if by_name => {
                let is_it = |at: &usize| first.get(*at).is_some_and(|c| name(c) == name(wanted));
                // Two columns may have one name.
                let same = number.and_then(|number| number.checked_sub(1)).filter(is_it);
                let place = same.or_else(|| (0..first.len()).find(is_it));
                place.ok_or_else(|| missing(role, wanted, first, is_json))
            }
            (_, Some(number)) if number <= first.len() => Ok(number - 1),
            (_, Some(number)) => Err(format!(
                "has no column {number}, from which the run reads the {role}; {}{}",
                existing(first),
                another(role, "a number from 1")
            )),
            (wanted, None) => Err(format!(
                "the run reads the {role} from the key {:?} of JSON objects; --no-header needs a \
                 number{}",
                wanted.as_deref().unwrap_or_default(),
                another(role, "a number from 1")
            )),
        };
        columns.iter().map(one).collect::<Result<_, _>>().map(Some)
    }

    /// Returns the request for a table: the recorded columns and header where flags do not choose
    /// others.
    ///
    /// # Errors
    /// A message about the table, if it lacks a recorded column.
    pub(super) fn for_table(&self, table: &Table) -> Result<Cow<'_, Request>, String> {
        let sample = table.sample(1);
        self.for_columns(sample.first().copied().unwrap_or_default(), !table.has_order)
    }

    /// As [`Request::for_table`], for a first row or the keys of an object.
    pub(super) fn for_columns(
        &self,
        first: &[String],
        is_json: bool,
    ) -> Result<Cow<'_, Request>, String> {
        let Some(reading) = self.like() else { return Ok(Cow::Borrowed(self)) };
        let by_name = is_json || (reading.header == Some(true) && self.header != Some(false));
        let mut request = self.clone();
        let mut filled = false;
        let columns = &mut request.columns;
        let slots = [
            &mut columns.text,
            &mut columns.label,
            &mut columns.source,
            &mut columns.target,
            &mut columns.query,
            &mut columns.context,
            &mut columns.question,
            &mut columns.answer,
        ];
        for (role, slot) in FLAGS.into_iter().zip(slots) {
            if slot.is_some() {
                continue;
            }
            let Some(places) = self.recorded(role, first, is_json)? else { continue };
            // A number is unambiguous; keys of objects have none, and a name may be a number.
            let numbered =
                !is_json && first.iter().all(|cell| cell.trim().parse::<usize>().is_err());
            let value = |at: &usize| match by_name && !numbered {
                true => first[*at].trim_start_matches('\u{feff}').trim().to_string(),
                false => (at + 1).to_string(),
            };
            *slot = Some(places.iter().map(value).collect::<Vec<_>>().join(","));
            filled = true;
        }
        if filled && request.header.is_none() {
            request.header = if is_json { Some(true) } else { reading.header };
        }
        Ok(Cow::Owned(request))
    }

    /// Chooses what is evaluated: all of it or, if the data have parts, the one that was asked for,
    /// else the test part, else the validation part. Also returns a sentence about it.
    ///
    /// # Errors
    /// If the part that was asked for is not there.
    pub(super) fn one_part<T>(
        &self,
        [train, valid, test]: [Vec<T>; 3],
    ) -> Result<(Vec<T>, Option<String>)> {
        if valid.is_empty() && test.is_empty() {
            return match self.part {
                Some(part) => Err(Error::invalid(format!(
                    "--part {}: the data have no parts; leave it out to evaluate all of them",
                    part.name()
                ))),
                None => Ok((train, None)),
            };
        }
        let default = if test.is_empty() { Part::Valid } else { Part::Test };
        let part = self.part.unwrap_or(default);
        let chosen = part.of([train, valid, test]);
        match chosen.is_empty() {
            true => {
                Err(Error::invalid(format!("--part {0}: the data have no {0} part", part.name())))
            }
            false => Ok((chosen, Some(format!("the data have parts: read is the {}", told(part))))),
        }
    }
}

/// A part, as sentences name it.
fn told(part: Part) -> &'static str {
    part.of(["training part", "validation part", "test part"])
}

fn missing(role: &str, wanted: &str, first: &[String], is_json: bool) -> String {
    let cells: Vec<&str> = first.iter().map(String::as_str).collect();
    let no_header = match is_json {
        true => "",
        false => "; if the first row is an example and not a header, --no-header",
    };
    format!(
        "has no column {:?}, from which the run reads the {role}; {}{}{}{no_header}",
        say::short(wanted, 40),
        say::did_you_mean(wanted, &cells),
        existing(first),
        another(role, "COLUMN")
    )
}

fn existing(first: &[String]) -> String {
    let cells: Vec<String> =
        first.iter().map(|cell| format!("{:?}", say::short(cell, 40))).collect();
    format!("its columns are {}", say::list(&cells, 12))
}

/// End of a message: the flag that chooses another column, if there is one.
fn another(role: &str, value: &str) -> String {
    match FLAGS.contains(&role) {
        true => format!(". Choose another with --{role}: {value}"),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests;
