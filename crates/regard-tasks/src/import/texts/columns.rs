//! Text columns of a table: those that were asked for, those of the training, or those with the
//! names of texts.

use super::{TextChoice, text_roles};
use crate::data::choose::{self, ColumnSelection, Spelling, is_header, shown, text_columns};
use crate::data::propose::is_number;
use crate::data::twins::refuse_twins;
use crate::import::reading::{Column, Reading};
use crate::import::roles::first_row;
use crate::import::table::Table;
use crate::say;

/// Rows from which a header is recognised.
const SAMPLE: usize = 1000;
/// Rows from which a column of numbers is none of texts by chance.
const ENOUGH: usize = 3;

/// Text columns of a table.
pub(super) struct TextColumns {
    pub at: Vec<usize>,
    pub has_header: bool,
}

/// Chooses the text columns: those that were asked for, those of the training, or those with the
/// names of texts, as training does.
pub(super) fn text_columns_of(table: &Table, choice: &TextChoice) -> Result<TextColumns, String> {
    let first = first_row(table);
    let is_object = table.keys.is_some();
    let given = if is_object { Some(true) } else { choice.header };
    let flag = choice.flag;
    if let Some(asked) = choice.columns {
        let selection = ColumnSelection {
            header: given.filter(|given| !given),
            spelling: Spelling::Flags,
            ..ColumnSelection::default()
        };
        let names = choose::several(asked, first);
        let places = names.iter().map(|one| choose::place(flag, one, first, &selection));
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let by_name = places.iter().any(|(_, by_name)| *by_name);
        let has_header = given.unwrap_or_else(|| by_name || is_header(&table.sample(SAMPLE)));
        return Ok(TextColumns { at: places.into_iter().map(|(at, _)| at).collect(), has_header });
    }
    if let Some(like) = &choice.like {
        if given.is_none()
            && let Some(message) = other_header(like, table, flag)
        {
            return Err(message);
        }
        if let Some(found) = trained(like, first, given, flag)? {
            let by_number = like.header == Some(false) && !is_object;
            return match by_number.then(|| numbers(table, &found, flag)).flatten() {
                Some(message) => Err(message),
                None => Ok(found),
            };
        }
    }
    if given != Some(false) {
        let at = text_columns(first);
        // A text may be such a word too: then other rows have it in this column.
        let is_header = || table.rows.len() < 2 || is_header(&table.sample(SAMPLE));
        if !at.is_empty() && (given == Some(true) || is_header()) {
            refuse_twins(first, &at, Some(&|value| format!("--{flag} {value}")))?;
            return Ok(TextColumns { at, has_header: true });
        }
    }
    // Of the keys of an object, the only one that has texts.
    let texts: Vec<usize> = (0..first.len())
        .filter(|at| {
            let mut rows = table.rows.iter().take(SAMPLE);
            !is_object || rows.all(|row| row.other.iter().all(|(other, _)| other != at))
        })
        .collect();
    match texts[..] {
        [only] if first.len() == 1 || is_object => {
            Ok(TextColumns { at: vec![only], has_header: given == Some(true) })
        }
        _ => Err(format!(
            "cannot tell which column is the text: {}. Choose it: --{flag} NAME, or its number \
             from 1",
            shown(first)
        )),
    }
}

/// Message for a table with a header that does not name the columns from which a model reads its
/// texts by number, because its training table had no header.
fn other_header(like: &Reading, table: &Table, flag: &str) -> Option<String> {
    let (first, sample) = (first_row(table), table.sample(SAMPLE));
    let is_numbered = like.header == Some(false) && table.keys.is_none();
    if !is_numbered || like.names_texts(first) || !like.looks_like_header(&sample) {
        return None;
    }
    let number = text_roles(like).first()?.number?;
    let named = (0..first.len()).find(|at| like.names_text(&first[*at]));
    let named = named.or_else(|| text_columns(first).first().copied());
    let named = named.map_or("NAME".to_string(), |at| say::quoted(first[at].trim()));
    Some(format!(
        "{}: it looks like a header, and the model reads its texts from column {number}, because \
         it was trained on a table without a header. Choose the column: --{flag} {named}; if the \
         first row is a text, --no-header",
        shown(first)
    ))
}

/// Message if the cells of the columns are nothing but numbers, such as ids: the table has other
/// columns than that of the training.
fn numbers(table: &Table, found: &TextColumns, flag: &str) -> Option<String> {
    let rows: Vec<_> = table.rows.iter().skip(usize::from(found.has_header)).collect();
    let is_number = |at: &usize, cells: &[String]| cells.get(*at).is_some_and(|c| is_number(c));
    let all = rows.iter().all(|row| found.at.iter().all(|at| is_number(at, &row.cells)));
    (rows.len() >= ENOUGH && all).then(|| {
        format!(
            "column {}, from which the model reads its texts, is nothing but numbers, such as {:?}; \
             {}. Choose the column of the texts: --{flag} NUMBER, from 1",
            found.at[0] + 1,
            say::short(rows[0].cells[found.at[0]].trim(), 40),
            shown(first_row(table))
        )
    })
}

/// Text columns of the training table: by their names or, if it had no header, by their numbers.
/// `None` if the table has none of the names: others may be clear.
fn trained(
    like: &Reading,
    first: &[String],
    given: Option<bool>,
    flag: &str,
) -> Result<Option<TextColumns>, String> {
    let columns = text_roles(like);
    let is_numbered = like.header == Some(false) && given != Some(true);
    if is_numbered || given == Some(false) {
        let place = |column: &Column| {
            let number = column.number?;
            Some(match (1..=first.len()).contains(&number) {
                true => Ok(number - 1),
                false => Err(format!(
                    "has no column {number}, from which the model reads its texts; {}. Choose \
                     another: --{flag} NUMBER, from 1",
                    shown(first)
                )),
            })
        };
        let Some(places) = columns.iter().map(place).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let at = places.into_iter().collect::<Result<Vec<_>, _>>()?;
        let has_header = given.unwrap_or_else(|| like.names_texts(first));
        return Ok(Some(TextColumns { at, has_header }));
    }
    let find = |column: &Column| {
        let wanted = choose::name(column.name.as_deref()?);
        let is_it = |at: &usize| first.get(*at).is_some_and(|cell| choose::name(cell) == wanted);
        // Two columns may have one name.
        let same = column.number.and_then(|number| number.checked_sub(1)).filter(is_it);
        // Keys of objects may differ in case alone.
        let is_exact =
            |at: &usize| Some(first[*at].trim()) == column.name.as_deref().map(str::trim);
        let exact = || (0..first.len()).find(is_exact);
        same.or_else(exact).or_else(|| (0..first.len()).find(is_it))
    };
    let found: Vec<Option<usize>> = columns.iter().map(find).collect();
    if found.iter().any(Option::is_some)
        && let Some(at) = found.iter().position(Option::is_none)
    {
        let name = |column: &Column| column.name.clone().unwrap_or_default();
        let there = found.iter().flatten().map(|at| first[*at].trim().to_string());
        return Err(format!(
            "has no column {:?}; the model was trained on the texts of {}; {}. To take what is \
             there: --{flag} {}",
            name(&columns[at]),
            columns
                .iter()
                .map(|column| format!("{:?}", name(column)))
                .collect::<Vec<_>>()
                .join(" + "),
            shown(first),
            say::quoted(there.collect::<Vec<_>>().join(","))
        ));
    }
    let at = found.into_iter().collect::<Option<Vec<_>>>();
    Ok(at.map(|at| TextColumns { at, has_header: true }))
}
