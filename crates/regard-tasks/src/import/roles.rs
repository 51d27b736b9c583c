//! Choice of the columns of a table for the roles that a task gives them, such as source and
//! target: by flags, else by known names in a header. What is not clear is left to the task.

use super::columns::{shown, told};
use super::reading::Reading;
use super::table::Table;
use crate::data::choose::{self, ColumnSelection, Spelling, name, place};
use crate::data::propose::{Proposal, Wanted, propose, quoted};
use crate::data::twins::{refuse_twins, twins};
use crate::say;

/// Words that are left out of longer names: `source_text` is `source`.
const FILLERS: [&str; 4] = ["text", "sentence", "segment", "string"];

/// Rows from which columns are proposed.
const SAMPLE: usize = 200;

/// A role of a column.
pub(super) struct Role<'a> {
    /// Flag that chooses its column, without hyphens.
    pub flag: &'static str,
    /// Value of the flag.
    pub asked: Option<&'a str>,
    /// Known names of the column, in lower case. Names of an earlier group are preferred; two
    /// columns with names of one group are unclear.
    pub names: Vec<&'a [&'a str]>,
    /// Whether several columns, separated by commas, can be chosen.
    pub several: bool,
}

/// The chosen columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Columns of each role, counted from 0.
    pub of: Vec<Vec<usize>>,
    /// Names of all columns; `None` if the first row is not a header.
    pub header: Option<Vec<String>>,
}

impl Columns {
    /// Describes the columns of the roles: "source: column 'en', target: column 'fr'".
    pub fn told(&self, flags: &[&str]) -> String {
        let one = |(flag, columns): (&&str, &Vec<usize>)| {
            let columns = columns.iter().map(|at| told(*at, self.header.as_deref()));
            format!("{flag}: {}", columns.collect::<Vec<_>>().join(" + "))
        };
        let all: Vec<String> = flags.iter().zip(&self.of).map(one).collect();
        let header = if self.header.is_some() { "" } else { " (no header)" };
        format!("{}{header}", all.join(", "))
    }

    /// Describes how the table was read.
    pub fn reading(&self, table: &Table, flags: &[&str]) -> Reading {
        let names = self.header.as_deref();
        let reading = Reading::of_table(table, names.is_some());
        let roles = flags.iter().zip(&self.of);
        roles.fold(reading, |reading, (flag, columns)| reading.with(flag, columns, names))
    }

    /// Value of a flag that chooses the first column of a role.
    pub fn flag(&self, role: usize) -> String {
        match &self.header {
            Some(names) => quoted(names[self.of[role][0]].trim().trim_start_matches('\u{feff}')),
            None => (self.of[role][0] + 1).to_string(),
        }
    }
}

/// First row of a table, or the keys of its objects.
pub(super) fn first_row(table: &Table) -> &[String] {
    let row = || table.rows.front().map(|row| &row.cells[..]);
    table.keys.as_deref().or_else(row).unwrap_or_default()
}

/// Whether the name of a column is a known one.
pub(super) fn is_known(cell: &str, known: &[&str]) -> bool {
    let name = name(cell);
    if known.contains(&name.as_str()) {
        return true;
    }
    let words = name.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !FILLERS.contains(word)).collect();
    matches!(words[..], [word] if known.contains(&word))
}

/// Chooses the columns. `header` is whether the first row names them, if that is known, and `like`
/// the columns of the training table. `None` if neither flags nor names decide.
pub(super) fn choose(
    table: &Table,
    roles: &[Role],
    header: Option<bool>,
    like: Option<&Columns>,
) -> Result<Option<Columns>, String> {
    let first = first_row(table);
    if let Some(columns) = like.and_then(|like| same(first, like)) {
        return Ok(Some(columns));
    }
    let is_object = table.keys.is_some();
    let sure = is_object || header == Some(true);
    let has_names = is_object || header != Some(false);
    let asked = ColumnSelection {
        header: (!has_names).then_some(false),
        spelling: Spelling::Flags,
        ..ColumnSelection::default()
    };
    let mut by_name = false;
    let mut of: Vec<Option<Vec<usize>>> = vec![];
    for Role { flag, asked: value, several, .. } in roles {
        let Some(value) = value else {
            of.push(None);
            continue;
        };
        let values = if *several { choose::several(value, first) } else { vec![*value] };
        let mut columns = vec![];
        for value in values {
            let (column, named) = place(flag, value, first, &asked)?;
            by_name |= named;
            columns.push(column);
        }
        of.push(Some(columns));
    }
    let mut all_known = has_names;
    for (at, role) in roles.iter().enumerate() {
        match &of[at] {
            Some(columns) => {
                let known = |i: &usize| role.names.iter().any(|group| is_known(&first[*i], group));
                all_known &= columns.iter().all(known);
            }
            None if has_names => of[at] = named(first, role, &of)?.map(|column| vec![column]),
            None => {}
        }
        all_known &= of[at].is_some();
    }
    let given = roles.iter().any(|role| role.asked.is_some());
    let mut free = (0..first.len()).filter(|i| !of.iter().flatten().flatten().any(|j| i == j));
    if let (Some(only), None, true) = (free.next(), free.next(), given || sure)
        && let [lacking] =
            &mut of.iter_mut().filter(|columns| columns.is_none()).collect::<Vec<_>>()[..]
    {
        **lacking = Some(vec![only]);
    }
    let of = of.into_iter().collect::<Option<Vec<_>>>();
    if let (Some(like), false) = (like, given) {
        // Another guess for another part could turn a translation around.
        let is_named = of.is_some() && (sure || all_known);
        let fits = like.of.iter().flatten().all(|at| *at < first.len());
        match &like.header {
            Some(names) => return Err(other(first, like, names, roles)),
            None if !is_named && fits && !is_object => return Ok(Some(like.clone())),
            None => {}
        }
    }
    let Some(of) = of else { return Ok(None) };
    let mut seen = vec![];
    for (columns, role) in of.iter().zip(roles) {
        for column in columns {
            if let Some((_, other)) = seen.iter().find(|(each, _)| each == column) {
                let (flag, shown) = (role.flag, shown(first));
                return Err(format!("--{other} and --{flag} name the same column; {shown}"));
            }
            seen.push((*column, role.flag));
        }
    }
    let is_above = || has_names && choose::is_above_numbers(&table.sample(SAMPLE));
    let is_header = sure || by_name || all_known || is_above();
    Ok(Some(Columns { of, header: is_header.then(|| first.to_vec()) }))
}

/// Message for a table that lacks columns of the first one.
fn other(first: &[String], like: &Columns, names: &[String], roles: &[Role]) -> String {
    let wanted: Vec<String> =
        like.of.iter().flatten().map(|at| format!("{:?}", say::short(&names[*at], 30))).collect();
    let flags: Vec<String> = roles.iter().map(|role| format!("--{}", role.flag)).collect();
    format!(
        "the columns of the first table are {}, and this one lacks some of them: give them the \
         same names, or choose columns that all tables have with {}; {}",
        wanted.join(", "),
        flags.join(", "),
        shown(first)
    )
}

/// Columns of a table whose first row has the same names as the training table has for them.
fn same(first: &[String], like: &Columns) -> Option<Columns> {
    let names = like.header.as_ref()?;
    let find = |i: &usize| {
        let is_it = |at: &usize| first.get(*at).is_some_and(|cell| name(cell) == name(&names[*i]));
        // Of two columns with one name, the one at the same place.
        let same = Some(*i).filter(|at| is_it(at) && !twins(names, *at).is_empty());
        same.or_else(|| (0..first.len()).find(is_it))
    };
    let of = like.of.iter().map(|columns| columns.iter().map(find).collect::<Option<Vec<_>>>());
    Some(Columns { of: of.collect::<Option<_>>()?, header: Some(first.to_vec()) })
}

/// Free column with a known name of a role.
fn named(
    first: &[String],
    role: &Role,
    taken: &[Option<Vec<usize>>],
) -> Result<Option<usize>, String> {
    let is_free = |i: &usize| !taken.iter().flatten().flatten().any(|j| i == j);
    for group in &role.names {
        let found = (0..first.len()).filter(|i| is_free(i) && is_known(&first[*i], group));
        match found.collect::<Vec<_>>()[..] {
            [] => {}
            [one] => return Ok(Some(one)),
            [one, other, ..] => {
                let flag = role.flag;
                if name(&first[one]) == name(&first[other]) {
                    refuse_twins(first, &[one], Some(&|value| format!("--{flag} {value}")))?;
                }
                let [one, other] = [one, other].map(|i| say::short(first[i].trim(), 30));
                return Err(format!(
                    "the columns '{one}' and '{other}' can both be the {flag}: choose one, such as \
                     --{flag} {}; {}",
                    quoted(&one),
                    shown(first)
                ));
            }
        }
    }
    Ok(None)
}

/// Message for columns that are not clear, with flags that settle it for this table. `wanted` is
/// what the column of each role should hold.
pub(super) fn unclear(
    table: &Table,
    roles: &[Role],
    header: Option<bool>,
    wanted: &[Wanted],
) -> String {
    let flags: Vec<&str> = roles.iter().map(|role| role.flag).collect();
    let [many @ .., last] = &flags[..] else { return String::new() };
    let no_header = match table.keys {
        Some(_) => "",
        None => "; if the first row is an example and not a header, --no-header",
    };
    let header = if table.keys.is_some() { Some(true) } else { header };
    let found = propose(&table.sample(SAMPLE), header, wanted);
    let example = found.map_or(String::new(), |Proposal { values, by_name }| {
        let flags = flags.iter().zip(values).map(|(flag, value)| format!("--{flag} {value}"));
        let flags = flags.collect::<Vec<_>>().join(" ");
        let end = if by_name { "" } else { " --no-header" };
        format!(", such as {flags}{end}")
    });
    format!(
        "cannot tell which columns are the {} and the {last}: {}. Set --{} and --{last} to names \
         of a header or to numbers from 1{example}{no_header}",
        many.join(", the "),
        shown(first_row(table)),
        many.join(", --"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::table::Row;
    use super::*;

    fn chosen(first: &str, [source, target]: [Option<&str>; 2], header: Option<bool>) -> String {
        let row =
            |line: u64, text: &str| Row::new(line, text.split('|').map(str::to_string).collect());
        let below = match first.split('|').next() {
            Some("id" | "7") => ["1|b|c", "2|d|e"],
            _ => ["a|b|c", "d|e|f"],
        };
        let rows = [row(1, first), row(2, below[0]), row(3, below[1])].into();
        let table = Table { rows, ..Table::empty("x.tsv".as_ref()) };
        let role = |flag, asked, names| Role { flag, asked, names, several: false };
        let roles = [
            role("source", source, vec![&["source", "text"][..]]),
            role("target", target, vec![&["target", "summary"][..], &["title"]]),
        ];
        match choose(&table, &roles, header, None) {
            Ok(Some(columns)) => columns.told(&["source", "target"]),
            Ok(None) => "unclear".into(),
            Err(message) => message,
        }
    }

    #[test]
    fn names_and_flags_choose_columns() {
        let none = [None; 2];
        for (first, asked, header, wanted) in [
            ("text|summary", none, None, "source: column 'text', target: column 'summary'"),
            ("title|id|Text", none, None, "source: column 'Text', target: column 'title'"),
            // A name of an earlier group is preferred.
            ("title|summary|text", none, None, "source: column 'text', target: column 'summary'"),
            ("source_text|target text", none, None, "column 'source_text', target: column 'target"),
            ("text|summary", none, Some(false), "unclear"),
            ("text|other", none, None, "unclear"),
            ("text|other", none, Some(true), "source: column 'text', target: column 'other'"),
            ("x|y", [Some("y"), None], None, "source: column 'y', target: column 'x'"),
            ("x|y", [Some("2"), None], None, "source: column 2, target: column 1 (no header)"),
            ("x|y|z", [Some("1"), Some("3")], None, "source: column 1, target: column 3 (no"),
            (
                "text|title",
                [Some("1"), Some("2")],
                None,
                "source: column 'text', target: column 't",
            ),
            ("x|y", [Some("1"), Some("x")], None, "--source and --target name the same column"),
            ("x|y", [Some("z"), None], None, "--source: there is no column \"z\""),
            ("source|text|title", none, None, "'source' and 'text' can both be the source"),
            ("text|text|title", none, None, "columns 1 and 2 have one name, \"text\""),
            ("x|x|y", [Some("x"), Some("y")], None, "or choose one by its number: --source 1"),
            ("x|x|y", [Some("2"), Some("y")], None, "source: column 'x', target: column 'y'"),
            // A name above numbers is one.
            ("id|x|y", [Some("2"), Some("3")], None, "source: column 'x', target: column 'y'"),
            ("7|x|y", [Some("2"), Some("3")], None, "source: column 2, target: column 3 (no"),
        ] {
            let told = chosen(first, asked, header);
            assert!(told.contains(wanted), "{first}: {told}");
        }
    }
}
