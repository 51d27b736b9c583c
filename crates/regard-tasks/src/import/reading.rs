//! How training read the user's files, so that other files are read in the same way.
//!
//! An importer notes in a [`Reading`] which columns it chose, the header, the separator and the
//! labels. Training writes it to [`RECORD`](super::RECORD), under the key `reading`; evaluation and
//! prediction read it back as a [`TrainedImport`].

mod header;
mod like;
mod trained;

pub(super) use like::part_told;
pub use trained::TrainedImport;

use super::table::{PARQUET, Table};
use crate::say;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Roles of columns that flags choose.
const FLAGS: [&str; 8] =
    ["text", "label", "source", "target", "query", "context", "question", "answer"];

/// Roles of texts that a model reads to predict.
pub(in crate::import) const TEXT_ROLES: [&str; 2] = ["text", "source"];

/// How files were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Reading {
    /// Kind of the files: `table`, `json`, `parquet`, `conll`, `conllu`, `folders`, `parallel`,
    /// `squad`, `text`.
    pub format: String,
    /// Columns by role: `text`, `label`, `source`, `target`, `query`, `context`, `question`,
    /// `answer`; for graphs also `id`, `features`, `from`, `to`, `edge_features`.
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
    /// How its numbers were scaled; `None` if they are taken as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

/// Scale of the numbers of a column: (x − mean) / deviation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Scale {
    /// Mean of the training table.
    pub mean: f64,
    /// Standard deviation of the training table.
    pub deviation: f64,
}

impl PartialEq for Scale {
    fn eq(&self, other: &Scale) -> bool {
        let bits = |scale: &Scale| [scale.mean.to_bits(), scale.deviation.to_bits()];
        bits(self) == bits(other)
    }
}

impl Eq for Scale {}

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
            scale: None,
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

    /// Whether training saw a label. Labels are mostly in order, and there may be thousands.
    fn is_label(&self, label: &str) -> bool {
        let in_order = self.labels.binary_search_by(|known| known.as_str().cmp(label)).is_ok();
        in_order || self.labels.iter().any(|known| known == label)
    }

    /// Message for a label that training did not see; `None` for a known one.
    pub(super) fn unknown(&self, label: &str) -> Option<String> {
        (!self.is_label(label)).then(|| {
            let known: Vec<&str> = self.labels.iter().map(String::as_str).collect();
            let mean = say::did_you_mean(label, &known);
            format!(
                "the label {:?} is not one that the run has learned: {mean}{}",
                say::short(label, 40),
                say::list_in_line(&self.labels)
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

#[cfg(test)]
mod tests;
