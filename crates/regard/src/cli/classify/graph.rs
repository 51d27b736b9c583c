//! Classification of nodes and of whole graphs, and the attention along edges.

use super::super::say::say;
use super::super::{Outcome, inputs};
use super::{CommonOptions, line, tables, write_json};
use crate::files::{expect_extension, not_an_input, save_text};
use crate::models;
use crate::show::graph::{Edge, Node, svg};
use crate::show::label;
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
    /// Classify a graph: your table of nodes with --edges (or the folder of both), if the run was
    /// trained on such tables; a file with an edge (two node numbers) per line with --nodes; or
    /// `cora` or `citeseer`
    #[arg(long, value_name = "GRAPH",
          conflicts_with_all = ["text", "pair", "attention_weights", "image"])]
    pub(super) graph: Option<String>,
    /// File of nodes: node number, split (train, valid, test or -), label and features, separated
    /// by tabs
    #[arg(long, value_name = "FILE", requires = "graph", conflicts_with = "image")]
    pub(super) nodes: Option<PathBuf>,
    /// Your table of edges, as in `regard train classify-graph`; --graph is the table of nodes
    #[arg(long, value_name = "FILE", requires = "graph", conflicts_with_all = ["image", "nodes"])]
    pub(super) edges: Option<PathBuf>,
    /// Only these nodes: ids of your table, or numbers counted from 0
    #[arg(long, value_name = "NODE", num_args = 1.., requires = "graph", conflicts_with = "image")]
    node: Vec<String>,
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
            ("--edges", self.edges.is_some()),
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
        match self.nodes.as_ref().or(self.edges.as_ref()) {
            Some(other) => format!("{} and {edges}", other.display()),
            None => edges.to_string(),
        }
    }

    /// Refuses a picture that would replace a file of the graph.
    fn check_picture(&self) -> Result<()> {
        let Some(svg) = &self.svg else { return Ok(()) };
        let graph = Path::new(self.graph.as_deref().unwrap_or_default());
        let inputs = [Some(graph), self.nodes.as_deref(), self.edges.as_deref()];
        not_an_input("--svg", svg, &inputs.into_iter().flatten().collect::<Vec<_>>())?;
        expect_extension("--svg", svg, &["svg"])
    }

    fn read(&self) -> Result<GraphData> {
        let edges = self.graph.as_deref().expect("it is asked");
        if let Some(nodes) = &self.nodes {
            let (nodes, edges) = (inputs::file(nodes), inputs::file(Path::new(edges)));
            return Ok(GraphData::read(&nodes, &edges)?);
        }
        if Path::new(edges).is_file() {
            bail!(
                "--graph: {edges} is one file of two: with a table of nodes, --edges FILE; with \
                 edges between numbers, --nodes FILE"
            );
        }
        classify_graph::named(edges).context("--graph")
    }
}

pub fn run(flags: &Flags, asked: &CommonOptions, out: &mut dyn Write) -> Result<Outcome> {
    // The built-in model has the name of the graph that it was trained on, and labels no other.
    let known = models::default_name::<GraphClassifier>();
    if let (None, Some(known)) = (asked.model, known)
        && flags.graph.as_deref() != Some(known)
    {
        bail!(
            "--model is required: the built-in model labels the papers of {known} only (`regard \
             classify --graph {known}`). To train one: `regard train classify-graph --data NODES \
             --edges EDGES`, or by a recipe: `regard train citeseer-gat`"
        );
    }
    let labeller: GraphClassifier = models::open(asked.model, asked.hub)?;
    flags.check_picture()?;
    let (network, ids) = match tables::is_asked(flags) {
        true => tables::read(flags, asked)?,
        false => (flags.read()?, vec![]),
    };
    let nodes = tables::chosen(&flags.node, &ids).context("--node")?;
    let parameters = Parameters { top_k: asked.top_k, nodes };
    labeller.check_nodes(&network, &parameters.nodes).context("--node")?;
    let whole = labeller.reads_graphs();
    if !whole && flags.node.is_empty() && flags.svg.is_some() {
        bail!("--svg: this model labels nodes; choose the one to draw with --node NODE");
    }
    let (has, knows) = (network.columns, labeller.model().settings().features);
    if flags.nodes.is_none() && ids.is_empty() && has != knows {
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
        let id = prediction.node.and_then(|at| ids.get(at));
        match (asked.json, prediction.node) {
            (true, _) => match id {
                Some(id) => write_json(out, &tables::Named::new(&prediction.labels, id))?,
                None => write_json(out, prediction)?,
            },
            (false, None) => writeln!(out, "{}", line(&prediction.labels))?,
            (false, Some(at)) => {
                let name = id.map_or_else(|| at.to_string(), |id| label(id, usize::MAX));
                writeln!(out, "{name}\t{}", line(&prediction.labels))?;
            }
        }
    }
    if let Some(path) = &flags.svg {
        let picture = draw(&labeller, &look, parameters.nodes.first().copied(), &ids);
        save_text(path, &picture)?;
    }
    Ok(Outcome::Positive)
}

/// Draws the attention behind the label of a node, or of the whole graph.
fn draw(
    labeller: &GraphClassifier,
    look: &GraphPrediction,
    node: Option<usize>,
    ids: &[String],
) -> String {
    let named = |at: usize| ids.get(at).cloned().unwrap_or_else(|| at.to_string());
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
        let (name, about) = (named(*at), format!("node {}: {told}", named(*at)));
        Node { name, about, colour, ring: *ring, weight }
    };
    let nodes: Vec<Node> = found.iter().map(of).collect();
    let edge = |((from, to), weight)| Edge { from: places[&from], to: places[&to], weight };
    let edges: Vec<Edge> = edges.into_iter().map(edge).collect();
    let title = match (node, best(node.unwrap_or(0))) {
        (Some(node), Some(best)) => {
            format!("node {}: {} ({:.3})", named(node), best.label, best.score)
        }
        (None, Some(best)) => format!("{} ({:.3})", best.label, best.score),
        (_, None) => String::new(),
    };
    svg(&title, &nodes, &edges, labeller.labels())
}
