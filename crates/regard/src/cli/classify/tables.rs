//! Nodes of the user's own tables, for a run that was trained on such tables.

use super::CommonOptions;
use super::graph::Flags;
use crate::cli::say::say;
use crate::models::{self, ResolvedModel};
use anyhow::{Context, Result, bail};
use regard_tasks::classify::RankedLabels;
use regard_tasks::data::GraphData;
use regard_tasks::import::{self, Purpose, Request, Severity, TrainedImport};
use regard_tasks::say::{did_you_mean, many, short};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Whether --graph names tables of the user: nodes with --edges, or a folder of both.
pub fn is_asked(flags: &Flags) -> bool {
    let graph = Path::new(flags.graph.as_deref().unwrap_or_default());
    flags.edges.is_some() || (flags.nodes.is_none() && graph.is_dir())
}

/// Reads the tables as training read its own, and says what was read. Also returns the ids.
pub fn read(flags: &Flags, asked: &CommonOptions) -> Result<(GraphData, Vec<String>)> {
    let name = asked.model.context("--graph: need the run of your graph: --model RUN")?;
    let run = match models::resolve(name, asked.hub)? {
        ResolvedModel::Folder(folder) => folder.path,
        ResolvedModel::Shipped(model) => bail!("--model: {} is no run on tables", model.name),
    };
    let Some(trained) = TrainedImport::of_run(&run)? else {
        bail!(
            "--model: {} was not trained on tables of nodes and edges; for its graphs, --graph \
             EDGES --nodes NODES, with numbers of nodes",
            run.display()
        );
    };
    let mut request = Request::new(trained.task.clone());
    request.data = vec![PathBuf::from(flags.graph.as_deref().unwrap_or_default())];
    request.edges = flags.edges.clone();
    request.purpose = Purpose::Predict(trained);
    let (tables, findings) = import::read_tables(&request).context("--graph")?;
    let told = findings.text();
    if !told.is_empty() {
        say(told.trim_end());
    }
    let Some(tables) = tables else {
        let count = many(findings.count(Severity::Error), "problem");
        bail!("{count} in the tables, no node was labelled");
    };
    tables.summary.iter().for_each(say);
    Ok((tables.network, tables.ids))
}

/// Numbers of the nodes that --node names, by id or, without ids, by number.
pub fn chosen(asked: &[String], ids: &[String]) -> Result<Vec<usize>> {
    let number = |node: &String| -> Result<usize> {
        if ids.is_empty() {
            let number = node.parse();
            return number.map_err(|_| anyhow::anyhow!("got {node:?}, need a number from 0"));
        }
        let known: Vec<&str> = ids.iter().map(String::as_str).collect();
        ids.iter().position(|id| id == node.trim()).with_context(|| {
            let node = short(node, 60);
            let mean = did_you_mean(&node, &known);
            format!("there is no node {node:?}; {mean}need the id of a node of the table")
        })
    };
    asked.iter().map(number).collect()
}

/// Labels of a node of the user, as `--json` prints them.
#[derive(Serialize)]
pub struct Named<'a> {
    #[serde(flatten)]
    labels: &'a RankedLabels,
    node: &'a str,
}

impl Named<'_> {
    /// Gives labels the id of their node.
    pub fn new<'a>(labels: &'a RankedLabels, node: &'a str) -> Named<'a> {
        Named { labels, node }
    }
}
