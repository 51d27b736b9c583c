//! Labels for the nodes of a graph, or for a whole graph, and along which edges the model looked.

use super::super::say::say;
use super::super::{Outcome, inputs};
use super::{Asked, write_json};
use crate::files::{not_an_input, save_text};
use crate::models;
use crate::show::graph::{Edge, Node, svg};
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::classify_graph::{Data, Given, Labeller, Look, Wiring};
use regard_tasks::data::Network;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A picture of more nodes shows nothing: it is of those that weigh most.
const MOST_NODES: usize = 300;

// Without a group of its own, whose name would be that of the others here.
#[derive(Args)]
#[group(skip)]
pub struct Flags {
    /// A graph instead of texts: a file with two nodes a line, or cora or citeseer
    #[arg(long, value_name = "EDGES", conflicts_with_all = ["text", "pair", "why", "image"])]
    graph: Option<String>,
    /// What is known of its nodes: number, part, label and features, with tabs between them
    #[arg(long, value_name = "FILE", requires = "graph", conflicts_with = "image")]
    nodes: Option<PathBuf>,
    /// These nodes alone, from 0
    #[arg(long, value_name = "N", num_args = 1.., requires = "graph", conflicts_with = "image")]
    node: Vec<usize>,
    /// Draw along which edges the model looked to label the first of --node, or the whole graph of
    /// a model that labels graphs
    #[arg(long, value_name = "FILE", requires = "graph", conflicts_with = "image")]
    svg: Option<PathBuf>,
}

impl Flags {
    /// A flag that is given without the graph that it is about.
    pub fn stray(&self) -> Option<(&'static str, &'static str)> {
        let given = [
            ("--nodes", self.nodes.is_some()),
            ("--node", !self.node.is_empty()),
            ("--svg", self.svg.is_some()),
        ];
        given.iter().find(|(_, given)| *given).map(|(flag, _)| (*flag, "--graph"))
    }

    /// Whether a graph is given.
    pub fn is_asked(&self) -> bool {
        self.graph.is_some()
    }

    /// What errors call it.
    fn name(&self) -> String {
        let edges = self.graph.as_deref().unwrap_or_default();
        match &self.nodes {
            Some(nodes) => format!("{} and {edges}", nodes.display()),
            None => edges.to_string(),
        }
    }

    fn read(&self) -> Result<Network> {
        let edges = self.graph.as_deref().expect("it is asked");
        if let Some(svg) = &self.svg {
            let nodes = self.nodes.as_deref().unwrap_or(Path::new(edges));
            not_an_input("--svg", svg, &[Path::new(edges), nodes])?;
        }
        if let Some(nodes) = &self.nodes {
            let (nodes, edges) = (inputs::file(nodes), inputs::file(Path::new(edges)));
            return Ok(Network::read(&nodes, &edges)?);
        }
        if Path::new(edges).is_file() {
            bail!(
                "--graph: {edges} holds edges; what is known of the nodes is another file: --nodes"
            );
        }
        let (set, wiring) = (edges.to_string(), Wiring::default());
        let data = Data { set, nodes: None, edges: None, graphs: None, count: 0, wiring };
        match edges {
            "cora" | "citeseer" => {}
            _ => bail!("--graph: got {edges:?}, need a file of edges, cora or citeseer"),
        }
        match data.read(0)? {
            Given::Nodes(network) => Ok(network),
            Given::Graphs(_) => unreachable!("both have labels of nodes"),
        }
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
    if !whole && flags.node.is_empty() && flags.svg.is_some() {
        bail!("--svg: this model labels nodes; --node says which one is drawn");
    }
    let (has, knows) = (network.columns, labeller.model().settings().features);
    if flags.nodes.is_none() && has != knows {
        bail!("--graph: its nodes have {has} columns, the model knows {knows}: it learned another");
    }
    let look = match &flags.svg {
        Some(_) => labeller.look(&network),
        None => {
            let labels = labeller.label(&network);
            labels.map(|labels| Look { labels, layers: vec![], nodes: None })
        }
    };
    let look = look.with_context(|| flags.name())?;
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
        let picture = draw(&labeller, &look, (!whole).then_some(chosen[0]));
        save_text(path, &picture)?;
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

impl Scene {
    /// Leaves out all but so many nodes: the nearest stay, and of equally near ones those that were
    /// looked at most. Says how many are gone.
    fn keep(&mut self, most: usize) -> usize {
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

/// A picture of what went into the label of a node, or of the whole graph.
fn draw(labeller: &Labeller, look: &Look, node: Option<usize>) -> String {
    let mut scene = Scene::of(look, node);
    let left_out = scene.keep(MOST_NODES);
    if left_out > 0 {
        say(format_args!(
            "--svg: {MOST_NODES} nodes are drawn; {left_out} that weigh less are left out"
        ));
    }
    let Scene { nodes: found, edges } = scene;
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
    svg(&title, &nodes, &edges, labeller.labels())
}
