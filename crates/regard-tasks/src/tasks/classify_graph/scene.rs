//! The part of a graph that a prediction depends on.

use super::GraphPrediction;
use std::collections::BTreeMap;

/// Part of a graph that a prediction depends on, for drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Nodes, with their distance in hops from the labelled node.
    pub nodes: BTreeMap<usize, usize>,
    /// Edges `(from, to)`, with attention weights averaged over heads.
    pub edges: BTreeMap<(usize, usize), f32>,
}

impl Scene {
    /// Returns the receptive field of a node: the nodes that the last layer attended to, those that
    /// they attended to in the layer before, and so on. Without a node, the whole graph.
    pub fn of(look: &GraphPrediction, node: Option<usize>) -> Scene {
        let mean = |heads: &[f32]| heads.iter().sum::<f32>() / heads.len().max(1) as f32;
        let mut scene = Scene::default();
        let Some(node) = node else {
            for (from, to, heads) in look.layers.last().into_iter().flatten() {
                scene.nodes.extend([(*from, 1), (*to, 1)]);
                scene.edges.insert((*from, *to), mean(heads));
            }
            return scene;
        };
        scene.nodes.insert(node, 0);
        for (ring, layer) in (1..).zip(look.layers.iter().rev()) {
            let reached = scene.nodes.clone();
            for (from, to, heads) in layer.iter().filter(|edge| reached.contains_key(&edge.1)) {
                scene.nodes.entry(*from).or_insert(ring);
                scene.edges.entry((*from, *to)).or_insert(mean(heads));
            }
        }
        scene
    }

    /// Keeps at most `most` nodes: the nearest, and among equally near ones those with the most
    /// attention. Returns the number of nodes removed.
    pub fn keep(&mut self, most: usize) -> usize {
        let mut weight: BTreeMap<usize, f32> = BTreeMap::new();
        for ((from, _), of) in self.edges.iter().filter(|((from, to), _)| from != to) {
            let heaviest = weight.entry(*from).or_insert(0.0);
            *heaviest = heaviest.max(*of);
        }
        let weigh = |node: &usize| weight.get(node).copied().unwrap_or(0.0);
        let mut order: Vec<(usize, usize)> =
            self.nodes.iter().map(|(n, ring)| (*n, *ring)).collect();
        order.sort_by(|a, b| a.1.cmp(&b.1).then(weigh(&b.0).total_cmp(&weigh(&a.0))));
        let left_out = order.len().saturating_sub(most);
        order.truncate(most);
        self.nodes = order.into_iter().collect();
        self.edges
            .retain(|(from, to), _| self.nodes.contains_key(from) && self.nodes.contains_key(to));
        left_out
    }
}
