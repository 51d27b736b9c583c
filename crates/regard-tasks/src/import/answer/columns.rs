//! Questions in the columns of a table: a context, a question and its answer in each row.

use super::super::Request;
use super::super::findings::{Findings, Place};
use super::super::reading::Reading;
use super::super::roles::{self, Columns, Role};
use super::super::table::Table;
use super::formats::{ANSWERS, Asked, CONTEXT, Fields, Object, QUESTION, flat};
use crate::data::choose::name;
use crate::data::propose::Wanted;
use regard_models::Result;
use serde_json::Value;
use std::path::Path;

/// Flags of the roles.
const FLAGS: [&str; 3] = ["context", "question", "answer"];
/// Other columns that are used if a header names them.
const OTHERS: [&str; 3] = ["id", "title", "answer_start"];

/// Reads a table; its columns are those of the first one.
pub(super) fn read(
    path: &Path,
    request: &Request,
    like: &mut Option<Columns>,
    reading: &mut Option<Reading>,
    findings: &mut Findings,
) -> Result<Vec<Asked>> {
    let mut table = Table::read(path, request.separator(), findings)?;
    if table.rows.is_empty() {
        return Ok(vec![]);
    }
    let chosen = request.for_table(&table);
    let columns = match chosen.and_then(|request| choose(&table, &request, like.as_ref())) {
        Ok(columns) => columns,
        Err(message) => {
            findings.error("columns", Place::whole(path), message);
            return Ok(vec![]);
        }
    };
    reading.get_or_insert_with(|| {
        let names = columns.header.as_deref();
        let blank = Reading::of_table(&table, names.is_some());
        FLAGS.iter().zip(&columns.of).fold(blank, |all, (flag, at)| all.with(flag, at, names))
    });
    table.take_header(columns.header.is_some(), findings);
    let header = columns.header.as_deref().unwrap_or_default();
    let find = |wanted: &str| header.iter().position(|cell| name(cell) == wanted);
    let others = OTHERS.map(|wanted| find(wanted).map(|column| (wanted, column)));
    let mut all = vec![];
    for row in &table.rows {
        let place = Place::line(path, row.line);
        let mut object = Object::new();
        let roles = FLAGS.iter().zip(&columns.of).map(|(flag, at)| (*flag, at[0]));
        for (key, column) in roles.chain(others.into_iter().flatten()) {
            let cell = row.cells[column].trim();
            // A missing place of an answer is searched for.
            let value = match (key, cell.parse::<u64>()) {
                ("answer_start", Ok(start)) => start.into(),
                ("id" | "title" | "answer_start", _) if cell.is_empty() => continue,
                // The text as it is: places count its characters.
                ("context", _) => Value::String(row.cells[column].clone()),
                _ => Value::String(cell.to_string()),
            };
            object.insert(key.into(), value);
        }
        all.extend(flat(&object, &Fields::known(), place, findings));
    }
    like.get_or_insert(columns);
    Ok(all)
}

fn choose(table: &Table, request: &Request, like: Option<&Columns>) -> Result<Columns, String> {
    let [context, question, answer] =
        [&request.columns.context, &request.columns.question, &request.columns.answer]
            .map(|asked| asked.as_deref());
    let roles = [
        Role { flag: FLAGS[0], asked: context, names: vec![&CONTEXT[..]], several: false },
        Role { flag: FLAGS[1], asked: question, names: vec![&QUESTION[..]], several: false },
        Role { flag: FLAGS[2], asked: answer, names: vec![&ANSWERS[..]], several: false },
    ];
    match roles::choose(table, &roles, request.header, like)? {
        Some(columns) => Ok(columns),
        None => {
            let wanted = [Wanted::Longest, Wanted::Question, Wanted::Text];
            Err(roles::unclear(table, &roles, request.header, &wanted))
        }
    }
}
