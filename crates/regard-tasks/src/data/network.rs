//! A graph: nodes with features and labels, and edges between them.
//!
//! | file | a line |
//! |---|---|
//! | `NAME.nodes.tsv` | node, split (`train`, `valid`, `test` or `-`), label or `-`, features, separated by tabs |
//! | `NAME.edges.tsv` | from node, to node, and features of the edge, if any |
//!
//! Features are separated by spaces: `7` is the value 1 in column 7, `7:0.5` the value 0.5. Nodes
//! are numbered from 0, in order.

use super::Part;
use super::stream::Lines;
use regard_models::{Error, Result};
use std::io::BufRead;
use std::path::Path;

const NO_NODES: &str = "there are no nodes";

/// Largest number of feature columns.
const WIDEST: u32 = 1 << 24;

/// A graph with features and labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphData {
    /// Sparse features of each node: (column, value), ascending by column.
    pub features: Vec<Vec<(u32, f32)>>,
    /// Number of feature columns.
    pub columns: usize,
    /// Label of each node; `None` if unknown.
    pub labels: Vec<Option<String>>,
    /// Part of each node; `None` if it is in no part.
    pub parts: Vec<Option<Part>>,
    /// Edges as (from, to), distinct, ascending.
    pub edges: Vec<(u32, u32)>,
    /// Features of each edge, all of the same length; empty if edges have none.
    pub edge_features: Vec<Vec<f32>>,
}

impl GraphData {
    /// Reads both files.
    ///
    /// # Errors
    /// With the file and the line: an invalid or infinite number; a node out of order; an edge from
    /// or to a node that does not exist.
    pub fn read(nodes: &Path, edges: &Path) -> Result<GraphData> {
        let mut network = GraphData::read_nodes(Lines::open(nodes)?)
            .and_then(|network| network.ok_or_else(|| Error::file(nodes, NO_NODES)))?;
        network.read_edges(Lines::open(edges)?)?;
        Ok(network)
    }

    /// Reads the contents of both files.
    ///
    /// # Errors
    /// As [`GraphData::read`], by line.
    pub fn parse(nodes: &str, edges: &str) -> Result<GraphData> {
        let network = GraphData::read_nodes(Lines::new(nodes.as_bytes(), "nodes"))?;
        let mut network = network.ok_or_else(|| Error::invalid(NO_NODES))?;
        network.read_edges(Lines::new(edges.as_bytes(), "edges"))?;
        Ok(network)
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    /// Returns the number of features of an edge.
    pub fn edge_width(&self) -> usize {
        self.edge_features.first().map_or(0, Vec::len)
    }

    /// Returns the distinct labels, sorted; labels that are integers are sorted as numbers.
    pub fn label_names(&self) -> Vec<String> {
        in_order(self.labels.iter().flatten())
    }

    /// Reads the nodes; returns `None` if there are none.
    fn read_nodes<R: BufRead>(mut lines: Lines<R>) -> Result<Option<GraphData>> {
        let mut network = GraphData::default();
        while let Some(line) = lines.next().transpose()? {
            if line.trim().is_empty() {
                continue;
            }
            let columns: Vec<&str> = line.split('\t').collect();
            let &[id, part, label, ref features @ ..] = &columns[..] else {
                return Err(lines.error(format!("has {} columns, need 3 or 4", columns.len())));
            };
            if id.trim().parse() != Ok(network.len()) {
                let need = network.len();
                return Err(lines.error(format!("node {id:?}: need {need}, nodes in order")));
            }
            network.parts.push(self::part(part).map_err(|message| lines.error(message))?);
            let label = label.trim();
            network.labels.push((!matches!(label, "-" | "")).then(|| label.to_string()));
            let mut row = vec![];
            for token in features.iter().flat_map(|text| text.split_whitespace()) {
                row.push(feature(token).map_err(|message| lines.error(message))?);
            }
            row.sort_by_key(|(column, _)| *column);
            if let Some(twice) = row.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(lines.error(format!("column {} is given twice", twice[0].0)));
            }
            network.columns = network.columns.max(row.last().map_or(0, |last| last.0 as usize + 1));
            network.features.push(row);
        }
        Ok((!network.is_empty()).then_some(network))
    }

    fn read_edges<R: BufRead>(&mut self, mut lines: Lines<R>) -> Result<()> {
        let (mut all, mut width) = (vec![], None);
        while let Some(line) = lines.next().transpose()? {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let &[from, to, ref numbers @ ..] = &words[..] else {
                return Err(lines.error("has 1 column, need two nodes"));
            };
            let node = |word: &str| match word.parse::<u32>() {
                Ok(node) if (node as usize) < self.len() => Ok(node),
                Ok(node) => Err(format!("an edge of node {node}, but there are {}", self.len())),
                Err(_) => Err(format!("{word:?} is not the number of a node")),
            };
            let ends = node(from).and_then(|from| Ok((from, node(to)?)));
            let numbers: Result<Vec<f32>, String> =
                numbers.iter().map(|word| number(word)).collect();
            let (ends, numbers) =
                ends.and_then(|ends| Ok((ends, numbers?))).map_err(|e| lines.error(e))?;
            let (got, need) = (numbers.len(), *width.get_or_insert(numbers.len()));
            if got != need {
                let message = format!("has {got} edge features, need {need} as in the first edge");
                return Err(lines.error(message));
            }
            all.push((ends, numbers));
        }
        all.sort_by_key(|(ends, _)| *ends);
        all.dedup_by_key(|(ends, _)| *ends);
        let known = width.is_some_and(|width| width > 0);
        self.edges = all.iter().map(|(ends, _)| *ends).collect();
        self.edge_features = if known { all.into_iter().map(|(_, n)| n).collect() } else { vec![] };
        Ok(())
    }
}

/// Returns the distinct names, sorted; names that are integers are sorted as numbers.
pub(super) fn in_order<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names: Vec<&String> = names.collect();
    names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(u64::MAX), *name));
    names.dedup();
    names.into_iter().cloned().collect()
}

/// Parses the part of a node or a graph.
pub(super) fn part(word: &str) -> Result<Option<Part>, String> {
    Ok(match word.trim() {
        "train" => Some(Part::Train),
        "val" | "valid" => Some(Part::Valid),
        "test" => Some(Part::Test),
        "none" | "-" | "" => None,
        other => return Err(format!("split: got {other:?}, need train, valid, test or -")),
    })
}

/// Parses `7` or `7:0.5`.
fn feature(token: &str) -> Result<(u32, f32), String> {
    let (column, value) = match token.split_once(':') {
        Some((column, value)) => (column, number(value)?),
        None => (token, 1.0),
    };
    match column.parse::<u32>() {
        Ok(column) if column < WIDEST => Ok((column, value)),
        _ => Err(format!("{column:?} is not a column, need 0 to {}", WIDEST - 1)),
    }
}

fn number(word: &str) -> Result<f32, String> {
    match word.parse::<f32>() {
        Ok(x) if x.is_finite() => Ok(x),
        Ok(x) => Err(format!("got {x}, need a finite number")),
        Err(_) => Err(format!("{word:?} is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    fn read(nodes: &str, edges: &str) -> Result<GraphData> {
        with_file("nodes", nodes.as_bytes(), |path| {
            let beside = path.with_file_name("edges");
            std::fs::write(&beside, edges).unwrap();
            GraphData::read(path, &beside)
        })
    }

    #[test]
    fn nodes_and_edges() {
        let network =
            read("0\ttrain\tb\t2 0:0.5\n1\tval\t-\n2\tnone\ta\t1\n", "0 1\n2\t0\n").unwrap();
        assert_eq!(network.features[0], [(0, 0.5), (2, 1.0)]);
        assert_eq!((network.columns, network.len()), (3, 3));
        assert_eq!(network.label_names(), ["a", "b"]);
        assert_eq!(network.edges, [(0, 1), (2, 0)]);
        assert_eq!(network.parts, [Some(Part::Train), Some(Part::Valid), None]);
        let network = read("0\t-\t1\n1\t-\t10\n", "0 1 0.5 2\n1 0 1 3\n").unwrap();
        assert_eq!(network.edge_features, [[0.5, 2.0], [1.0, 3.0]]);
        assert_eq!(network.label_names(), ["1", "10"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let good = "0\ttrain\ta\t1\n1\ttrain\tb\t2\n";
        for (nodes, edges, message) in [
            ("0\ttrain\n", "", "line 1: has 2 columns"),
            ("1\ttrain\ta\n", "", "line 1: node \"1\": need 0"),
            ("0\tlearn\ta\n", "", "split: got \"learn\""),
            ("0\t-\ta\t1:nan\n", "", "line 1: got NaN"),
            ("0\t-\ta\t1:x\n", "", "\"x\" is not a number"),
            ("0\t-\ta\t1 1\n", "", "column 1 is given twice"),
            ("", "", "there are no nodes"),
            (good, "0 1\n0 2\n", "line 2: an edge of node 2, but there are 2"),
            (good, "0\n", "line 1: has 1 column"),
            (good, "0 -1\n", "\"-1\" is not the number"),
            (good, "0 1 inf\n", "line 1: got inf"),
            (good, "0 1 1\n1 0\n", "line 2: has 0 edge features, need 1"),
        ] {
            let error = read(nodes, edges).unwrap_err().to_string();
            assert!(error.contains(message), "{error}: {message}");
        }
    }
}
