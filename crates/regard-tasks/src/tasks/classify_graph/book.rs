//! Training, validation and test labels of graphs.

use super::wiring::{FeatureWidths, Wiring, fits, wire};
use crate::data::graphs::LabelledGraph;
use crate::data::{GraphData, Part};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_models::gat::Nodes;
use regard_models::{Error, Result};

/// Label of a row without a target, ignored by the loss.
pub(super) const NOT_ASKED: i64 = -100;

/// A graph with one label.
#[derive(Clone, Debug)]
pub struct WholeGraphs {
    /// Nodes, edges and features of the graph.
    pub network: GraphData,
    /// Index of its label.
    pub label: usize,
}

/// A data set with labels of nodes or of graphs.
pub enum GraphDataset {
    /// Nodes of one graph, some of which have labels.
    Nodes {
        /// Whole graph: nodes without a target still take part in message passing.
        nodes: Box<Nodes>,
        /// Label index of each node for train, valid and test; -100 for none.
        wanted: [Vec<i64>; 3],
    },
    /// Graphs with one label each.
    Graphs {
        /// Conversion of edges and features.
        wiring: Wiring,
        /// Number of node features and of edge features.
        widths: FeatureWidths,
        /// Graphs of the train, valid and test part.
        graphs: [Vec<WholeGraphs>; 3],
    },
}

/// A batch.
pub(super) struct Exercise {
    pub nodes: Nodes,
    /// Label index of each output row; [`NOT_ASKED`] if it has no target.
    pub wanted: Vec<i64>,
}

impl Exercise {
    pub fn asked(&self) -> usize {
        self.wanted.iter().filter(|label| **label != NOT_ASKED).count()
    }

    pub fn targets(&self, device: &Device) -> Tensor<1, Int> {
        Tensor::from_data(TensorData::new(self.wanted.clone(), [self.wanted.len()]), device)
    }
}

fn place(part: Part) -> usize {
    part.of([0, 1, 2])
}

/// Returns the index of a label. Data may have the index in place of a name, as Planetoid has.
fn known(labels: &[String], label: &str) -> Result<usize, String> {
    let is_number = |label: &String| label.parse::<usize>().is_ok();
    let index =
        || label.parse().ok().filter(|at| *at < labels.len() && !labels.iter().any(is_number));
    let at = labels.iter().position(|known| known == label).or_else(index);
    at.ok_or_else(|| format!("label {label:?}, the model has {}", crate::say::list(labels, 10)))
}

impl GraphDataset {
    /// Creates a data set from the nodes of one graph; `labels` lists all labels.
    pub fn of_nodes(
        network: &GraphData,
        labels: &[String],
        wiring: Wiring,
        widths: FeatureWidths,
        device: &Device,
    ) -> Result<GraphDataset> {
        let mut wanted = [(); 3].map(|()| vec![NOT_ASKED; network.len()]);
        for (node, (label, part)) in network.labels.iter().zip(&network.parts).enumerate() {
            let (Some(label), Some(part)) = (label, part) else { continue };
            let at =
                known(labels, label).map_err(|e| Error::invalid(format!("node {node}: {e}")))?;
            wanted[place(*part)][node] = at as i64;
        }
        let nodes = Box::new(wire(&[network], wiring, widths, device)?);
        Ok(GraphDataset::Nodes { nodes, wanted })
    }

    /// Creates a data set from graphs with one label each; `labels` lists all labels.
    pub fn of_graphs(
        graphs: Vec<LabelledGraph>,
        labels: &[String],
        wiring: Wiring,
        widths: FeatureWidths,
    ) -> Result<GraphDataset> {
        let mut parts = [(); 3].map(|()| vec![]);
        for (number, LabelledGraph { network, part, label }) in graphs.into_iter().enumerate() {
            fits(&network, widths)?;
            let Some(part) = part else { continue };
            let label = known(labels, &label)
                .map_err(|e| Error::invalid(format!("graph {number}: {e}")))?;
            parts[place(part)].push(WholeGraphs { network, label });
        }
        Ok(GraphDataset::Graphs { wiring, widths, graphs: parts })
    }

    /// Returns the number of examples in a part; node labels of one graph are a single example.
    pub fn examples(&self, part: Part) -> usize {
        match self {
            GraphDataset::Nodes { .. } => 1,
            GraphDataset::Graphs { graphs, .. } => graphs[place(part)].len(),
        }
    }

    /// Returns the number of labels in a part.
    pub fn asked(&self, part: Part) -> usize {
        match self {
            GraphDataset::Nodes { wanted, .. } => {
                wanted[place(part)].iter().filter(|label| **label != NOT_ASKED).count()
            }
            GraphDataset::Graphs { graphs, .. } => graphs[place(part)].len(),
        }
    }

    pub(super) fn exercise(&self, part: Part, examples: &[usize], device: &Device) -> Exercise {
        match self {
            GraphDataset::Nodes { nodes, wanted } => {
                Exercise { nodes: (**nodes).clone(), wanted: wanted[place(part)].clone() }
            }
            GraphDataset::Graphs { wiring, widths, graphs } => {
                let chosen: Vec<&WholeGraphs> =
                    examples.iter().map(|at| &graphs[place(part)][*at]).collect();
                let networks: Vec<&GraphData> = chosen.iter().map(|whole| &whole.network).collect();
                let nodes = wire(&networks, *wiring, *widths, device);
                Exercise {
                    nodes: nodes.expect("all graphs were made for these widths"),
                    wanted: chosen.iter().map(|whole| whole.label as i64).collect(),
                }
            }
        }
    }
}
