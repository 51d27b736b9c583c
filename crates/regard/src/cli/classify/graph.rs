//! Labels for the nodes of a graph, or for a whole graph, and along which edges the model looked.

use super::super::Outcome;
use super::{Asked, write_json};
use crate::models;
use crate::show::graph::{Edge, Node, svg};
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::data::Network;
use regard_tasks::graphs::{Data, Labeller, Look, Wiring};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A picture of more nodes shows nothing.
const MOST_NODES: usize = 300;

// Without a group of its own, whose name would be that of the others here.
#[derive(Args)]
#[group(skip)]
pub struct Flags {
    /// A graph instead of texts: a file with two nodes a line, or cora or citeseer
    #[arg(long, value_name = "EDGES", conflicts_with_all = ["text", "pair", "why", "image"])]
    graph: Option<String>,
    /// What is known of its nodes: number, part, label and features, with tabs between them
    #[arg(long, value_name = "FILE", requires = "graph")]
    nodes: Option<PathBuf>,
    /// These nodes alone, from 0
    #[arg(long, value_name = "N", num_args = 1.., requires = "graph")]
    node: Vec<usize>,
    /// Draw along which edges the model looked to label the first of --node, or the whole graph
    #[arg(long, value_name = "FILE", requires = "graph")]
    svg: Option<PathBuf>,
}

impl Flags {
    /// Whether a graph is given.
    pub fn is_asked(&self) -> bool {
        self.graph.is_some()
    }

    fn read(&self) -> Result<Network> {
        let edges = self.graph.as_deref().expect("it is asked");
        if let Some(nodes) = &self.nodes {
            return Ok(Network::read(nodes, Path::new(edges))?);
        }
        let (set, wiring) = (edges.to_string(), Wiring::default());
        let data = Data { set, nodes: None, edges: None, count: 0, wiring };
        let network = data.network().context("--graph: without --nodes, a known graph")?;
        network.context("--graph: this is a set of graphs; give the files of one of them")
    }
}

pub fn run(flags: &Flags, asked: &Asked, out: &mut dyn Write) -> Result<Outcome> {
    let labeller = models::labeller(asked.model, asked.hub)?;
    let network = flags.read()?;
    if let Some(node) = flags.node.iter().find(|node| **node >= network.len()) {
        bail!("--node: got {node}, the graph has nodes 0 to {}", network.len() - 1);
    }
    let whole = labeller.reads_graphs();
    if whole && !flags.node.is_empty() {
        bail!("--node: this model labels whole graphs");
    }
    let look = match &flags.svg {
        Some(_) => labeller.look(&network)?,
        None => Look { labels: labeller.label(&network)?, layers: vec![], nodes: None },
    };
    let chosen: Vec<usize> = match flags.node.is_empty() {
        true => (0..look.labels.len()).collect(),
        false => flags.node.clone(),
    };
    for at in &chosen {
        let labels = &look.labels[*at];
        match (asked.json, whole) {
            (true, _) => {
                let mut object = asked.object(labels);
                if !whole {
                    object["node"] = json!(at);
                }
                write_json(out, &object)?;
            }
            (false, true) => writeln!(out, "{}", asked.line(labels))?,
            (false, false) => writeln!(out, "{at}\t{}", asked.line(labels))?,
        }
    }
    if let Some(path) = &flags.svg {
        let picture = draw(&labeller, &look, (!whole).then_some(chosen[0]))?;
        std::fs::write(path, picture).with_context(|| path.display().to_string())?;
    }
    Ok(Outcome::Positive)
}

/// What is drawn: nodes with their distance from the one in the middle, edges with the mean of
/// their heads' weights.
#[derive(Default)]
struct Scene {
    nodes: BTreeMap<usize, usize>,
    edges: BTreeMap<(usize, usize), f32>,
}

impl Scene {
    /// Of a node, those that its last layer looked at, those that they looked at in the layer
    /// before, and so on; of a whole graph all of it.
    fn of(look: &Look, node: Option<usize>) -> Scene {
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
}

/// A picture of what went into the label of a node, or of the whole graph.
fn draw(labeller: &Labeller, look: &Look, node: Option<usize>) -> Result<String> {
    let Scene { nodes: found, edges } = Scene::of(look, node);
    if found.len() > MOST_NODES {
        bail!("--svg: {} nodes are too many for a picture, need at most {MOST_NODES}", found.len());
    }
    let places: BTreeMap<usize, usize> = found.keys().copied().zip(0..).collect();
    let best = |at: usize| look.labels[if node.is_some() { at } else { 0 }].first();
    let of = |(at, ring): (&usize, &usize)| {
        let label = best(*at);
        let number = |label: &str| labeller.labels().iter().position(|known| known == label);
        let colour = label.and_then(|best| number(&best.label)).unwrap_or(0);
        let told = label.map_or(String::new(), |l| format!("{} {:.3}", l.label, l.score));
        let middle = if *ring == 0 { 1.0 } else { 0.0 };
        let weight = look.nodes.as_ref().map_or(middle, |weights| weights[*at]);
        let (name, about) = (at.to_string(), format!("node {at}: {told}"));
        Node { name, about, colour, ring: *ring, weight }
    };
    let nodes: Vec<Node> = found.iter().map(of).collect();
    let edge = |((from, to), weight)| Edge { from: places[&from], to: places[&to], weight };
    let edges: Vec<Edge> = edges.into_iter().map(edge).collect();
    let title = match (node, best(node.unwrap_or(0))) {
        (Some(node), Some(best)) => format!("node {node}: {} ({:.3})", best.label, best.score),
        (None, Some(best)) => format!("{} ({:.3})", best.label, best.score),
        (_, None) => String::new(),
    };
    Ok(svg(&title, &nodes, &edges, labeller.labels()))
}
