//! Citation graphs of Planetoid.
//!
//! The published files are pickles: `x`, `tx` and `allx` hold features, `y`, `ty` and `ally`
//! one-hot labels, of the training papers, the test papers and all but the test papers; `graph`
//! holds the citations, and `test.index` the node indices of the test papers. The 500 papers after
//! the training papers are the validation part. A folder `derived-text` with the same as plain text
//! is preferred if it exists.

use super::pickled::{self, PickledRows};
use crate::data::{GraphData, Part, ledger, sets};
use regard_models::checkpoint::{read_file, read_text};
use regard_models::{Error, Result};
use std::path::Path;

/// Maximum size of a file in bytes; the largest published one has three million.
const LARGEST: u64 = 1 << 28;

/// Number of validation papers.
const VALID: usize = 500;

/// Names of the graphs.
pub(super) const NAMES: [&str; 2] = ["cora", "citeseer"];

/// Reads a graph of the data set `planetoid` by name.
///
/// # Errors
/// If the name is unknown, or the data set is not found.
pub fn named(name: &str) -> Result<GraphData> {
    if !NAMES.contains(&name) {
        let known = NAMES.join(" or ");
        return Err(Error::invalid(format!("got {name:?}, need a file of edges, {known}")));
    }
    planetoid(&sets::find("planetoid")?, name)
}

/// Reads a graph from the folder of the data set.
pub fn planetoid(folder: &Path, name: &str) -> Result<GraphData> {
    let text = |part: &str| folder.join("derived-text").join(format!("{name}.{part}.tsv"));
    if text("nodes").is_file() {
        return GraphData::read(&text("nodes"), &text("edges"));
    }
    published(folder, name)
}

/// Reads a graph from the published files.
pub fn published(folder: &Path, name: &str) -> Result<GraphData> {
    let path = |part: &str| folder.join(format!("ind.{name}.{part}"));
    let rows = |part: &str| -> Result<PickledRows> {
        let path = path(part);
        ledger::note(&path);
        let bytes = read_file(&path, LARGEST)?;
        let rows = pickled::read(&bytes).and_then(|pickled| pickled.rows());
        rows.map_err(|message| Error::file(path, message))
    };
    let (all, all_labels) = (rows("allx")?, rows("ally")?);
    let (test, test_labels) = (rows("tx")?, rows("ty")?);
    let learned = rows("y")?.rows.len();
    let index = test_index(&path("test.index"), test.rows.len())?;
    let known = all.rows.len();
    // Some papers of Citeseer are in no list: they have neither features nor a label.
    let count = index.iter().map(|at| at + 1).max().unwrap_or(0).max(known);
    let wrong = |part: &str, message: String| Error::file(path(part), message);
    if count > known + 2 * test.rows.len() {
        return Err(wrong("test.index", format!("got paper {}, there are {known}", count - 1)));
    }
    let mut network = GraphData {
        features: vec![vec![]; count],
        columns: all.columns.max(test.columns),
        labels: vec![None; count],
        parts: vec![None; count],
        ..GraphData::default()
    };
    let places = (0..known).chain(index.iter().copied());
    let features = all.rows.into_iter().chain(test.rows);
    let labels = all_labels.rows.iter().chain(&test_labels.rows);
    for ((node, features), label) in places.zip(features).zip(labels) {
        network.features[node] = features;
        network.labels[node] = label.first().map(|(label, _)| label.to_string());
        network.parts[node] = match node {
            _ if node < learned => Some(Part::Train),
            _ if node < learned + VALID => Some(Part::Valid),
            _ if node >= known => Some(Part::Test),
            _ => None,
        };
    }
    network.edges = edges(&path("graph"), count)?;
    Ok(network)
}

fn test_index(path: &Path, count: usize) -> Result<Vec<usize>> {
    ledger::note(path);
    let text = read_text(path)?;
    let read = |(line, word): (usize, &str)| {
        let wrong = || Error::file(path, format!("line {}: got {word:?}, need a number", line + 1));
        word.trim().parse().map_err(|_| wrong())
    };
    let index: Vec<usize> = text.lines().enumerate().map(read).collect::<Result<_>>()?;
    match index.len() == count {
        true => Ok(index),
        false => Err(Error::file(path, format!("got {} papers, need {count}", index.len()))),
    }
}

/// Returns each pair of papers once, the smaller index first, without self-loops.
fn edges(path: &Path, count: usize) -> Result<Vec<(u32, u32)>> {
    ledger::note(path);
    let bytes = read_file(path, LARGEST)?;
    let lists = pickled::read(&bytes).and_then(|pickled| pickled.lists());
    let lists = lists.map_err(|message| Error::file(path, message))?;
    let mut edges = vec![];
    for (node, others) in lists {
        for other in others.into_iter().filter(|other| *other != node) {
            if node.max(other) >= count {
                let message = format!("got edge of node {}, need below {count}", node.max(other));
                return Err(Error::file(path, message));
            }
            edges.push((node.min(other) as u32, node.max(other) as u32));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sets;

    #[test]
    fn the_published_files_are_the_plain_text() {
        let Ok(folder) = sets::find("planetoid") else {
            regard_fuzz::skip("planetoid is not in REGARD_DATA");
            return;
        };
        for name in ["cora", "citeseer"] {
            let (text, published) = (planetoid(&folder, name), published(&folder, name));
            let (text, published) = (text.unwrap(), published.unwrap());
            let asked = |network: &GraphData, part| {
                let is = |p: &&Option<Part>| **p == Some(part);
                network.parts.iter().filter(is).count()
            };
            for part in [Part::Train, Part::Valid, Part::Test] {
                assert_eq!(asked(&text, part), asked(&published, part), "{name} {part:?}");
            }
            assert_eq!(text.columns, published.columns);
            assert_eq!(text.edges, published.edges, "{name}");
            for node in 0..text.len() {
                let columns = |network: &GraphData| -> Vec<u32> {
                    network.features[node].iter().map(|(column, _)| *column).collect()
                };
                assert_eq!(columns(&text), columns(&published), "{name} {node}");
                if text.parts[node].is_some() {
                    assert_eq!(text.labels[node], published.labels[node], "{name} {node}");
                    assert_eq!(text.parts[node], published.parts[node], "{name} {node}");
                }
            }
        }
    }
}
