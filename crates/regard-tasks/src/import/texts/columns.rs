//! Text columns of a table: those that were asked for, those of the training, or those with the
//! names of texts.

use super::{TextChoice, text_roles};
use crate::data::choose::{self, ColumnSelection, Spelling, is_header, shown, text_columns};
use crate::import::reading::{Column, Reading};
use crate::import::roles::first_row;
use crate::import::table::Table;

/// Rows from which a header is recognised.
const SAMPLE: usize = 1000;

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
    let found = choice.like.as_ref().map(|like| trained(like, first, given));
    if let Some(found) = found.transpose()?.flatten() {
        return Ok(found);
    }
    if given != Some(false) {
        let at = text_columns(first);
        // A text may be such a word too: then other rows have it in this column.
        let is_header = || table.rows.len() < 2 || is_header(&table.sample(SAMPLE));
        if !at.is_empty() && (given == Some(true) || is_header()) {
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

/// Text columns of the training table: by their names or, if it had no header, by their numbers.
/// `None` if the table lacks the names: others may be clear.
fn trained(
    like: &Reading,
    first: &[String],
    given: Option<bool>,
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
                     another: --text NUMBER, from 1",
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
        same.or_else(|| (0..first.len()).find(is_it))
    };
    let at = columns.iter().map(find).collect::<Option<Vec<_>>>();
    Ok(at.map(|at| TextColumns { at, has_header: true }))
}
