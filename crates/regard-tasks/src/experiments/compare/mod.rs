//! Layers side by side: recurrent ones, convolution and self-attention of one width on one task,
//! measured. One file a comparison, and one row each in [`COMPARISONS`].

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

pub use layer::Kind;
pub use summary::summary;

use regard_models::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// Says how many bytes a process took at most that did one [`probe`], by its name and length.
pub type Probe<'a> = &'a dyn Fn(&str, usize) -> Option<u64>;

/// How a comparison is made.
pub struct Options<'a> {
    /// Fewer lengths and steps: all of it in less than a minute.
    pub quick: bool,
    /// Where all randomness comes from.
    pub seed: u64,
    /// The most memory that a process of its own had over one [`probe`], in bytes. What a process
    /// had before cannot be taken back, so each measurement needs one.
    pub peak_memory: Option<Probe<'a>>,
}

/// A curve of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Whose it is.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// Something to draw.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// Its name as part of a file's.
    pub name: String,
    /// Above it.
    pub title: String,
    /// What goes to the right.
    pub x: String,
    /// What goes up.
    pub y: String,
    /// Whether the axis to the right, and that upwards, is divided by powers.
    pub logarithmic: [bool; 2],
    /// The curves.
    pub lines: Vec<Line>,
}

/// What came of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// The comparison's name.
    pub name: String,
    /// What was asked.
    pub question: String,
    /// How it was measured.
    pub method: String,
    /// The heading of a table.
    pub heading: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
    /// What to draw.
    pub figures: Vec<Figure>,
    /// Every number that matters, by a name of the form `layer.what`.
    pub numbers: BTreeMap<String, f64>,
}

impl Finding {
    /// With the heading of its table.
    fn new(method: impl Into<String>, heading: &[&str]) -> Finding {
        let heading = heading.iter().map(|cell| cell.to_string()).collect();
        Finding { method: method.into(), heading, ..Finding::default() }
    }

    fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.heading.len(), "a cell for each column");
        self.rows.push(cells);
    }

    fn number(&mut self, of: &str, what: &str, value: f64) {
        self.numbers.insert(format!("{of}.{what}"), value);
    }

    /// A number by its name.
    pub fn get(&self, of: &str, what: &str) -> Option<f64> {
        self.numbers.get(&format!("{of}.{what}")).copied()
    }
}

/// A comparison that can be made.
pub struct Comparison {
    /// What it is called.
    pub name: &'static str,
    /// What it asks.
    pub question: &'static str,
    measure: fn(&Options) -> Result<Finding>,
}

impl Comparison {
    /// Makes it.
    pub fn measure(&self, options: &Options) -> Result<Finding> {
        let found = (self.measure)(options)?;
        Ok(Finding { name: self.name.into(), question: self.question.into(), ..found })
    }
}

/// All of them, in the order in which they are told.
pub const COMPARISONS: &[Comparison] = &[
    Comparison {
        name: "cost",
        question: "What do time and memory of a layer do when sequences grow?",
        measure: cost::measure,
    },
    Comparison {
        name: "path",
        question: "How many steps from the first position to the last, and can they be shared?",
        measure: path::measure,
    },
    Comparison {
        name: "gradient",
        question: "What is left of the gradient at a distance?",
        measure: gradient::measure,
    },
    Comparison {
        name: "distance",
        question: "Which layer learns to recall the first symbol at the end?",
        measure: distance::measure,
    },
    Comparison {
        name: "positions",
        question: "Which positions still work beyond the length that was trained?",
        measure: positions::measure,
    },
    Comparison {
        name: "tagging",
        question: "A window of neighbours through a layer, or self-attention, for tags?",
        measure: tagging::measure,
    },
    Comparison {
        name: "graph",
        question: "Should a node attend to all nodes, or along edges only?",
        measure: graph::measure,
    },
    Comparison {
        name: "noise",
        question: "Global, local or mixed attention, near and far, when there is noise?",
        measure: noise::measure,
    },
    Comparison {
        name: "without",
        question: "What does attention cost a model that could do without?",
        measure: without::measure,
    },
];

/// A comparison by its name.
pub fn find(name: &str) -> Result<&'static Comparison> {
    COMPARISONS.iter().find(|comparison| comparison.name == name).ok_or_else(|| {
        let names: Vec<_> = COMPARISONS.iter().map(|comparison| comparison.name).collect();
        Error::invalid(format!("got {name:?}, need one of {}", names.join(", ")))
    })
}

/// One training step of a layer, or of a model of `without`, on a sequence of a length: what
/// [`Options::peak_memory`] is asked about, by a name of ours.
pub fn probe(name: &str, length: usize) -> Result<()> {
    match Kind::ALL.into_iter().find(|kind| kind.name() == name) {
        Some(kind) => {
            cost::Step::new(kind, length, 0).run();
            Ok(())
        }
        None => without::probe(name, length),
    }
}

/// Bytes for people.
fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

#[cfg(test)]
pub(crate) fn quick(name: &str) -> Finding {
    let options = Options { quick: true, seed: 0, peak_memory: None };
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
        let error = find("speed").err().unwrap().to_string();
        assert!(error.contains("\"speed\"") && error.contains("cost, path"), "{error}");
        assert!(probe("nothing", 8).is_err());
    }
}
