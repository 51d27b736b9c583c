//! Comparisons of recurrent layers, convolution and self-attention of the same width on the same
//! task. One file per comparison, and one row each in [`COMPARISONS`].

mod cost;
mod distance;
mod gradient;
mod graph;
mod layer;
mod learn;
mod noise;
mod path;
mod positions;
mod summary;
mod tagging;
mod without;

pub use layer::LayerKind;
pub use summary::summary;

use regard_models::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// Returns the peak memory, in bytes, of a process that runs one [`probe`] with this name and
/// length; `None` if it cannot be measured.
pub type ExternalProbe<'a> = &'a dyn Fn(&str, usize) -> Option<u64>;

/// Options of a comparison.
pub struct CompareOptions<'a> {
    /// Whether to use fewer lengths and steps: about a minute for all comparisons.
    pub quick: bool,
    /// Seed of all randomness.
    pub seed: u64,
    /// Measures the peak memory of one [`probe`] in a new process, since the peak of a process
    /// never decreases. `None` to leave memory out.
    pub peak_memory: Option<ExternalProbe<'a>>,
}

/// A curve of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y), in ascending x.
    pub points: Vec<(f64, f64)>,
}

/// A line plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// Name, used in file names.
    pub name: String,
    /// Title above the plot.
    pub title: String,
    /// Label of the x axis.
    pub x: String,
    /// Label of the y axis.
    pub y: String,
    /// Whether the x axis and the y axis are logarithmic.
    pub logarithmic: [bool; 2],
    /// Curves of the plot.
    pub lines: Vec<Line>,
}

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComparisonResult {
    /// Name of the comparison.
    pub name: String,
    /// Question that the comparison answers.
    pub question: String,
    /// Description of the measurement.
    pub method: String,
    /// Column names of the table.
    pub heading: Vec<String>,
    /// Rows of the table, a cell for each column.
    pub rows: Vec<Vec<String>>,
    /// Plots of the results.
    pub figures: Vec<Figure>,
    /// Measured values by names of the form `layer.what`.
    pub numbers: BTreeMap<String, f64>,
}

impl ComparisonResult {
    /// Creates an empty finding with the columns of its table.
    fn new(method: impl Into<String>, heading: &[&str]) -> ComparisonResult {
        let heading = heading.iter().map(|cell| cell.to_string()).collect();
        ComparisonResult { method: method.into(), heading, ..ComparisonResult::default() }
    }

    fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.heading.len(), "a cell for each column");
        self.rows.push(cells);
    }

    fn number(&mut self, of: &str, what: &str, value: f64) {
        self.numbers.insert(format!("{of}.{what}"), value);
    }

    /// Returns the measured value `of.what`.
    pub fn get(&self, of: &str, what: &str) -> Option<f64> {
        self.numbers.get(&format!("{of}.{what}")).copied()
    }
}

/// A comparison that can be run.
pub struct Comparison {
    /// Name of the comparison.
    pub name: &'static str,
    /// Question that it answers.
    pub question: &'static str,
    measure: fn(&CompareOptions) -> Result<ComparisonResult>,
}

impl Comparison {
    /// Runs the comparison.
    pub fn measure(&self, options: &CompareOptions) -> Result<ComparisonResult> {
        let found = (self.measure)(options)?;
        Ok(ComparisonResult { name: self.name.into(), question: self.question.into(), ..found })
    }
}

/// All comparisons, in the order of presentation.
pub const COMPARISONS: &[Comparison] = &[
    Comparison {
        name: "cost",
        question: "How do time and memory of a layer grow with the length?",
        measure: cost::measure,
    },
    Comparison {
        name: "path",
        question: "How long is the path from the first position to the last, and how parallel?",
        measure: path::measure,
    },
    Comparison {
        name: "gradient",
        question: "How much of the gradient is left at a distance?",
        measure: gradient::measure,
    },
    Comparison {
        name: "distance",
        question: "Which layer learns to recall the first symbol at the end?",
        measure: distance::measure,
    },
    Comparison {
        name: "positions",
        question: "Which position encodings work beyond the trained length?",
        measure: positions::measure,
    },
    Comparison {
        name: "tagging",
        question: "Which tags better: a linear layer over neighbours, or self-attention?",
        measure: tagging::measure,
    },
    Comparison {
        name: "graph",
        question: "Should a node attend to all nodes, or along edges only?",
        measure: graph::measure,
    },
    Comparison {
        name: "noise",
        question: "Which attention finds a near or far signal in noise: global, local or mixed?",
        measure: noise::measure,
    },
    Comparison {
        name: "seq2seq",
        question: "What does attention cost in an encoder-decoder, compared with none?",
        measure: without::measure,
    },
];

/// Returns a comparison by its name.
pub fn find(name: &str) -> Result<&'static Comparison> {
    // `seq2seq` was called `without`.
    let name = if name == "without" { "seq2seq" } else { name };
    COMPARISONS.iter().find(|comparison| comparison.name == name).ok_or_else(|| {
        let names: Vec<_> = COMPARISONS.iter().map(|comparison| comparison.name).collect();
        Error::invalid(format!("got {name:?}, need one of {}", names.join(", ")))
    })
}

/// Runs one training step of a layer, or of a model of the comparison `seq2seq`, on a sequence of
/// this length, for [`CompareOptions::peak_memory`].
pub fn probe(name: &str, length: usize) -> Result<()> {
    match LayerKind::ALL.into_iter().find(|kind| kind.name() == name) {
        Some(kind) => {
            cost::Step::new(kind, length, 0).run();
            Ok(())
        }
        None => without::probe(name, length),
    }
}

/// Formats bytes in megabytes.
fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

#[cfg(test)]
pub(crate) fn quick(name: &str) -> ComparisonResult {
    let options = CompareOptions { quick: true, seed: 0, peak_memory: None };
    find(name).unwrap().measure(&options).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_refused() {
        for comparison in COMPARISONS {
            assert_eq!(find(comparison.name).unwrap().question, comparison.question);
        }
        assert_eq!(find("without").unwrap().name, "seq2seq");
        let error = find("speed").err().unwrap().to_string();
        assert!(error.contains("\"speed\"") && error.contains("cost, path"), "{error}");
        assert!(probe("nothing", 8).is_err());
    }
}
