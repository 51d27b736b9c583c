//! What is learned from, what decides, what is reported.

use super::wiring::{Wiring, fits, wire};
use crate::data::graphs::Labelled;
use crate::data::{Network, Part};
use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_models::gat::Nodes;
use regard_models::{Error, Result};

/// A row that nobody is asked about.
pub(super) const NOT_ASKED: i64 = -100;

/// A graph with a label of its own.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The graph.
    pub network: Network,
    /// The number of its label.
    pub label: usize,
}

/// What there is to learn.
pub enum Book {
    /// The nodes of one graph, of which some have labels.
    Nodes {
        /// All of it: what is not asked about is still seen.
        nodes: Box<Nodes>,
        /// The number of each node's label, by part.
        wanted: [Vec<i64>; 3],
    },
    /// Graphs that have a label each, by part.
    Graphs {
        /// How they are wired.
        wiring: Wiring,
        /// Columns of a node, numbers of an edge.
        widths: (usize, usize),
        /// The graphs.
        graphs: [Vec<Whole>; 3],
    },
}

/// A batch.
pub(super) struct Exercise {
    pub nodes: Nodes,
    /// For each row of what the model says; [`NOT_ASKED`] where nobody asks.
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

/// The number of a label.
fn known(labels: &[String], label: &str) -> Result<usize, String> {
    let at = labels.iter().position(|known| known == label);
    at.ok_or_else(|| format!("label {label:?}, the model knows {}", crate::say::list(labels, 10)))
}

impl Book {
    /// The nodes of a graph; `labels` are all there are.
    pub fn of_nodes(
        network: &Network,
        labels: &[String],
        wiring: Wiring,
        widths: (usize, usize),
        device: &Device,
    ) -> Result<Book> {
        let mut wanted = [(); 3].map(|()| vec![NOT_ASKED; network.len()]);
        for (node, (label, part)) in network.labels.iter().zip(&network.parts).enumerate() {
            let (Some(label), Some(part)) = (label, part) else { continue };
            let at =
                known(labels, label).map_err(|e| Error::invalid(format!("node {node}: {e}")))?;
            wanted[place(*part)][node] = at as i64;
        }
        let nodes = Box::new(wire(&[network], wiring, widths, device)?);
        Ok(Book::Nodes { nodes, wanted })
    }

    /// Graphs with a label each; `labels` are all there are.
    pub fn of_graphs(
        graphs: Vec<Labelled>,
        labels: &[String],
        wiring: Wiring,
        widths: (usize, usize),
    ) -> Result<Book> {
        let mut parts = [(); 3].map(|()| vec![]);
        for (number, Labelled { network, part, label }) in graphs.into_iter().enumerate() {
            fits(&network, widths)?;
            let Some(part) = part else { continue };
            let label = known(labels, &label)
                .map_err(|e| Error::invalid(format!("graph {number}: {e}")))?;
            parts[place(part)].push(Whole { network, label });
        }
        Ok(Book::Graphs { wiring, widths, graphs: parts })
    }

    /// How many examples a part has: a whole graph of nodes is one.
    pub fn examples(&self, part: Part) -> usize {
        match self {
            Book::Nodes { .. } => 1,
            Book::Graphs { graphs, .. } => graphs[place(part)].len(),
        }
    }

    /// How many labels are asked for in a part.
    pub fn asked(&self, part: Part) -> usize {
        match self {
            Book::Nodes { wanted, .. } => {
                wanted[place(part)].iter().filter(|label| **label != NOT_ASKED).count()
            }
            Book::Graphs { graphs, .. } => graphs[place(part)].len(),
        }
    }

    pub(super) fn exercise(&self, part: Part, examples: &[usize], device: &Device) -> Exercise {
        match self {
            Book::Nodes { nodes, wanted } => {
                Exercise { nodes: (**nodes).clone(), wanted: wanted[place(part)].clone() }
            }
            Book::Graphs { wiring, widths, graphs } => {
                let chosen: Vec<&Whole> =
                    examples.iter().map(|at| &graphs[place(part)][*at]).collect();
                let networks: Vec<&Network> = chosen.iter().map(|whole| &whole.network).collect();
                let nodes = wire(&networks, *wiring, *widths, device);
                Exercise {
                    nodes: nodes.expect("all graphs were made for these widths"),
                    wanted: chosen.iter().map(|whole| whole.label as i64).collect(),
                }
            }
        }
    }
}
