//! Graphs with a label each, in the files of one graph ([`GraphData`]) and a third.
//!
//! | file | a line |
//! |---|---|
//! | `NAME.graphs.tsv` | number of nodes, split (`train`, `valid`, `test` or `-`), label, separated by tabs |
//!
//! The nodes of the first graph come first, then those of the second, and so on; edges name nodes
//! by their numbers in the nodes file, and stay within a graph.

use super::network::{in_order, part};
use super::stream::Lines;
use super::{GraphData, Part};
use regard_models::{Error, Result};
use std::path::Path;

/// A graph with a label.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledGraph {
    /// The graph.
    pub network: GraphData,
    /// Part of the graph; `None` if it is in no part.
    pub part: Option<Part>,
    /// Label of the graph.
    pub label: String,
}

/// Reads the three files.
///
/// # Errors
/// As [`GraphData::read`]; a graph without nodes or label, a total number of nodes that differs
/// from the nodes file, an edge between two graphs.
pub fn read(graphs: &Path, nodes: &Path, edges: &Path) -> Result<Vec<LabelledGraph>> {
    let all = GraphData::read(nodes, edges)?;
    let mut lines = Lines::open(graphs)?;
    let mut found: Vec<LabelledGraph> = vec![];
    // The number of the first node of each graph.
    let mut firsts = vec![0];
    while let Some(line) = lines.next().transpose()? {
        if line.trim().is_empty() {
            continue;
        }
        let columns: Vec<&str> = line.split('\t').collect();
        let &[count, word, label] = &columns[..] else {
            return Err(lines.error(format!("has {} columns, need 3", columns.len())));
        };
        let first = firsts[firsts.len() - 1];
        let left = all.len() - first;
        let count: usize = match count.trim().parse() {
            Ok(count) if (1..=left).contains(&count) => count,
            _ => {
                let need = format!("need 1 to {left}, the nodes that are left");
                return Err(lines.error(format!("{count:?} nodes, {need}")));
            }
        };
        let part = part(word).map_err(|message| lines.error(message))?;
        let label = label.trim().to_string();
        if label.is_empty() {
            return Err(lines.error("has no label"));
        }
        let span = first..first + count;
        let network = GraphData {
            features: all.features[span.clone()].to_vec(),
            columns: all.columns,
            labels: all.labels[span.clone()].to_vec(),
            parts: all.parts[span].to_vec(),
            ..GraphData::default()
        };
        found.push(LabelledGraph { network, part, label });
        firsts.push(first + count);
    }
    let covered = firsts[firsts.len() - 1];
    if covered != all.len() {
        let message = format!("has graphs of {covered} nodes, but there are {}", all.len());
        return Err(Error::file(graphs, message));
    }
    let graph_of = |node: u32| firsts.partition_point(|first| *first <= node as usize) - 1;
    for (at, (from, to)) in all.edges.iter().enumerate() {
        let graph = graph_of(*from);
        if graph_of(*to) != graph {
            let message = format!("an edge from node {from} to node {to} of another graph");
            return Err(Error::file(edges, message));
        }
        let (first, network) = (firsts[graph] as u32, &mut found[graph].network);
        network.edges.push((from - first, to - first));
        network.edge_features.extend(all.edge_features.get(at).cloned());
    }
    Ok(found)
}

/// Returns the distinct labels, sorted; labels that are integers are sorted as numbers.
pub fn label_names(graphs: &[LabelledGraph]) -> Vec<String> {
    in_order(graphs.iter().map(|graph| &graph.label))
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    fn parse(graphs: &str, nodes: &str, edges: &str) -> Result<Vec<LabelledGraph>> {
        with_file("graphs", graphs.as_bytes(), |path| {
            let beside = |name: &str, text: &str| {
                let path = path.with_file_name(name);
                std::fs::write(&path, text).unwrap();
                path
            };
            read(path, &beside("nodes-of-graphs", nodes), &beside("edges-of-graphs", edges))
        })
    }

    const NODES: &str = "0\t-\t-\t1\n1\t-\t-\t0\n2\t-\t-\t2\n";

    #[test]
    fn graphs_have_their_nodes_and_edges() {
        let found = parse("2\ttrain\tring\n1\ttest\tdot\n", NODES, "0 1 0.5\n1 0 2\n").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(label_names(&found), ["dot", "ring"]);
        let [ring, dot] = &found[..] else { panic!() };
        assert_eq!((ring.part, dot.part), (Some(Part::Train), Some(Part::Test)));
        assert_eq!(ring.network.edges, [(0, 1), (1, 0)]);
        assert_eq!(ring.network.edge_features, [[0.5], [2.0]]);
        assert_eq!((dot.network.features.len(), dot.network.columns), (1, 3));
        assert_eq!(dot.network.features[0], [(2, 1.0)]);
        let later = parse("1\t-\ta\n2\t-\tb\n", NODES, "2 1\n").unwrap();
        assert_eq!(later[1].network.edges, [(1, 0)]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (graphs, edges, message) in [
            ("2\ttrain\n", "", "line 1: has 2 columns"),
            ("2\ttrain\ta\n2\ttrain\ta\n", "", "line 2: \"2\" nodes, need 1 to 1"),
            ("0\ttrain\ta\n", "", "line 1: \"0\" nodes"),
            ("3\tlearn\ta\n", "", "split: got \"learn\""),
            ("3\ttrain\t \n", "", "has no label"),
            ("2\ttrain\ta\n", "", "graphs of 2 nodes, but there are 3"),
            ("2\ttrain\ta\n1\ttrain\ta\n", "0 1\n1 2\n", "from node 1 to node 2 of another"),
        ] {
            let error = parse(graphs, NODES, edges).unwrap_err().to_string();
            assert!(error.contains(message), "{error}: {message}");
        }
    }
}
