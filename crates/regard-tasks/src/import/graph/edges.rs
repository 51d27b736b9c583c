//! The table of edges.

use super::nodes::Nodes;
use super::{large, like};
use crate::import::Request;
use crate::import::columns::{known, shown, told};
use crate::import::findings::{Findings, Place, numbered};
use crate::import::reading::Reading;
use crate::import::table::{Row, Table};
use crate::say;
use regard_models::{Result, checkpoint};
use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::Path;

const FROM: [&str; 6] = ["source", "from", "src", "source_id", "from_id", "u"];
const TO: [&str; 7] = ["target", "to", "dst", "target_id", "to_id", "dest", "v"];

/// Percentage of edges with their reverse from which edges have a direction. Lists of undirected
/// edges name each once, but for a few: 6 % of the citations in the files of Cora.
const DIRECTED: f64 = 10.0;
/// Percentage of edges with their reverse from which a list names both directions.
const BOTH: f64 = 99.0;

/// Edges between nodes, by index.
pub(super) struct Edges {
    pub all: Vec<(u32, u32)>,
    /// Features of each edge; empty if edges have none.
    pub features: Vec<Vec<f32>>,
    /// Nodes with edges that were left out because of the node at the other end.
    pub others: Vec<u32>,
    /// Sentence about the columns.
    columns: String,
    /// Percentage of the edges whose reverse is there too.
    reversed: f64,
    /// How the table was read.
    pub reading: Reading,
}

/// Chosen columns.
struct Columns {
    from: usize,
    to: usize,
    features: Vec<usize>,
}

/// Reads the table of edges. `None` if it has none.
pub(super) fn read(
    path: &Path,
    nodes: &Nodes,
    request: &Request,
    findings: &mut Findings,
) -> Result<Option<Edges>> {
    let mut table = Table::read(path, None, findings)?;
    spaces(&mut table);
    let Some(first) = table.sample(1).first().map(|row| row.to_vec()) else { return Ok(None) };
    if first.len() < 2 {
        let message = format!("need the ids of two nodes in a row; {}", shown(&first));
        findings.error("columns", Place::whole(path), message);
        return Ok(None);
    }
    let is_node = |cell: &String| nodes.numbers.contains_key(cell.trim());
    let header = table.keys.as_ref().map(|_| true).or(request.header).unwrap_or_else(|| {
        let by_name = known(&first, &FROM).is_some() && known(&first, &TO).is_some();
        // Two names above edges, not an edge of two unknown nodes.
        let above = || {
            let next = table.rows.get(1).map(|row| &row.cells);
            next.is_some_and(|cells| cells.len() > 1 && cells[..2].iter().all(is_node))
        };
        !first[..2].iter().any(is_node) && (by_name || above())
    });
    let named = |names: &[&str]| known(&first, names).filter(|_| header);
    let (from, to) = match (named(&FROM), named(&TO)) {
        _ if header && like::ends(request, &first).is_some() => {
            like::ends(request, &first).expect("it was just there")
        }
        (Some(from), Some(to)) => (from, to),
        _ if header && first.len() > 2 => {
            // Names are unknown: the two columns of nodes, of those that hold numbers too.
            let holds = |column: &usize| {
                let cells = table.rows.iter().skip(usize::from(table.keys.is_none()));
                let cells = cells.take(1000).filter_map(|row| row.cells.get(*column));
                let (nodes, all) = cells.fold((0, 0), |(nodes, all), cell| {
                    (nodes + usize::from(is_node(cell)), all + 1)
                });
                2 * nodes > all
            };
            match (0..first.len()).filter(holds).collect::<Vec<_>>()[..] {
                [from, to] => (from, to),
                ref found => {
                    let message = format!(
                        "cannot tell which two columns are the ends of an edge: {} of {} hold \
                         nodes; {}. Name them 'source' and 'target' in the header",
                        found.len(),
                        first.len(),
                        shown(&first)
                    );
                    findings.error("columns", Place::whole(path), message);
                    return Ok(None);
                }
            }
        }
        _ => (0, 1),
    };
    let header = header.then_some(first);
    table.take_header(header.is_some(), findings);
    let names = header.as_deref();
    let width = table.rows.front().map_or(2, |row| row.cells.len());
    let others = (0..width).filter(|column| *column != from && *column != to);
    let columns: Vec<usize> = match like::edge_features(request, names, others.clone().collect()) {
        Ok(Some(columns)) => {
            let mut all = columns.iter();
            if !all.all(|column| is_feature(&table, *column, names, findings)) {
                let message = "a feature of edges that the run was trained with is not a number";
                findings.error("features", Place::whole(path), message);
            }
            columns
        }
        Ok(None) => others.filter(|column| is_feature(&table, *column, names, findings)).collect(),
        Err(message) => {
            findings.error("columns", Place::whole(path), message);
            return Ok(None);
        }
    };
    let mut edges = Edges {
        all: vec![],
        features: vec![],
        others: vec![],
        columns: format!("edges: {} to {}", told(from, names), told(to, names)),
        reversed: 0.0,
        reading: [("from", &[from][..]), ("to", &[to]), ("edge_features", &columns)]
            .into_iter()
            .fold(Reading::of_table(&table, names.is_some()), |reading, (role, at)| {
                reading.with(role, at, names)
            }),
    };
    if !columns.is_empty() {
        let named: Vec<String> = columns.iter().map(|column| told(*column, names)).collect();
        edges.columns += &format!(", features: {}", say::list(&named, 5));
    }
    let columns = Columns { from, to, features: columns };
    edges.collect(&table, &columns, nodes, findings);
    if edges.all.is_empty() {
        findings.error("no edges", Place::whole(path), "there are no edges between the nodes");
        return Ok(None);
    }
    Ok(Some(edges))
}

/// Splits rows of one cell at their spaces, and removes comments: lists of edges are often written
/// so.
fn spaces(table: &mut Table) {
    if table.keys.is_some() {
        return;
    }
    table.rows.retain(|row| !row.cells[0].starts_with(['#', '%']));
    if table.rows.iter().all(|row| row.cells.len() == 1) {
        for row in &mut table.rows {
            row.cells = row.cells[0].split_whitespace().map(str::to_string).collect();
        }
        table.rows.retain(|row| !row.cells.is_empty());
    }
}

fn number(cell: &str) -> Option<f32> {
    cell.trim().parse().ok().filter(|x: &f32| x.is_finite())
}

/// Whether a column has a number in every row; others are noted.
fn is_feature(
    table: &Table,
    column: usize,
    names: Option<&[String]>,
    findings: &mut Findings,
) -> bool {
    let numbers = table.rows.iter().map(|row| (row, number(&row.cells[column])));
    let Some((bad, _)) = numbers.clone().find(|(_, number)| number.is_none()) else {
        let most = numbers.filter_map(|(_, number)| number).fold(0.0, |most, x| x.abs().max(most));
        large(&told(column, names), most, &table.path, findings);
        return true;
    };
    let message = format!(
        "{} is {:?}, not a number: the column is not used as a feature of edges",
        told(column, names),
        say::short(bad.cells[column].trim(), 40)
    );
    findings.warn("column not used", Place::line(&table.path, bad.line), message);
    false
}

impl Edges {
    /// Adds the edges of a table.
    fn collect(
        &mut self,
        table: &Table,
        columns: &Columns,
        nodes: &Nodes,
        findings: &mut Findings,
    ) {
        let (path, Columns { from, to, features }) = (&table.path, columns);
        let mut lines: HashMap<(u32, u32), u64> = HashMap::new();
        let mut refused = 0;
        for row in &table.rows {
            let place = Place::line(path, row.line);
            let Some(ends) = columns.ends(row, nodes) else {
                let unknown = |column: &&usize| {
                    let id = row.cells[**column].trim();
                    !nodes.numbers.contains_key(id) && !nodes.refused.contains(id)
                };
                let unknown: Vec<&usize> = [from, to].into_iter().filter(unknown).collect();
                if unknown.is_empty() {
                    refused += 1;
                    let known =
                        [from, to].map(|column| nodes.numbers.get(row.cells[*column].trim()));
                    self.others.extend(known.into_iter().flatten());
                    continue;
                }
                let ids = unknown
                    .into_iter()
                    .map(|column| format!("{:?}", say::short(row.cells[*column].trim(), 40)));
                let ids = ids.collect::<Vec<_>>().join(" and no node ");
                let message = format!("there is no node {ids} in {}", nodes.path.display());
                findings.row("unknown node", place, message);
                continue;
            };
            if ends.0 == ends.1 {
                let id = say::short(row.cells[*from].trim(), 40);
                let message = format!(
                    "an edge of {id:?} to itself; left out, because every node attends to itself"
                );
                findings.warn("self loop", place, message);
                continue;
            }
            if let Some(line) = lines.get(&ends) {
                let message = format!("is the edge of {}; left out", numbered(path, *line));
                findings.warn("duplicate edge", place, message);
                continue;
            }
            lines.insert(ends, row.line);
            self.all.push(ends);
            if !features.is_empty() {
                let numbers = features.iter().filter_map(|column| number(&row.cells[*column]));
                self.features.push(numbers.collect());
            }
        }
        if refused > 0 {
            let message = format!(
                "{} of nodes with problems {} left out",
                say::many(refused, "edge"),
                if refused == 1 { "is" } else { "are" }
            );
            findings.warn("edges left out", Place::whole(path), message);
        }
        let back = self.all.iter().filter(|(from, to)| lines.contains_key(&(*to, *from))).count();
        self.reversed = 100.0 * back as f64 / self.all.len().max(1) as f64;
    }

    /// Whether both ends of an edge attend to each other.
    pub fn both_ways(&self) -> bool {
        self.reversed < DIRECTED || self.reversed >= BOTH
    }

    /// Describes the columns, and how many edges there are.
    pub fn columns_told(&self, nodes: usize) -> String {
        let edges = say::many(self.all.len(), "edge");
        format!("{}; {}, {edges}", self.columns, say::many(nodes, "node"))
    }

    /// Describes the columns and the direction of edges.
    pub fn told(&self, nodes: usize) -> String {
        let edges = say::many(self.all.len(), "edge");
        let nodes = say::many(nodes, "node");
        let share = self.reversed;
        let direction = match self.both_ways() {
            true if share >= BOTH => "undirected: both directions are listed".to_string(),
            true => format!("taken as undirected: {share:.1} % of them have their reverse"),
            false => format!(
                "directed: {share:.1} % of them have their reverse; nodes attend to the sources of \
                 their edges (data.wiring.both_ways)"
            ),
        };
        format!("{}; {nodes}, {edges}, {direction}", self.columns)
    }

    /// Writes a line for each edge.
    pub fn write(&self, path: &Path) -> Result<()> {
        checkpoint::write_file_with(path, |file| {
            let mut out = BufWriter::new(file);
            for (at, (from, to)) in self.all.iter().enumerate() {
                write!(out, "{from}\t{to}")?;
                for number in self.features.get(at).into_iter().flatten() {
                    write!(out, "\t{number}")?;
                }
                writeln!(out)?;
            }
            out.flush()
        })
    }
}

impl Columns {
    /// Indices of the two nodes of a row. `None` if one is unknown.
    fn ends(&self, row: &Row, nodes: &Nodes) -> Option<(u32, u32)> {
        let node = |column: usize| nodes.numbers.get(row.cells[column].trim()).copied();
        Some((node(self.from)?, node(self.to)?))
    }
}
