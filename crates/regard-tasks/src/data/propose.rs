//! Columns that messages propose, judged by the contents of a table: an example that does not fit
//! the user's file is worse than none.

use super::choose::name;
use std::collections::HashSet;

/// Rows that are looked at.
const ROWS: usize = 200;
/// Longest name of a column, in characters and in words.
const LONGEST: usize = 40;
const WORDS: usize = 3;

/// What a column should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The longest texts.
    Longest,
    /// Questions or, if there are none, the texts that are repeated most.
    Question,
    /// Few different values.
    Few,
    /// Any texts; the first such column.
    Text,
}

/// Columns that are proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// Value of each flag, as a shell reads it.
    pub values: Vec<String>,
    /// Whether the values are names of a header; else they are numbers from 1 of a table without
    /// one.
    pub by_name: bool,
}

/// Contents of a column.
struct Contents {
    filled: usize,
    numbers: bool,
    length: usize,
    different: usize,
    questions: usize,
}

impl Contents {
    fn of(rows: &[&[String]], column: usize) -> Contents {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.trim());
        let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
        Contents {
            filled: cells.len(),
            numbers: cells.iter().all(|cell| is_number(cell)),
            length: cells.iter().map(|cell| cell.chars().count()).sum(),
            different: cells.iter().collect::<HashSet<_>>().len(),
            questions: cells.iter().filter(|cell| cell.ends_with(['?', '？'])).count(),
        }
    }

    /// Whether every row has another value, as ids have.
    fn is_id(&self) -> bool {
        self.different == self.filled
    }
}

/// Whether a cell is a number.
pub(crate) fn is_number(cell: &str) -> bool {
    cell.trim().parse::<f64>().is_ok()
}

/// Proposes a column for each role. `header` is whether the first row names the columns, if that is
/// known. `None` if the contents do not tell.
pub(crate) fn propose(
    rows: &[&[String]],
    header: Option<bool>,
    wanted: &[Wanted],
) -> Option<Proposal> {
    let rows = &rows[..rows.len().min(ROWS)];
    let (first, below) = rows.split_first()?;
    let by_name = header.or_else(|| is_header(first, below))?;
    let examples = if by_name { below } else { rows };
    let all: Vec<Contents> = (0..first.len()).map(|at| Contents::of(examples, at)).collect();
    let mut chosen: Vec<Option<usize>> = vec![None; wanted.len()];
    for kind in [Wanted::Question, Wanted::Longest, Wanted::Few, Wanted::Text] {
        for role in (0..wanted.len()).filter(|role| wanted[*role] == kind) {
            let is_free = |at: &usize| !chosen.contains(&Some(*at));
            let texts = || (0..all.len()).filter(|at| is_free(at) && !all[*at].numbers);
            // Of equal columns, the first.
            chosen[role] = Some(match kind {
                Wanted::Question if texts().any(|at| all[at].questions > 0) => {
                    texts().rev().max_by_key(|at| all[*at].questions)?
                }
                Wanted::Question => texts().min_by_key(|at| all[*at].different)?,
                Wanted::Longest => texts().rev().max_by_key(|at| all[*at].length)?,
                Wanted::Few => (0..all.len())
                    .filter(|at| is_free(at) && all[*at].different > 1)
                    .min_by_key(|at| (all[*at].is_id(), all[*at].different, all[*at].length))?,
                Wanted::Text => texts().next()?,
            });
        }
    }
    let value = |at: usize| match by_name {
        true => quoted(first[at].trim().trim_start_matches('\u{feff}')),
        false => (at + 1).to_string(),
    };
    let values = chosen.into_iter().map(|at| at.map(value)).collect::<Option<_>>()?;
    Some(Proposal { values, by_name })
}

/// Whether the first row names the columns; `None` if that is not clear.
fn is_header(first: &[String], below: &[&[String]]) -> Option<bool> {
    let is_name = |cell: &String| {
        let words = cell.split_whitespace().count();
        (1..=WORDS).contains(&words) && cell.chars().count() <= LONGEST && !is_number(cell)
    };
    let repeats = |at: usize| below.iter().any(|row| row.get(at) == first.get(at));
    if !first.iter().all(is_name) || (0..first.len()).any(repeats) {
        return Some(false);
    }
    let names: HashSet<String> = first.iter().map(|cell| name(cell)).collect();
    (!below.is_empty() && names.len() == first.len()).then_some(true)
}

/// Value as a shell reads it.
pub(crate) fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !value.is_empty() && value.chars().all(is_plain) {
        true => value.to_string(),
        false => format!("'{}'", value.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(text: &str, header: Option<bool>, wanted: &[Wanted]) -> String {
        let rows: Vec<Vec<String>> =
            text.lines().map(|line| line.split('|').map(str::to_string).collect()).collect();
        let rows: Vec<&[String]> = rows.iter().map(Vec::as_slice).collect();
        match propose(&rows, header, wanted) {
            Some(Proposal { values, by_name }) => format!("{} {by_name}", values.join(" ")),
            None => "none".into(),
        }
    }

    #[test]
    fn columns_are_proposed_by_their_contents() {
        use Wanted::{Few, Longest, Question, Text};
        let reviews = "nr|verdict|the review\n1|good|It was fine\n2|bad|No, never\n3|good|So so";
        let plain = "1|good|It was fine, as ever\n2|bad|No, never\n3|good|So so";
        let pairs = "id|en|fr\n1|Go.|Va !\n2|Run.|Cours !";
        let ranked = "r|passage|asked\n1|a long text|who?\n0|another text|who?\n1|x y z|why?";
        for (text, header, wanted, found) in [
            (reviews, None, &[Longest, Few][..], "'the review' verdict true"),
            (plain, None, &[Longest, Few], "3 2 false"),
            (reviews, Some(false), &[Longest, Few], "3 2 false"),
            (pairs, None, &[Text, Text], "en fr true"),
            (ranked, None, &[Question, Longest, Few], "asked passage r true"),
            // Two columns of one name cannot be named, and numbers alone are no texts.
            ("a|a\nx y|z\nu v|w", None, &[Text, Text], "none"),
            ("n|m\n1|2\n3|4", None, &[Text, Text], "none"),
            ("only|one row", None, &[Text, Text], "none"),
        ] {
            assert_eq!(proposed(text, header, wanted), found, "{text}");
        }
        assert_eq!((quoted("a,b"), quoted("it's")), ("a,b".into(), r"'it'\''s'".into()));
    }
}
