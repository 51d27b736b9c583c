//! Tables that are read as those of a trained run were: to evaluate it, or to label their nodes.

use super::edges::{self, Edges};
use super::nodes::{self, Chosen, ID, Nodes};
use super::{FILES, IDS, scale, tables, write_all};
use crate::data::choose::name;
use crate::data::stream::Lines;
use crate::data::{GraphData, Part};
use crate::import::columns::{PART, asked, known};
use crate::import::examples::skipped;
use crate::import::findings::{Findings, Place};
use crate::import::reading::{Column, Purpose, Reading, part_told};
use crate::import::{Draft, Request, importer};
use crate::say;
use regard_models::{Error, Result};
use std::collections::HashMap;
use std::path::Path;

/// A graph of the user, to label its nodes.
#[non_exhaustive]
pub struct GraphTables {
    /// Nodes and edges.
    pub network: GraphData,
    /// Id of each node, as the user wrote it.
    pub ids: Vec<String>,
    /// Lines that say what was read.
    pub summary: Vec<String>,
}

/// Reads the tables of a graph to label its nodes, as those of a trained run were read. `None` if
/// there are problems.
///
/// # Errors
/// If a file cannot be opened, or the request does not fit the task.
pub fn read_tables(request: &Request) -> Result<(Option<GraphTables>, Findings)> {
    importer(request)?;
    let mut findings = Findings::new(request.skip_bad);
    let [nodes, edges] = tables(request)?;
    let Some(nodes) = nodes::read(&nodes, request, &mut findings)? else {
        return Ok((None, findings));
    };
    let read = both(nodes, &edges, request, &mut findings)?;
    let Some((nodes, edges)) = read.filter(|_| !findings.has_errors()) else {
        return Ok((None, findings));
    };
    let mut summary = told(&nodes, &edges);
    summary.extend(skipped(&findings));
    let count = nodes.all.len();
    let network = GraphData {
        columns: nodes.features.len(),
        features: nodes.all.iter().map(|node| node.features.clone()).collect(),
        labels: vec![None; count],
        parts: vec![None; count],
        edges: edges.all,
        edge_features: edges.features,
    };
    let ids = nodes.all.into_iter().map(|node| node.id).collect();
    Ok((Some(GraphTables { network, ids, summary }), findings))
}

/// Reads the edges of nodes whose labels a model is evaluated on.
pub(super) fn evaluate(
    nodes: Nodes,
    edges: &Path,
    request: &Request,
    findings: &mut Findings,
) -> Result<Option<Draft>> {
    let Some((mut nodes, edges)) = both(nodes, edges, request, findings)? else { return Ok(None) };
    unknown_labels(&mut nodes, request, findings);
    let chosen = one_part(&mut nodes, request)?;
    let count = nodes.all.iter().filter(|node| node.part.is_some()).count();
    if count == 0 {
        let message = "no node has a label to compare with";
        findings.error("no labels", Place::whole(&nodes.path), message);
        return Ok(None);
    }
    let mut summary = told(&nodes, &edges);
    summary.push(say::many(count, "label"));
    summary.extend(chosen.map(part_told));
    summary.extend(skipped(findings));
    let write = move |folder: &Path| write_all(folder, &nodes, &edges);
    let draft = Draft::to_evaluate("classify-graph", summary, count, "", Box::new(write));
    Ok(Some(Draft { files: FILES.to_vec(), chosen, ..draft }))
}

fn told(nodes: &Nodes, edges: &Edges) -> Vec<String> {
    vec![nodes.told.clone(), edges.columns_told(nodes.all.len())]
}

/// Reads the edges, and gives nodes of a graph without features those of training.
fn both(
    mut nodes: Nodes,
    edges: &Path,
    request: &Request,
    findings: &mut Findings,
) -> Result<Option<(Nodes, Edges)>> {
    let Some(edges) = edges::read(edges, &nodes, request, findings)? else { return Ok(None) };
    let import = match &request.purpose {
        Purpose::Evaluate(import) | Purpose::Predict(import) => import,
        Purpose::Train => return Ok(Some((nodes, edges))),
    };
    if !nodes.features.is_empty() {
        scale::apply(&mut nodes, &import.reading, findings);
        return Ok(Some((nodes, edges)));
    }
    let numbers = ids(&import.folder.join(IDS))?;
    let numbers: HashMap<&str, u32> = numbers.iter().map(String::as_str).zip(0..).collect();
    for node in &mut nodes.all {
        match numbers.get(node.id.as_str()) {
            Some(number) => node.features = vec![(*number, 1.0)],
            None => {
                let message = format!(
                    "the run has not seen the node {:?}: it was trained without features, so it \
                     knows the nodes of its training table only",
                    say::short(&node.id, 40)
                );
                findings.error("unknown node", Place::line(&nodes.path, node.line), message);
            }
        }
    }
    nodes.features = vec![String::new(); numbers.len()];
    Ok(Some((nodes, edges)))
}

/// Reads the ids of nodes, in the order of their numbers.
pub(crate) fn ids(path: &Path) -> Result<Vec<String>> {
    let mut all = vec![];
    for line in Lines::open(path)? {
        let line = line?;
        let (_, id) = line.split_once('\t').ok_or_else(|| {
            Error::file(path, format!("line {}: need a number, a tab and an id", all.len() + 1))
        })?;
        all.push(id.to_string());
    }
    Ok(all)
}

/// Removes labels that the run has not learned; they are noted.
fn unknown_labels(nodes: &mut Nodes, request: &Request, findings: &mut Findings) {
    let Some(reading) = request.like() else { return };
    for node in &mut nodes.all {
        if let Some(message) = node.label.as_deref().and_then(|label| reading.unknown(label)) {
            findings.row("unknown label", Place::line(&nodes.path, node.line), message);
            node.label = None;
        }
    }
}

/// Puts the labelled nodes into the test part: all of them or, if the table has parts, those of one
/// part, which is returned.
fn one_part(nodes: &mut Nodes, request: &Request) -> Result<Option<Part>> {
    let mut parts = [vec![], vec![], vec![]];
    let all = nodes.all.iter().enumerate();
    for (at, node) in all.filter(|(_, node)| node.label.is_some()) {
        match (nodes.has_parts, node.part) {
            (false, _) => parts[0].push(at),
            (true, Some(part)) => parts[part as usize].push(at),
            (true, None) => {}
        }
    }
    let (places, chosen) = request.one_part(parts)?;
    nodes.all.iter_mut().for_each(|node| node.part = None);
    places.into_iter().for_each(|at| nodes.all[at].part = Some(Part::Test));
    Ok(chosen)
}

/// Chooses the columns of nodes as training did. Only labels may be missing, to predict them.
pub(super) fn choose(first: &[String], is_json: bool, request: &Request) -> Result<Chosen, String> {
    let reading = request.like().expect("it is asked for files like those of a run");
    let header = match request.header {
        Some(given) => given,
        None => is_json || reading.header.unwrap_or(true) || is_header(first, reading),
    };
    let one = |role: &str| -> Result<Option<usize>, String> {
        Ok(request.recorded(role, first, is_json)?.and_then(|places| places.first().copied()))
    };
    let id = one("id")?.ok_or("the run does not say which column is the id")?;
    let label = match (&request.columns.label, &request.purpose) {
        (Some(name), _) => Some(asked("label", name, first, Some(header))?),
        (None, Purpose::Predict(_)) => one("label").unwrap_or(None),
        (None, _) => one("label")?,
    };
    let features = request.recorded("features", first, is_json)?.unwrap_or_default();
    let is_free =
        |column: &usize| *column != id && label != Some(*column) && !features.contains(column);
    // To predict, parts are not needed: such a column may hold anything.
    let is_needed = !matches!(request.purpose, Purpose::Predict(_));
    let part = known(first, &PART).filter(|column| header && is_needed && is_free(column));
    let header = header.then(|| first.to_vec());
    Ok(Chosen { id, label, part, features: Some(features), header })
}

/// Whether a first row names columns, although the run was trained on a table without a header: no
/// feature is a number or, without features, the id has a known name and the label is none.
fn is_header(first: &[String], reading: &Reading) -> bool {
    let cells = |role: &str| -> Vec<&String> {
        let columns = reading.columns.get(role).into_iter().flatten();
        columns.filter_map(|column| first.get(column.number?.checked_sub(1)?)).collect()
    };
    let (features, labels) = (cells("features"), cells("label"));
    match features.is_empty() {
        false => features.iter().all(|cell| cell.trim().parse::<f32>().is_err()),
        true => {
            let is_label = |cell: &&String| reading.labels.iter().any(|label| label == cell.trim());
            cells("id").iter().all(|cell| ID.contains(&name(cell).as_str()))
                && !labels.iter().any(is_label)
        }
    }
}

fn recorded<'a>(request: &'a Request, role: &str) -> Option<&'a Vec<Column>> {
    request.like().and_then(|reading| reading.columns.get(role))
}

fn place(first: &[String], column: &Column) -> Option<usize> {
    let name = column.name.as_deref()?.to_lowercase();
    known(first, &[name.as_str()])
}

/// Recorded columns of the two ends of an edge, if the table has their names.
pub(super) fn ends(request: &Request, first: &[String]) -> Option<(usize, usize)> {
    let find = |role: &str| place(first, recorded(request, role)?.first()?);
    Some((find("from")?, find("to")?))
}

/// Recorded columns of the features of edges; `None` if nothing is recorded. `others` are the
/// columns that are not the ends of an edge.
pub(super) fn edge_features(
    request: &Request,
    names: Option<&[String]>,
    others: Vec<usize>,
) -> Result<Option<Vec<usize>>, String> {
    let Some(columns) = recorded(request, "edge_features") else { return Ok(None) };
    if let (Some(names), true) = (names, columns.iter().all(|column| column.name.is_some())) {
        let find = |column: &Column| {
            place(names, column).ok_or_else(|| {
                format!(
                    "has no column {:?}, a feature of edges that the run was trained with; its \
                     columns are {}",
                    column.name.as_deref().unwrap_or_default(),
                    say::list(names, 12)
                )
            })
        };
        return columns.iter().map(find).collect::<Result<_, _>>().map(Some);
    }
    match others.len() == columns.len() {
        true => Ok(Some(others)),
        false => Err(format!(
            "has {} beside the two nodes, the run was trained with {}",
            say::many(others.len(), "column"),
            say::many(columns.len(), "feature")
        )),
    }
}
