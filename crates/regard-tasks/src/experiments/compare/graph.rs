//! Nodes that attend to all nodes, or along edges only: one layer of graph attention on Cora if it
//! is on this machine, else on random communities.

use super::learn::{Draws, accuracy, device, integers, loss, percent, train};
use super::{CompareOptions, ComparisonResult};
use crate::classify_graph::planetoid;
use crate::data::{GraphData, Part, sets};
use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};
use regard_attention::layers::{Linear, LinearConfig};
use regard_attention::mask::edges;
use regard_attention::{Attention, Init};
use regard_models::{Error, Result};
use std::path::Path;
use std::time::Instant;

const HEADS: usize = 4;
const HEAD: usize = 8;

/// Nodes with features, classes and edges.
struct Nodes {
    name: &'static str,
    /// `[N, features]`
    features: Vec<f32>,
    width: usize,
    classes: Vec<usize>,
    kinds: usize,
    /// Neighbours of each node, including itself.
    near: Vec<Vec<usize>>,
    train: Vec<usize>,
    test: Vec<usize>,
}

impl Nodes {
    /// Draws communities: most words of a node are of any class, most of its edges within its own.
    fn drawn(seed: u64) -> Nodes {
        const COUNT: usize = 300;
        const KINDS: usize = 5;
        const WORDS: usize = 60;
        let mut draws = Draws::new(seed, 1);
        let classes: Vec<usize> = (0..COUNT).map(|_| draws.below(KINDS)).collect();
        let mut features = vec![0.0; COUNT * WORDS];
        let mut near: Vec<Vec<usize>> = (0..COUNT).map(|i| vec![i]).collect();
        for i in 0..COUNT {
            for _ in 0..6 {
                // Every fourth word is specific to the class.
                let own = classes[i] * (WORDS / KINDS) + draws.below(WORDS / KINDS);
                let any = draws.below(WORDS);
                let word = if draws.below(4) == 0 { own } else { any };
                features[i * WORDS + word] = 1.0;
            }
            for _ in 0..3 {
                let other = draws.below(COUNT);
                if classes[other] == classes[i] || draws.below(8) == 0 {
                    near[i].push(other);
                    near[other].push(i);
                }
            }
        }
        let (train, test) = ((0..60).collect(), (100..COUNT).collect());
        let nodes = Nodes {
            name: "drawn communities",
            features,
            width: WORDS,
            classes,
            kinds: KINDS,
            near,
            train,
            test,
        };
        nodes.tidy()
    }

    /// Reads Cora, with the standard split.
    fn cora(folder: &Path) -> Result<Nodes> {
        let GraphData { features: words, columns: width, labels, parts, edges, .. } =
            planetoid(folder, "cora")?;
        let count = words.len();
        let mut features = vec![0.0; count * width];
        for (i, row) in words.iter().enumerate() {
            // Rows sum to 1, as in the papers.
            row.iter().for_each(|(word, _)| {
                features[i * width + *word as usize] = 1.0 / row.len() as f32;
            });
        }
        let mut near: Vec<Vec<usize>> = (0..count).map(|i| vec![i]).collect();
        for (a, b) in edges {
            near[a as usize].push(b as usize);
            near[b as usize].push(a as usize);
        }
        let of = |part| (0..count).filter(|i| parts[*i] == Some(part)).collect();
        let (train, test) = (of(Part::Train), of(Part::Test));
        let class = |label: &Option<String>| label.as_ref()?.parse().ok();
        let classes: Vec<usize> = labels.iter().map(|label| class(label).unwrap_or(0)).collect();
        let kinds = classes.iter().max().map_or(1, |most| most + 1);
        let name = "Cora";
        Ok(Nodes { name, features, width, classes, kinds, near, train, test }.tidy())
    }

    /// Removes duplicate edges.
    fn tidy(mut self) -> Nodes {
        for near in &mut self.near {
            near.sort_unstable();
            near.dedup();
        }
        self
    }

    fn count(&self) -> usize {
        self.classes.len()
    }

    /// Returns the mask of attention along the edges.
    fn along(&self) -> regard_attention::mask::Mask {
        let (mut ends, mut indices) = (vec![0i64], vec![]);
        for near in &self.near {
            indices.extend(near.iter().map(|j| *j as i64));
            ends.push(indices.len() as i64);
        }
        edges(&ends, &indices)
    }

    fn pairs(&self) -> usize {
        self.near.iter().map(Vec::len).sum()
    }
}

#[derive(Module, Debug)]
struct Model {
    project: Linear,
    a_q: Param<Tensor<2>>,
    a_k: Param<Tensor<2>>,
    classes: Linear,
}

impl Model {
    fn new(nodes: &Nodes, seed: u64) -> Model {
        let init = &mut Init::new(seed, &device());
        Model {
            project: LinearConfig::new(nodes.width, HEADS * HEAD).init(init),
            a_q: init.normal([HEADS, HEAD], 0.3),
            a_k: init.normal([HEADS, HEAD], 0.3),
            classes: LinearConfig::new(HEADS * HEAD, nodes.kinds).init(init),
        }
    }

    /// `[N, features]` → `[N, kinds]`
    fn forward(&self, x: Tensor<2>, along: Option<&regard_attention::mask::Mask>) -> Tensor<2> {
        let [n, _] = x.dims();
        let heads = self.project.forward(x).reshape([1, n, HEADS, HEAD]).swap_dims(1, 2);
        let mut attention = Attention::edge(self.a_q.val(), self.a_k.val(), 0.2);
        if let Some(mask) = along {
            attention = attention.mask(mask.clone());
        }
        let seen = attention.attend(heads.clone(), heads.clone(), heads);
        let seen = seen.swap_dims(1, 2).reshape([n, HEADS * HEAD]);
        self.classes.forward(burn::tensor::activation::relu(seen))
    }
}

/// Trains a model and returns its accuracy on test nodes and the seconds of a step.
fn learned(nodes: &Nodes, by_edges: bool, steps: u64, seed: u64) -> (f64, f64) {
    let shape = [nodes.count(), nodes.width];
    let x: Tensor<2> = Tensor::from_data(TensorData::new(nodes.features.clone(), shape), &device());
    let along = by_edges.then(|| nodes.along());
    let chosen = |logits: Tensor<2>, places: &[usize]| {
        let wanted: Vec<usize> = places.iter().map(|i| nodes.classes[*i]).collect();
        (logits.select(0, integers(places, [places.len()])), wanted)
    };
    let started = Instant::now();
    let model = train(Model::new(nodes, seed), steps, 1e-2, |model, _| {
        let (logits, wanted) = chosen(model.forward(x.clone(), along.as_ref()), &nodes.train);
        loss(logits, &wanted)
    });
    let seconds = started.elapsed().as_secs_f64() / steps as f64;
    let (logits, wanted) = chosen(model.forward(x.clone(), along.as_ref()), &nodes.test);
    (accuracy(logits, &wanted), seconds)
}

pub fn measure(options: &CompareOptions) -> Result<ComparisonResult> {
    let nodes = match sets::find("planetoid").ok().filter(|_| !options.quick) {
        Some(folder) => Nodes::cora(&folder)?,
        None => Nodes::drawn(options.seed),
    };
    if nodes.train.is_empty() || nodes.test.is_empty() {
        return Err(Error::invalid(format!("{}: no training or test nodes", nodes.name)));
    }
    let steps = 60;
    let mut found = ComparisonResult::new(
        format!(
            "{}: {} nodes, {} for training, {} classes; one layer of graph attention with {HEADS} \
             heads of {HEAD}, {steps} steps",
            nodes.name,
            nodes.count(),
            nodes.train.len(),
            nodes.kinds
        ),
        &["attention", "pairs", "right", "a step"],
    );
    let all = nodes.count() * nodes.count();
    for (name, by_edges, pairs) in [("all nodes", false, all), ("edges only", true, nodes.pairs())]
    {
        let (share, seconds) = learned(&nodes, by_edges, steps, options.seed);
        found.number(name, "right", share);
        found.number(name, "seconds", seconds);
        found.number(name, "pairs", pairs as f64);
        let time = format!("{:.1} ms", 1e3 * seconds);
        found.row(vec![name.into(), pairs.to_string(), percent(share), time]);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn edges_know_more_than_all_nodes_together() {
        let found = super::super::quick("graph");
        let right = |name| found.get(name, "right").unwrap();
        assert!(right("edges only") > right("all nodes") + 0.1, "{:?}", found.numbers);
    }
}
