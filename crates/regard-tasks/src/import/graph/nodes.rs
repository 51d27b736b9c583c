//! The table of nodes.

use super::like;
use crate::data::Part;
use crate::data::twins::refuse_twins;
use crate::import::columns::{PART, asked, known, shown, told};
use crate::import::findings::{Findings, Place, numbered};
use crate::import::label_values::MissingLabels;
use crate::import::reading::Reading;
use crate::import::table::{Row, Table};
use crate::import::{Request, part_of_name};
use crate::say;
use regard_models::Result;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

pub(super) const ID: [&str; 7] = ["id", "node_id", "node", "nodeid", "name", "key", "index"];
const LABEL: [&str; 7] = ["label", "class", "category", "topic", "labels", "target", "subject"];

/// Rows from which the columns are chosen.
const SAMPLE: usize = 1000;
/// Most feature columns: the limit of the written file.
const WIDEST: usize = 1 << 24;

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub id: String,
    pub label: Option<String>,
    pub part: Option<Part>,
    /// Column and value, where it is not 0.
    pub features: Vec<(u32, f32)>,
    pub line: u64,
}

/// All nodes of a table.
pub(super) struct Nodes {
    pub path: PathBuf,
    pub all: Vec<Node>,
    /// Index of each id.
    pub numbers: HashMap<String, u32>,
    /// Ids of nodes with problems: they are noted once, not with each of their edges.
    pub refused: HashSet<String>,
    /// The feature columns, as messages name them.
    pub features: Vec<String>,
    /// Label column, as messages name it.
    pub label_column: String,
    /// How the table was read.
    pub reading: Reading,
    /// Whether the table says the part of each node.
    pub has_parts: bool,
    /// Sentence about the columns.
    pub told: String,
}

/// Chosen columns.
pub(super) struct Chosen {
    pub id: usize,
    /// `None` if the table has no labels, to predict them.
    pub label: Option<usize>,
    pub part: Option<usize>,
    /// Features that a run was trained with; `None` for all other columns.
    pub features: Option<Vec<usize>>,
    pub header: Option<Vec<String>>,
}

/// Reads the table of nodes. `None` if it has none.
pub(super) fn read(
    path: &Path,
    request: &Request,
    findings: &mut Findings,
) -> Result<Option<Nodes>> {
    let mut table = Table::read(path, request.separator(), findings)?;
    if table.rows.is_empty() {
        return Ok(None);
    }
    let header = table.keys.as_ref().map(|_| true).or(request.header);
    let is_json = table.keys.is_some();
    let chosen = match request.like() {
        Some(_) => like::choose(table.sample(1)[0], is_json, request),
        None => choose(&table.sample(SAMPLE), header, request),
    };
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(message) => {
            findings.error("columns", Place::whole(path), message);
            return Ok(None);
        }
    };
    let width = table.sample(1)[0].len();
    table.take_header(chosen.header.is_some(), findings);
    let Chosen { id, label, part, features: recorded, header } = chosen;
    let names = header.as_deref();
    let others = (0..width).filter(|column| ![Some(id), label, part].contains(&Some(*column)));
    let (mut columns, mut features) = (vec![], vec![]);
    for column in recorded.clone().unwrap_or_else(|| others.collect()) {
        let name = told(column, names);
        if recorded.is_some() || !is_text(&table, column, &name, findings) {
            columns.push(column);
            features.push(name);
        }
    }
    if columns.len() > WIDEST {
        let message = format!("has {} features, need at most {WIDEST}", columns.len());
        findings.error("columns", Place::whole(path), message);
        return Ok(None);
    }
    let mut nodes = Nodes {
        path: path.to_path_buf(),
        all: vec![],
        numbers: HashMap::new(),
        refused: HashSet::new(),
        features,
        label_column: label.map_or("none".into(), |label| told(label, names)),
        reading: Reading::of_table(&table, names.is_some())
            .with("id", &[id], names)
            .with("label", label.as_slice(), names)
            .with("features", &columns, names),
        has_parts: part.is_some(),
        told: String::new(),
    };
    let labels = table.rows.iter().filter_map(|row| Some(row.cells[label?].trim()));
    let missing = MissingLabels::of(labels.filter(|label| !label.is_empty()), request);
    missing.note_classes(path, findings);
    for row in &table.rows {
        let place = Place::line(path, row.line);
        let node_id = row.cells[id].trim().to_string();
        if node_id.is_empty() {
            findings.row("empty id", place, "the id is empty");
            continue;
        }
        if let Some(first) = nodes.numbers.get(&node_id) {
            let line = nodes.all[*first as usize].line;
            let line = numbered(path, line);
            let message = format!("the id {:?} is also on {line}", say::short(&node_id, 40));
            findings.row("duplicate node", place, message);
            continue;
        }
        let Some(features) = numbers(row, &columns, path, names, findings) else {
            nodes.refused.insert(node_id);
            continue;
        };
        let part = match part.map(|column| part_of(&row.cells[column])) {
            Some(Err(message)) => {
                findings.row("part", place, message);
                nodes.refused.insert(node_id);
                continue;
            }
            Some(Ok(part)) => part,
            None => None,
        };
        let cell = label.map_or("", |label| &row.cells[label]);
        let words: Vec<&str> = cell.split_whitespace().collect();
        let text = words.join(" ");
        if let Some(message) = missing.stray(&text) {
            let message = format!("{message}; if the node has no label, leave it empty");
            findings.row("missing label", place, message);
            nodes.refused.insert(node_id);
            continue;
        }
        let label = (!["", "-"].contains(&text.as_str())).then_some(text);
        nodes.numbers.insert(node_id.clone(), nodes.all.len() as u32);
        nodes.all.push(Node { id: node_id, label, part, features, line: row.line });
    }
    let parts = part.map_or(String::new(), |part| format!(", part: {}", told(part, names)));
    let end = if names.is_some() { "" } else { ", no header" };
    nodes.told = format!(
        "id: {}, label: {}{parts}, {}{end}",
        told(id, names),
        nodes.label_column,
        say::many(nodes.features.len(), "feature")
    );
    Ok((!nodes.all.is_empty()).then_some(nodes))
}

fn is_number(cell: &str) -> bool {
    cell.trim().parse::<f32>().is_ok()
}

/// Notes a column that is mostly text, and returns whether it is.
fn is_text(table: &Table, column: usize, name: &str, findings: &mut Findings) -> bool {
    let filled = || table.rows.iter().filter(|row| !row.cells[column].trim().is_empty());
    let texts = filled().filter(|row| !is_number(&row.cells[column])).count();
    if texts == 0 || 2 * texts <= filled().count() {
        return false;
    }
    if let Some(row) = filled().find(|row| !is_number(&row.cells[column])) {
        let message = format!(
            "{name} is text, such as {:?}; features must be numbers: remove the column, or replace \
             it by numbers",
            say::short(row.cells[column].trim(), 40)
        );
        findings.error("text feature", Place::line(&table.path, row.line), message);
    }
    true
}

/// Features of a row that are not 0. `None` if one is not a number, which is noted.
fn numbers(
    row: &Row,
    columns: &[usize],
    path: &Path,
    names: Option<&[String]>,
    findings: &mut Findings,
) -> Option<Vec<(u32, f32)>> {
    let mut all = vec![];
    for (at, column) in columns.iter().enumerate() {
        let cell = row.cells[*column].trim();
        let wrong = match cell.parse::<f32>() {
            Ok(number) if number.is_finite() => {
                if number != 0.0 {
                    all.push((at as u32, number));
                }
                continue;
            }
            Ok(_) => format!("is {cell}, need a finite number"),
            Err(_) if cell.is_empty() => "is empty, need a number".to_string(),
            Err(_) => format!("is {:?}, need a number", say::short(cell, 40)),
        };
        let message = format!("{} {wrong}", told(*column, names));
        findings.row("feature", Place::line(path, row.line), message);
        return None;
    }
    Some(all)
}

fn part_of(cell: &str) -> Result<Option<Part>, String> {
    let name = cell.trim().to_lowercase();
    match (part_of_name(&name), name.as_str()) {
        (Some(at), _) => Ok(Some([Part::Train, Part::Valid, Part::Test][at])),
        (None, "none" | "-" | "") => Ok(None),
        _ => {
            let got = say::short(cell, 40);
            Err(format!("the part is {got:?}, need train, valid, test or none"))
        }
    }
}

fn choose(rows: &[&[String]], header: Option<bool>, request: &Request) -> Result<Chosen, String> {
    let first = rows[0];
    if first.len() < 2 {
        return Err(format!("need an id and a label in a row; {}", shown(first)));
    }
    let filled = |column: usize| {
        let cells = rows[1..].iter().filter_map(move |row| row.get(column));
        cells.filter(|cell| !cell.trim().is_empty())
    };
    let is_numeric = |column: usize| filled(column).all(|cell| is_number(cell));
    // A header has names that are known, or names above numbers.
    let by_name = || [&ID[..], &LABEL, &PART].iter().any(|names| known(first, names).is_some());
    let above = |column: usize| {
        !is_number(&first[column]) && filled(column).next().is_some() && is_numeric(column)
    };
    let chosen = || {
        let name = request.columns.label.as_ref().map(|name| name.trim().to_lowercase());
        name.is_some_and(|name| !is_number(&name) && known(first, &[name.as_str()]).is_some())
    };
    let header = header.unwrap_or_else(|| by_name() || chosen() || (0..first.len()).any(above));
    let named = |names: &[&str]| known(first, names).filter(|_| header);
    let part = named(&PART);
    let flag = match &request.columns.label {
        Some(name) => Some(asked("label", name, first, Some(header))?),
        None => named(&LABEL),
    };
    let is_free = |column: &usize| flag != Some(*column) && part != Some(*column);
    let id = named(&ID).filter(is_free).or_else(|| (0..first.len()).find(is_free));
    let id = id.ok_or_else(|| format!("there is no column for the id; {}", shown(first)))?;
    let texts = || {
        let mut texts = (0..first.len())
            .filter(|column| is_free(column) && *column != id && !is_numeric(*column));
        texts.next().filter(|_| texts.next().is_none())
    };
    let label = flag.or_else(texts).ok_or_else(|| {
        format!(
            "cannot tell which column is the label: {}. Name it 'label' in a header, or choose it \
             by --label, its name or its number from 1",
            shown(first)
        )
    })?;
    if header {
        [Some(id), part].iter().flatten().try_for_each(|at| refuse_twins(first, &[*at], None))?;
    }
    if header && request.columns.label.is_none() {
        refuse_twins(first, &[label], Some(&|value| format!("--label {value}")))?;
    }
    let header = header.then(|| first.to_vec());
    Ok(Chosen { id, label: Some(label), part, features: None, header })
}
