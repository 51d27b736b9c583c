//! Choice of the text and label columns of a table.
//!
//! The user may name them; else names in a header decide; else, of two columns, their contents:
//! labels are few and short. Where none of this is clear, nothing is guessed: the error shows the
//! first row and the keys that settle it.

mod names;

use super::propose::{Proposal, Wanted, propose, quoted};
use super::twins::{refuse_twins, without_copies};
use crate::say;
use names::{LABEL, LABEL_FIRST, Names, TEXT, TEXT_FIRST, by_contents, label_of_two};

/// Columns that the user chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnSelection {
    /// Names, or numbers from 1, of the text columns, separated by commas; `None` to detect them.
    pub text: Option<String>,
    /// Name, or number from 1, of the label column; `None` to detect it.
    pub label: Option<String>,
    /// Whether the first row names the columns; `None` to detect it.
    pub header: Option<bool>,
    /// How messages name these choices.
    pub spelling: Spelling,
}

impl ColumnSelection {
    /// Refuses columns that were found by their names if others have these names too.
    fn refuse_twins(&self, first: &Row, text: &[usize], label: usize) -> Result<(), String> {
        if self.text.is_none() {
            refuse_twins(first, text, Some(&|value| self.spelling.set("text", value)))?;
        }
        match self.label {
            Some(_) => Ok(()),
            None => refuse_twins(first, &[label], Some(&|value| self.spelling.set("label", value))),
        }
    }
}

/// Names of the choices in messages: keys of a recipe or flags of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spelling {
    /// `data.text`, `data.label`, `data.header`.
    #[default]
    Keys,
    /// `--text`, `--label`, `--no-header`.
    Flags,
}

impl Spelling {
    /// Returns the name of a choice.
    fn name(self, key: &str) -> String {
        match self {
            Spelling::Keys => format!("data.{key}"),
            Spelling::Flags => format!("--{key}"),
        }
    }

    /// Returns how a choice is made on the command line.
    fn set(self, key: &str, value: &str) -> String {
        match self {
            Spelling::Keys => format!("--set data.{key}={value}"),
            Spelling::Flags => format!("--{key} {value}"),
        }
    }

    /// Returns how the command line says that there is no header.
    fn no_header(self) -> &'static str {
        match self {
            Spelling::Keys => "--set data.header=false",
            Spelling::Flags => "--no-header",
        }
    }
}

/// The chosen columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Text columns, counted from 0.
    pub text: Vec<usize>,
    /// Label column, counted from 0.
    pub label: usize,
    /// Names of all columns; `None` if the first row is not a header.
    pub header: Option<Vec<String>>,
}

type Row = [String];

impl Columns {
    /// Describes the choice, for messages.
    pub fn told(&self) -> String {
        let name = |column: &usize| match &self.header {
            Some(names) => format!("'{}'", say::short(&names[*column], 30)),
            None => (column + 1).to_string(),
        };
        let texts: Vec<String> = self.text.iter().map(name).collect();
        let header = if self.header.is_some() { "" } else { ", no header" };
        format!("text: column {}, label: column {}{header}", texts.join(" + "), name(&self.label))
    }

    /// Returns the names of the text columns and of the label column, in lower case, or their
    /// numbers from 1.
    pub(crate) fn names(&self) -> Vec<String> {
        let one = |at: &usize| match &self.header {
            Some(names) => name(&names[*at]),
            None => (at + 1).to_string(),
        };
        self.text.iter().chain([&self.label]).map(one).collect()
    }

    /// Returns the name of the label column, or its number from 1, for messages.
    pub fn label_name(&self) -> String {
        match &self.header {
            Some(names) => format!("'{}'", say::short(&names[self.label], 30)),
            None => (self.label + 1).to_string(),
        }
    }
}

/// Chooses columns from the first rows of a table. `labels` are those that a model knows, and
/// `like` the columns of the training table.
pub fn choose(
    rows: &[&Row],
    asked: &ColumnSelection,
    labels: Option<&[&str]>,
    like: Option<&Columns>,
) -> Result<Columns, String> {
    let rows = &without_copies(rows)[..];
    let first = *rows.first().ok_or("is empty")?;
    if first.len() < 2 {
        return Err(format!("need a text and a label in a row; {}", shown(first)));
    }
    if let Some(like) = like {
        let same = |names: &Vec<String>| {
            names.iter().map(|cell| name(cell)).eq(first.iter().map(|cell| name(cell)))
        };
        if like.header.as_ref().is_some_and(same) {
            return Ok(like.clone());
        }
        // The same names in another order.
        let find = |at: &usize| {
            let wanted = name(like.header.as_ref()?.get(*at)?);
            first.iter().position(|cell| name(cell) == wanted)
        };
        let texts = like.text.iter().map(find).collect::<Option<Vec<_>>>();
        if let (Some(text), Some(label), None, None) =
            (texts, find(&like.label), &asked.text, &asked.label)
        {
            asked.refuse_twins(first, &text, label)?;
            return Ok(Columns { text, label, header: Some(first.to_vec()) });
        }
    }
    let texts = asked.text.as_deref().map(|text| several(text, first));
    let texts =
        texts.map(|all| all.into_iter().map(|one| place("text", one, first, asked)).collect());
    let texts: Option<Vec<(usize, bool)>> = texts.transpose()?;
    let label = asked.label.as_deref().map(|one| place("label", one, first, asked));
    let label = label.transpose()?;
    let by_name = texts.iter().flatten().chain(&label).any(|(_, by_name)| *by_name);
    let label = label.map(|(column, _)| column);
    let texts: Option<Vec<usize>> = texts.map(|all| all.into_iter().map(|one| one.0).collect());
    let names = Names::of(first);
    let unclear = || unclear(rows, asked);
    let header = match asked.header {
        Some(header) => header,
        None if by_name => true,
        None if names.is_header(rows) => true,
        None => by_contents(rows, &names, label, labels).ok_or_else(unclear)?,
    };
    let rest = &rows[usize::from(header)..];
    if !header
        && let Some(like) = like.filter(|like| like.header.is_none())
        && (texts.is_none() && label.is_none())
        && like.text.iter().chain([&like.label]).all(|column| *column < first.len())
    {
        return Ok(like.clone());
    }
    let two = first.len() == 2;
    let label = match (label, &texts) {
        (Some(label), _) => label,
        (None, Some(texts)) if two && texts.len() == 1 => 1 - texts[0],
        _ if header && names.label().is_some() => names.label().ok_or_else(unclear)?,
        _ if header && !names.labels.is_empty() => return Err(unclear()),
        _ if header && two && names.texts.len() == 1 => 1 - names.texts[0],
        _ if two => label_of_two(rest, labels).ok_or_else(unclear)?,
        _ => return Err(unclear()),
    };
    let text = match texts {
        Some(texts) => texts,
        None if two => vec![1 - label],
        None if header => {
            let known = names.text(label);
            if known.is_empty() {
                return Err(unclear());
            }
            known
        }
        None => return Err(unclear()),
    };
    if text.contains(&label) {
        let [text, label] = ["text", "label"].map(|key| asked.spelling.name(key));
        return Err(format!("{text} and {label} name the same column; {}", shown(first)));
    }
    if header {
        asked.refuse_twins(first, &text, label)?;
    }
    Ok(Columns { text, label, header: header.then(|| first.to_vec()) })
}

/// Splits names or numbers of columns at their commas. A single name may have a comma in it.
pub(crate) fn several<'a>(asked: &'a str, first: &Row) -> Vec<&'a str> {
    match first.iter().any(|cell| name(cell) == name(asked)) {
        true => vec![asked],
        false => asked.split(',').collect(),
    }
}

/// Returns the index of a column that the user chose, and whether it was chosen by name.
pub(crate) fn place(
    key: &str,
    asked: &str,
    first: &Row,
    ColumnSelection { header, spelling, .. }: &ColumnSelection,
) -> Result<(usize, bool), String> {
    let asked = asked.trim();
    let named = first.iter().position(|cell| name(cell) == asked.to_lowercase());
    if let Some(column) = named.filter(|_| *header != Some(false)) {
        // Keys of objects may differ in case alone.
        let same = |at: &usize| plain(&first[*at]) == asked;
        if let [one] = (0..first.len()).filter(same).collect::<Vec<_>>()[..] {
            return Ok((one, true));
        }
        refuse_twins(first, &[column], Some(&|value| spelling.set(key, value)))?;
        return Ok((column, true));
    }
    let number = asked.parse().ok().filter(|number| (1..=first.len()).contains(number));
    if let Some(number) = number {
        return Ok((number - 1, false));
    }
    let cells: Vec<&str> = first.iter().map(String::as_str).collect();
    Err(format!(
        "{}: there is no column {asked:?}; {}{}",
        spelling.name(key),
        say::did_you_mean(asked, &cells),
        shown(first)
    ))
}

pub(crate) fn name(cell: &str) -> String {
    // Spreadsheets put a byte-order mark before the first name.
    cell.trim().trim_start_matches('\u{feff}').to_lowercase()
}

/// A cell without spaces around it and the byte-order mark that joined files have between them.
pub(super) fn plain(cell: &str) -> &str {
    cell.trim().trim_start_matches('\u{feff}').trim()
}

/// Number of columns that a message lists.
pub(crate) const LISTED: usize = 40;

/// The first row, for messages: every column up to a sane number.
pub(crate) fn shown(first: &Row) -> String {
    let cells: Vec<String> =
        first.iter().map(|cell| format!("{:?}", say::short(cell, 36))).collect();
    format!("the first row is: {}", say::list(&cells, LISTED))
}

/// Message for columns that are not clear, with flags that settle it for this table.
fn unclear(rows: &[&Row], asked: &ColumnSelection) -> String {
    let spelling = asked.spelling;
    let [text, label] = ["text", "label"].map(|key| spelling.name(key));
    let no_header = spelling.no_header();
    let found = propose(rows, asked.header, &[Wanted::Longest, Wanted::Few]);
    // Texts that are found by their names if the label is clear: all of them.
    let known: Vec<&str> = text_columns(rows[0]).iter().map(|at| plain(&rows[0][*at])).collect();
    let example = found.map_or(String::new(), |Proposal { mut values, by_name }| {
        let known: Vec<&str> = known.into_iter().filter(|name| quoted(name) != values[1]).collect();
        if by_name && !known.is_empty() {
            values[0] = quoted(&known.join(","));
        }
        let flags = [("text", &values[0]), ("label", &values[1])];
        let [text, label] = flags.map(|(key, value)| spelling.set(key, value));
        let end = if by_name { String::new() } else { format!(" {no_header}") };
        format!(", such as {text} {label}{end}")
    });
    format!(
        "cannot tell which columns are the text and the label: {}. Set {text} and {label} to names \
         of a header or to numbers from 1 (several text columns with commas between them){example}; \
         if the first row is an example and not a header, {no_header}",
        shown(rows[0])
    )
}

/// Returns the text columns by their names in a header: a preferred name alone, or all other names.
pub(crate) fn text_columns(header: &Row) -> Vec<usize> {
    Names::of(header).texts
}

/// Whether a row has known names of a text and of a label.
pub(crate) fn is_text_and_label(first: &Row) -> bool {
    let names = Names::of(first);
    !names.texts.is_empty() && !names.labels.is_empty()
}

/// Whether the first row is a header, if nothing is known about labels: by known names, or because
/// only numbers are below a name.
pub(crate) fn is_header(rows: &[&Row]) -> bool {
    let rows = &without_copies(rows)[..];
    rows.first().is_some_and(|first| Names::of(first).is_header(rows)) || is_above_numbers(rows)
}

/// Whether a cell of the first row is a name above nothing but numbers.
pub(crate) fn is_above_numbers(rows: &[&Row]) -> bool {
    let rows = &without_copies(rows)[..];
    let [first, rest @ ..] = rows else { return false };
    let number =
        |cell: Option<&String>| cell.is_some_and(|cell| cell.trim().parse::<f64>().is_ok());
    let above_numbers = |at: usize| {
        let cell = first.get(at);
        !number(cell)
            && cell.is_some_and(|cell| !cell.trim().is_empty())
            && rest.iter().all(|row| number(row.get(at)))
    };
    rest.len() >= 2 && (0..first.len()).any(above_numbers)
}

/// Returns the text keys and the label key of an object: those that were chosen, or known names.
pub fn of_object<'a>(
    keys: &[&'a str],
    asked: &ColumnSelection,
) -> Result<(Vec<&'a str>, &'a str), String> {
    let find = |wanted: &str| keys.iter().copied().find(|key| key.eq_ignore_ascii_case(wanted));
    let missing = |key: &str, wanted: &str| {
        let mean = say::did_you_mean(wanted, keys);
        let set = match asked.spelling {
            Spelling::Keys => format!("set data.{key}"),
            Spelling::Flags => format!("choose another with --{key}"),
        };
        format!("has no {wanted:?}; {mean}its keys are {}; {set}", say::list(keys, LISTED))
    };
    let text = match &asked.text {
        Some(names) => {
            let one = |name: &str| find(name.trim()).ok_or_else(|| missing("text", name.trim()));
            names.split(',').map(one).collect::<Result<_, _>>()?
        }
        None => match TEXT_FIRST.iter().find_map(|name| find(name)) {
            Some(text) => vec![text],
            None => TEXT.iter().filter_map(|name| find(name)).collect::<Vec<_>>(),
        },
    };
    if text.is_empty() {
        return Err(missing("text", TEXT_FIRST[0]));
    }
    let label = match &asked.label {
        Some(name) => find(name).ok_or_else(|| missing("label", name))?,
        None => {
            let known: Vec<&str> = LABEL.iter().filter_map(|name| find(name)).collect();
            match (find(LABEL_FIRST), &known[..]) {
                (Some(label), _) => label,
                (None, [only]) => only,
                _ => return Err(missing("label", LABEL_FIRST)),
            }
        }
    };
    Ok((text, label))
}

#[cfg(test)]
mod tests;
