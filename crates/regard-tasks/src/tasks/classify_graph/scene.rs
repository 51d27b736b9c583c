//! The part of a graph that a prediction depends on.

use super::Look;
use std::collections::BTreeMap;

/// The part of a graph that a prediction depends on, to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Nodes, with their distance from the one that was labelled.
    pub nodes: BTreeMap<usize, usize>,
    /// Edges, with the mean attention of their heads.
    pub edges: BTreeMap<(usize, usize), f32>,
}

impl Scene {
    /// The receptive field of a node: those that its last layer attended to, those that they
    /// attended to in the layer before, and so on. Without a node, the whole graph.
    pub fn of(look: &Look, node: Option<usize>) -> Scene {
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

    /// Leaves out all but `most` nodes: the nearest stay, and of equally near ones those with the
    /// most attention. Returns how many are gone.
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
