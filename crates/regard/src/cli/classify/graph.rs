//! Classification of nodes and of whole graphs, and the attention along edges.

use super::super::say::say;
use super::super::{Outcome, inputs};
use super::{CommonOptions, line, write_json};
use crate::files::{expect_extension, not_an_input, save_text};
use crate::models;
use crate::show::graph::{Edge, Node, svg};
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_tasks::classify_graph::{self, GraphClassifier, GraphPrediction, Parameters, Scene};
use regard_tasks::data::GraphData;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Maximum number of nodes in a picture; those with the largest weights are kept.
const MOST_NODES: usize = 300;

// No group: clap would name it after the struct, like those of texts and images.
#[derive(Args)]
#[group(skip)]
pub struct Flags {
    /// Classify a graph: a file with an edge (two node numbers) per line, or `cora` or `citeseer`
    #[arg(long, value_name = "EDGES",
          conflicts_with_all = ["text", "pair", "attention_weights", "image"])]
    graph: Option<String>,
    /// File of nodes: node number, split (train, valid, test or -), label and features, separated
    /// by tabs
    #[arg(long, value_name = "FILE", requires = "graph", conflicts_with = "image")]
    nodes: Option<PathBuf>,
    /// Only these nodes, counted from 0
    #[arg(long, value_name = "N", num_args = 1.., requires = "graph", conflicts_with = "image")]
    node: Vec<usize>,
    /// Write a picture of the attention along edges: for the first of --node, or for the whole
    /// graph if the model labels graphs
    #[arg(long, value_name = "FILE", requires = "graph", conflicts_with = "image")]
    svg: Option<PathBuf>,
}

impl Flags {
    /// Returns a flag that was given without --graph.
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

    /// Name of the graph in error messages.
    fn name(&self) -> String {
        let edges = self.graph.as_deref().unwrap_or_default();
        match &self.nodes {
            Some(nodes) => format!("{} and {edges}", nodes.display()),
            None => edges.to_string(),
        }
    }

    fn read(&self) -> Result<GraphData> {
        let edges = self.graph.as_deref().expect("it is asked");
        if let Some(svg) = &self.svg {
            let nodes = self.nodes.as_deref().unwrap_or(Path::new(edges));
            not_an_input("--svg", svg, &[Path::new(edges), nodes])?;
            expect_extension("--svg", svg, &["svg"])?;
        }
        if let Some(nodes) = &self.nodes {
            let (nodes, edges) = (inputs::file(nodes), inputs::file(Path::new(edges)));
            return Ok(GraphData::read(&nodes, &edges)?);
        }
        if Path::new(edges).is_file() {
            bail!("--graph: {edges} holds edges; the file of nodes is missing: --nodes FILE");
        }
        classify_graph::named(edges).context("--graph")
    }
}

pub fn run(flags: &Flags, asked: &CommonOptions, out: &mut dyn Write) -> Result<Outcome> {
    let labeller: GraphClassifier = models::open(asked.model, asked.hub)?;
    let network = flags.read()?;
    let parameters = Parameters { top_k: asked.top_k, nodes: flags.node.clone() };
    labeller.check_nodes(&network, &parameters.nodes).context("--node")?;
    let whole = labeller.reads_graphs();
    if !whole && flags.node.is_empty() && flags.svg.is_some() {
        bail!("--svg: this model labels nodes; choose the one to draw with --node N");
    }
    let (has, knows) = (network.columns, labeller.model().settings().features);
    if flags.nodes.is_none() && has != knows {
        bail!("--graph: got {has} features per node, the model was trained with {knows}");
    }
    let look = match &flags.svg {
        Some(_) => labeller.look(&network),
        None => {
            let labels = labeller.label(&network);
            labels.map(|labels| GraphPrediction { labels, layers: vec![], nodes: None })
        }
    };
    let look = look.with_context(|| flags.name())?;
    let response = labeller.response(look.labels.clone(), &parameters)?;
    for prediction in &response.predictions {
        match (asked.json, prediction.node) {
            (true, _) => write_json(out, prediction)?,
            (false, None) => writeln!(out, "{}", line(&prediction.labels))?,
            (false, Some(at)) => writeln!(out, "{at}\t{}", line(&prediction.labels))?,
        }
    }
    if let Some(path) = &flags.svg {
        let picture = draw(&labeller, &look, parameters.nodes.first().copied());
        save_text(path, &picture)?;
    }
    Ok(Outcome::Positive)
}

/// Draws the attention behind the label of a node, or of the whole graph.
fn draw(labeller: &GraphClassifier, look: &GraphPrediction, node: Option<usize>) -> String {
    let mut scene = Scene::of(look, node);
    let left_out = scene.keep(MOST_NODES);
    if left_out > 0 {
        say(format_args!(
            "--svg: {MOST_NODES} nodes are drawn; {left_out} with smaller weights are left out"
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
