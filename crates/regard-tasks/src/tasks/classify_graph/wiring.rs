//! Conversion of a graph to model input.

use crate::data::GraphData;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Graph;
use regard_attention::layers::{GraphEdges, NodeFeatures};
use regard_attention::ops::Sparse;
use regard_models::gat::Nodes;
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Configuration of the conversion of edges and features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wiring {
    /// Whether edges are undirected, so that both ends attend to each other; true by default.
    pub both_ways: bool,
    /// Whether self-loops are added, with the mean edge features of the node's incoming edges; true
    /// by default.
    pub loops: bool,
    /// Whether the features of each node are scaled to an absolute sum of 1; true by default.
    pub normalize: bool,
}

impl Default for Wiring {
    fn default() -> Wiring {
        Wiring { both_ways: true, loops: true, normalize: true }
    }
}

/// Numbers of features that a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureWidths {
    /// Features of a node.
    pub node: usize,
    /// Features of an edge.
    pub edge: usize,
}

/// Batches graphs into one disconnected graph, for a model with `widths` features.
pub fn wire(
    networks: &[&GraphData],
    wiring: Wiring,
    widths: FeatureWidths,
    device: &Device,
) -> Result<Nodes> {
    let FeatureWidths { node: columns, edge: edge_width } = widths;
    let (mut rows, mut values) = (vec![], vec![]);
    let (mut indptr, mut indices, mut edges) = (vec![0i64], vec![], vec![]);
    let mut first = 0;
    for network in networks {
        fits(network, widths)?;
        for features in &network.features {
            let sum: f64 = features.iter().map(|(_, x)| f64::from(x.abs())).sum();
            let scale = if wiring.normalize && sum > 0.0 { 1.0 / sum } else { 1.0 };
            rows.push(features.iter().map(|(column, _)| *column).collect::<Vec<u32>>());
            values.extend(features.iter().map(|(_, x)| (f64::from(*x) * scale) as f32));
        }
        for seen in neighbours(network, wiring, edge_width) {
            for (source, numbers) in seen {
                indices.push(first + i64::from(source));
                edges.extend(numbers);
            }
            indptr.push(indices.len() as i64);
        }
        first += network.len() as i64;
    }
    let features = Sparse::new(&rows, columns).map_err(|e| Error::invalid(e.0))?;
    let known = (edge_width > 0).then(|| {
        Tensor::<2>::from_data(TensorData::new(edges, [indices.len(), edge_width]), device)
    });
    Ok(Nodes {
        features: NodeFeatures::Sparse(Arc::new(features), Arc::new(values)),
        along: GraphEdges::new(Graph::new(&indptr, &indices), known),
        graphs: networks.iter().map(|network| network.len()).collect(),
    })
}

/// Checks that a graph has the number of node and edge features that a model expects.
pub fn fits(network: &GraphData, widths: FeatureWidths) -> Result<()> {
    let FeatureWidths { node: columns, edge: edge_width } = widths;
    // A graph without edges fits any number of edge features.
    let width = match network.edges.is_empty() {
        true => edge_width,
        false => network.edge_width(),
    };
    match width == edge_width && network.columns <= columns {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the graph has {} columns and {width} edge features, the model {columns} and \
             {edge_width}",
            network.columns
        ))),
    }
}

/// Returns the neighbours that each node attends to, ascending, with the edge features.
fn neighbours(network: &GraphData, wiring: Wiring, width: usize) -> Vec<BTreeMap<u32, Vec<f32>>> {
    let mut seen = vec![BTreeMap::new(); network.len()];
    let numbers = |at: usize| network.edge_features.get(at).cloned().unwrap_or_default();
    for (at, (from, to)) in network.edges.iter().enumerate() {
        seen[*to as usize].insert(*from, numbers(at));
    }
    // Explicit edges take precedence over reversed ones, so these are added last.
    for (at, (from, to)) in network.edges.iter().enumerate().filter(|_| wiring.both_ways) {
        seen[*from as usize].entry(*to).or_insert_with(|| numbers(at));
    }
    for (node, seen) in seen.iter_mut().enumerate().filter(|_| wiring.loops) {
        // Self-loops of the file are replaced, as in other implementations.
        seen.remove(&(node as u32));
        let mut mean = vec![0.0; width];
        for numbers in seen.values() {
            mean.iter_mut().zip(numbers).for_each(|(m, x)| *m += x / seen.len() as f32);
        }
        seen.insert(node as u32, mean);
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(node: usize, edge: usize) -> FeatureWidths {
        FeatureWidths { node, edge }
    }

    #[test]
    fn loops_and_both_ways_and_the_mean_of_edges() {
        let network = GraphData {
            features: vec![vec![(0, 1.0), (2, 3.0)], vec![], vec![(1, 2.0)]],
            columns: 3,
            labels: vec![None; 3],
            parts: vec![None; 3],
            edges: vec![(0, 1), (1, 1), (2, 1)],
            edge_features: vec![vec![1.0], vec![9.0], vec![3.0]],
        };
        let device = Device::flex();
        let nodes = wire(&[&network, &network], Wiring::default(), widths(4, 1), &device).unwrap();
        assert_eq!(nodes.along.graph().indptr(), [0, 2, 5, 7, 9, 12, 14]);
        assert_eq!(nodes.along.graph().indices(), [0, 1, 0, 1, 2, 1, 2, 3, 4, 3, 4, 5, 4, 5]);
        let NodeFeatures::Sparse(_, values) = &nodes.features else { panic!() };
        assert_eq!(values[..3], [0.25, 0.75, 1.0]);
        let seen = neighbours(&network, Wiring::default(), 1);
        assert_eq!(seen[1][&1], [2.0]);
        let alone = Wiring { both_ways: false, loops: false, ..Wiring::default() };
        assert!(neighbours(&network, alone, 1)[0].is_empty());
        let both = GraphData {
            edges: vec![(0, 1), (1, 0), (1, 2)],
            edge_features: vec![vec![1.0], vec![7.0], vec![3.0]],
            ..network.clone()
        };
        let seen = neighbours(&both, Wiring::default(), 1);
        assert_eq!(
            (&seen[1][&0], &seen[0][&1], &seen[1][&2]),
            (&vec![1.0], &vec![7.0], &vec![3.0])
        );
        let lonely = GraphData { edges: vec![], edge_features: vec![], ..network.clone() };
        let nodes = wire(&[&lonely], Wiring::default(), widths(3, 1), &device).unwrap();
        assert_eq!(nodes.along.graph().indices(), [0, 1, 2]);
        let error = wire(&[&network], Wiring::default(), widths(2, 1), &device).unwrap_err();
        assert!(error.to_string().contains("3 columns"), "{error}");
    }
}
