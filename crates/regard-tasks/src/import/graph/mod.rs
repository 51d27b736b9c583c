//! Nodes of one graph with labels: a table of nodes and a table of edges.
//!
//! | file | contents |
//! |---|---|
//! | `nodes` | the table of nodes: ids, labels, parts, features |
//! | `edges` | the table of edges |
//! | `scale` | features of large numbers, which are scaled |
//! | `like` | tables that are read as those of a trained run, to evaluate or to predict |

mod edges;
mod like;
mod nodes;
mod scale;

use super::findings::{Findings, Place};
use super::label_values::check_numbers;
use super::parts::{self, HeldOut};
use super::table::is_table;
use super::{DataSize, Draft, Request, files_of, split_line};
use crate::data::Part;
use crate::say;
use edges::Edges;
use nodes::{Node, Nodes};
use regard_models::{Error, Result, checkpoint};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use toml::{Table as Keys, Value};

/// Magnitude of a feature of edges above which training may not converge.
const LARGE: f32 = 100.0;
/// Number of labelled nodes above which labels that are mostly different must be something else.
const ENOUGH: usize = 20;
/// Features are scaled to a sum of 1 for each node if they are counts of words: at least so many
/// columns, of which fewer than half are not 0.
const WORDS: usize = 10;

/// Keys of `[data]` and names of the written files.
const FILES: [(&str, &str); 2] = [("nodes", "nodes.tsv"), ("edges", "edges.tsv")];
/// File of the numbers and ids of nodes.
pub(crate) const IDS: &str = "ids.tsv";

pub(crate) use like::ids;
pub use like::{GraphTables, read_tables};

/// Reads the tables of a request.
pub(super) fn read(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    let [nodes_path, edges_path] = tables(request)?;
    let Some(mut nodes) = nodes::read(&nodes_path, request, findings)? else { return Ok(None) };
    if request.like().is_some() {
        return like::evaluate(nodes, &edges_path, request, findings);
    }
    check_labels(&nodes, findings);
    let Some(edges) = edges::read(&edges_path, &nodes, request, findings)? else {
        return Ok(None);
    };
    isolated(&nodes, &edges, findings);
    let normalize = is_words(&nodes);
    let scaled = if normalize { None } else { scale::fit(&mut nodes) };
    let held = divide(&mut nodes, request.seed);
    let count = |part: Part| nodes.all.iter().filter(|node| node.part == Some(part)).count();
    let sizes = [Part::Train, Part::Valid, Part::Test].map(count);
    check_parts(&nodes, sizes, findings);
    let labels = counted(&nodes.all);
    let unlabelled = nodes.all.iter().filter(|node| node.label.is_none()).count();
    let mut summary = vec![nodes.told.clone(), edges.told(nodes.all.len())];
    if nodes.features.is_empty() {
        summary.push("no features: each node has one of its own".into());
    }
    if normalize {
        summary
            .push("features look like counts of words: scaled to a sum of 1 for each node".into());
    }
    summary.extend(scaled);
    summary.push(labels_told(&labels, unlabelled));
    summary.push(format!("labels: {}", split_line(sizes, held, request.seed)));
    if findings.skipped() > 0 {
        summary.push(format!("{} left out (--skip-bad)", say::many(findings.skipped(), "row")));
    }
    let size = DataSize {
        examples: sizes[0],
        units: nodes.all.len(),
        longest: nodes.all.len(),
        labels: labels.len(),
        unspaced: false,
    };
    let mut reading = nodes.reading.clone();
    // Names of the columns of edges; those without a header are found again by their places.
    reading.columns.extend(edges.reading.columns.clone());
    let reading = reading.with_labels(labels.iter().map(|(label, _)| *label));
    let wiring = [("both_ways", edges.both_ways()), ("normalize", normalize)];
    let wiring = wiring.map(|(key, value)| (key.to_string(), Value::Boolean(value)));
    let data = [("wiring".to_string(), Value::Table(Keys::from_iter(wiring)))];
    let keys = Keys::from_iter([("data".to_string(), Value::Table(Keys::from_iter(data)))]);
    let write = move |folder: &Path| write_all(folder, &nodes, &edges);
    Ok(Some(Draft {
        places: Default::default(),
        task: "classify-graph",
        summary,
        parts: sizes,
        size,
        keys,
        files: FILES.to_vec(),
        write: Box::new(write),
        reading,
        chosen: None,
        test: vec![],
    }))
}

/// Returns the tables of nodes and of edges.
fn tables(request: &Request) -> Result<[PathBuf; 2]> {
    let held = [("valid", &request.valid), ("test", &request.test)];
    if let Some((part, _)) = held.into_iter().find(|(_, files)| !files.is_empty()) {
        return Err(Error::invalid(format!(
            "--{part}: the parts of a graph are nodes of one table: add a column 'part' with train, \
             valid and test, or leave it out and the split is made for you"
        )));
    }
    let [data] = &request.data[..] else {
        return Err(Error::invalid(
            "--data: need one table of nodes; --edges names the table of edges",
        ));
    };
    if !data.is_dir() {
        return match &request.edges {
            Some(edges) => Ok([data.clone(), edges.clone()]),
            None => Err(Error::invalid(
                "--edges: need a table of edges with the ids of two nodes in each row",
            )),
        };
    }
    let file = |name: &str| {
        let is_it = |path: &Path| {
            is_table(path) && path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case(name))
        };
        let message = || format!("need a table named {name}.csv, .tsv or .jsonl; there is none");
        let found = files_of(data, &is_it)?.into_iter().next();
        found.ok_or_else(|| Error::file(data, message()))
    };
    Ok([file("nodes")?, request.edges.clone().map_or_else(|| file("edges"), Ok)?])
}

fn counted(nodes: &[Node]) -> Vec<(&str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for label in nodes.iter().filter_map(|node| node.label.as_deref()) {
        *counts.entry(label).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// Checks that the label column holds labels, and more than one.
fn check_labels(nodes: &Nodes, findings: &mut Findings) {
    let counts = counted(&nodes.all);
    let labelled: usize = counts.iter().map(|(_, count)| count).sum();
    let line = nodes.all.iter().find(|node| node.label.is_some()).map(|node| node.line);
    let Some(line) = line else {
        findings.error("no labels", Place::whole(&nodes.path), "no node has a label");
        return;
    };
    let place = Place::line(&nodes.path, line);
    if !check_numbers(&counts, &nodes.label_column, place, findings) {
        return;
    }
    if labelled >= ENOUGH && 2 * counts.len() > labelled {
        let message = format!(
            "{} has {} different values in {} nodes: that does not look like labels; --label names \
             the column",
            nodes.label_column,
            say::count(counts.len()),
            say::count(labelled)
        );
        findings.error("no labels", Place::line(&nodes.path, line), message);
        return;
    }
    if let [(label, _)] = counts[..] {
        let message = format!("every node has the label {:?}", say::short(label, 40));
        findings.error("one label", Place::line(&nodes.path, line), message);
        return;
    }
    for (label, _) in counts.iter().filter(|(_, count)| *count == 1) {
        let one = nodes.all.iter().find(|node| node.label.as_deref() == Some(*label));
        let message = format!("the label {:?} has one example", say::short(label, 40));
        let line = one.map_or(line, |node| node.line);
        findings.warn("label with one example", Place::line(&nodes.path, line), message);
    }
}

/// Notes nodes without edges.
fn isolated(nodes: &Nodes, edges: &Edges, findings: &mut Findings) {
    let mut seen = vec![false; nodes.all.len()];
    for (from, to) in &edges.all {
        (seen[*from as usize], seen[*to as usize]) = (true, true);
    }
    edges.others.iter().for_each(|node| seen[*node as usize] = true);
    for node in nodes.all.iter().zip(seen).filter(|(_, seen)| !seen).map(|(node, _)| node) {
        let message = format!("node {:?} has no edges", say::short(&node.id, 40));
        findings.warn("isolated node", Place::line(&nodes.path, node.line), message);
    }
}

/// Notes a column with large values.
fn large(column: &str, most: f32, path: &Path, findings: &mut Findings) {
    if most > LARGE {
        let message = format!(
            "{column} has values up to {most}: scale it to about −1 to 1, or training may not \
             converge"
        );
        findings.warn("large feature", Place::whole(path), message);
    }
}

/// Whether the features look like counts of words.
fn is_words(nodes: &Nodes) -> bool {
    let columns = nodes.features.len();
    let mut filled = 0;
    for (_, value) in nodes.all.iter().flat_map(|node| &node.features) {
        if *value < 0.0 {
            return false;
        }
        filled += 1;
    }
    columns >= WORDS && 2 * filled < columns * nodes.all.len()
}

/// Assigns labelled nodes to parts; a part that the table gives is kept.
fn divide(nodes: &mut Nodes, seed: u64) -> HeldOut {
    let labelled = || nodes.all.iter().filter(|node| node.label.is_some());
    let has = |part: Part| labelled().any(|node| node.part == Some(part));
    let held = HeldOut { valid: !has(Part::Valid), test: !has(Part::Test) };
    let has_parts = nodes.has_parts;
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let (mut free, mut keys, mut strata) = (vec![], vec![], vec![]);
    for (at, node) in nodes.all.iter_mut().enumerate() {
        let Some(label) = &node.label else {
            node.part = None;
            continue;
        };
        if !has_parts {
            node.part = Some(Part::Train);
        }
        if node.part == Some(Part::Train) {
            let next = numbers.len();
            strata.push(*numbers.entry(label.clone()).or_insert(next));
            keys.push(node.id.clone());
            free.push(at);
        }
    }
    for (at, part) in free.into_iter().zip(parts::split(&keys, &strata, seed, held)) {
        nodes.all[at].part = Some(part);
    }
    held
}

/// Checks that training and validation part have labels.
fn check_parts(nodes: &Nodes, sizes: [usize; 3], findings: &mut Findings) {
    for (count, name) in sizes.into_iter().zip(["training", "validation"]) {
        if count == 0 && nodes.all.iter().any(|node| node.label.is_some()) {
            let message = format!("no labelled node is in the {name} part; need more labels");
            findings.error("too few labels", Place::whole(&nodes.path), message);
        }
    }
    let mut known: HashMap<&str, bool> = HashMap::new();
    for (label, part) in
        nodes.all.iter().filter_map(|node| Some((node.label.as_deref()?, node.part?)))
    {
        *known.entry(label).or_default() |= part == Part::Train;
    }
    let mut unknown: Vec<&str> =
        known.into_iter().filter(|(_, trained)| !trained).map(|(label, _)| label).collect();
    unknown.sort_unstable();
    for label in unknown {
        let message = format!("the label {:?} is not in the training part", say::short(label, 40));
        findings.warn("unknown label", Place::whole(&nodes.path), message);
    }
}

/// Sentence about the labels.
fn labels_told(labels: &[(&str, usize)], unlabelled: usize) -> String {
    let each =
        |(name, count): &(&str, usize)| format!("{} {}", say::short(name, 40), say::count(*count));
    let named: Vec<String> = labels.iter().map(each).collect();
    let rest = match unlabelled {
        0 => String::new(),
        1 => "; 1 node has no label".into(),
        more => format!("; {} nodes have no label", say::count(more)),
    };
    format!("{}: {}{rest}", say::many(labels.len(), "label"), say::list(&named, 10))
}

/// Writes nodes, ids and edges.
fn write_all(folder: &Path, nodes: &Nodes, edges: &Edges) -> Result<()> {
    write_nodes(&folder.join(FILES[0].1), nodes)?;
    write_ids(&folder.join(IDS), &nodes.all)?;
    edges.write(&folder.join(FILES[1].1))
}

fn write_nodes(path: &Path, nodes: &Nodes) -> Result<()> {
    checkpoint::write_file_with(path, |file| {
        let mut out = BufWriter::new(file);
        for (at, node) in nodes.all.iter().enumerate() {
            let part = node.part.map_or("none", |part| part.of(["train", "val", "test"]));
            write!(out, "{at}\t{part}\t{}\t", node.label.as_deref().unwrap_or("-"))?;
            if nodes.features.is_empty() {
                write!(out, "{at}")?;
            }
            for (i, (column, value)) in node.features.iter().enumerate() {
                let space = if i == 0 { "" } else { " " };
                match *value == 1.0 {
                    true => write!(out, "{space}{column}")?,
                    false => write!(out, "{space}{column}:{value}")?,
                }
            }
            writeln!(out)?;
        }
        out.flush()
    })
}

/// Writes the number and the id of each node, because predictions are about numbers.
fn write_ids(path: &Path, nodes: &[Node]) -> Result<()> {
    let line = |(at, node): (usize, &Node)| format!("{at}\t{}\n", say::short(&node.id, 1000));
    let text: String = nodes.iter().enumerate().map(line).collect();
    checkpoint::write_file(path, text.as_bytes())
}

#[cfg(test)]
mod tests;
