//! Queries and texts with their relevance: a table with the columns `query`, `text` and `label`, or
//! JSON lines with those keys.
//!
//! A table is separated by tabs, or by commas if its name ends in `.csv`. Its first row names the
//! columns, in any order; without names the columns are query, text and label. A label is a number
//! from 0 to 100: 0 is irrelevant, larger is more relevant.

use super::columns::{Separator, row};
use super::stream::Lines;
use regard_models::{Error, Result};
use serde::Deserialize;
use std::path::Path;

/// A query, a text, and how relevant the text is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankingExample {
    /// The query.
    pub query: String,
    /// A candidate text.
    pub text: String,
    /// Relevance from 0 to 100: 0 is irrelevant, larger is more relevant.
    #[serde(rename = "label")]
    pub relevance: f64,
    /// Id of the query. Without one, equal texts are the same query.
    #[serde(skip)]
    pub query_id: Option<String>,
}

/// The columns of a table, in the order of the fields.
const COLUMNS: [&str; 3] = ["query", "text", "label"];

/// Reads a file.
///
/// # Errors
/// With the line: a row without three columns, an empty query or text, a label that is not a
/// number from 0 to 100.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<RankingExample>> {
    let path = path.as_ref();
    let ends = |end: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(end));
    let mut lines = Lines::open(path)?;
    let mut all = vec![];
    if ends("jsonl") || ends("json") {
        while let Some(line) = lines.next().transpose()? {
            if line.trim().is_empty() {
                continue;
            }
            let judged: RankingExample =
                serde_json::from_str(&line).map_err(|e| lines.error(e.to_string()))?;
            all.push(checked(judged).map_err(|message| lines.error(message))?);
        }
    } else {
        let between = if ends("csv") { Separator::Comma } else { Separator::Tab };
        let mut order = None;
        while let Some(columns) = row(&mut lines, between)? {
            let Some(at) = order else {
                let (found, named) = header(&columns).map_err(|message| lines.error(message))?;
                order = Some(found);
                if !named {
                    all.push(judged(&columns, found).map_err(|message| lines.error(message))?);
                }
                continue;
            };
            all.push(judged(&columns, at).map_err(|message| lines.error(message))?);
        }
    }
    match all.is_empty() {
        true => Err(Error::file(path, "holds no queries")),
        false => Ok(all),
    }
}

/// Columns of query, text and label, and whether the first row names them.
fn header(first: &[String]) -> Result<([usize; 3], bool), String> {
    let place = |name: &str| first.iter().position(|c| c.trim().eq_ignore_ascii_case(name));
    match COLUMNS.map(place) {
        [Some(query), Some(text), Some(label)] => Ok(([query, text, label], true)),
        [None, None, None] if first.len() == 3 => Ok(([0, 1, 2], false)),
        [None, None, None] => {
            let got = first.len();
            Err(format!("has {got} columns, need query, text and label, or their names"))
        }
        found => {
            let lacks = COLUMNS.iter().zip(found).find(|(_, at)| at.is_none());
            Err(format!("has no column {:?}", lacks.map_or("", |(name, _)| name)))
        }
    }
}

fn judged(columns: &[String], [query, text, label]: [usize; 3]) -> Result<RankingExample, String> {
    let most = query.max(text).max(label);
    if columns.len() <= most {
        return Err(format!("has {} columns, need {}", columns.len(), most + 1));
    }
    let relevance = columns[label].trim();
    let relevance = relevance
        .parse()
        .map_err(|_| format!("label {relevance:?}: need a number, 0 for irrelevant"))?;
    let field = |at: usize| columns[at].clone();
    checked(RankingExample { query: field(query), text: field(text), relevance, query_id: None })
}

fn checked(judged: RankingExample) -> Result<RankingExample, String> {
    let trimmed = |text: &String| text.trim().to_string();
    let (query, text) = (trimmed(&judged.query), trimmed(&judged.text));
    let judged = RankingExample { query, text, ..judged };
    if judged.query.is_empty() || judged.text.is_empty() {
        return Err("the query or the text is empty".into());
    }
    match (0.0..=100.0).contains(&judged.relevance) {
        true => Ok(judged),
        false => Err(format!("label {}: need a number from 0 to 100", judged.relevance)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    fn parse(name: &str, text: &str) -> Result<Vec<RankingExample>, String> {
        with_file(name, text.as_bytes(), |path| read(path).map_err(|e| e.to_string()))
    }

    #[test]
    fn all_forms_say_the_same() {
        let wanted = [("a", "b c", 1.0), ("a", "d", 0.0)];
        for (name, text) in [
            ("rank.tsv", "a\tb c\t1\na\td\t0\n"),
            ("rank-named.tsv", "label\tquery\ttext\n1\ta\tb c\n0\ta\td\n"),
            ("rank.csv", "query,text,label\na,\"b c\",1\na,d,0\n"),
            (
                "rank.jsonl",
                "{\"query\": \"a\", \"text\": \"b c\", \"label\": 1}\n\
                 {\"query\": \"a\", \"text\": \"d\", \"label\": 0}\n",
            ),
        ] {
            let found = parse(name, text).unwrap();
            let found: Vec<(&str, &str, f64)> =
                found.iter().map(|j| (&*j.query, &*j.text, j.relevance)).collect();
            assert_eq!(found, wanted, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (name, text, message) in [
            ("rank-two.tsv", "a\tb\n", "has 2 columns, need query, text and label"),
            ("rank-half.tsv", "query\ttext\nx\ty\n", "has no column \"label\""),
            ("rank-word.tsv", "a\tb\tyes\n", "label \"yes\": need a number"),
            ("rank-empty.tsv", "a\tb\t1\n\tb\t0\n", "line 2: the query or the text is empty"),
            ("rank-minus.tsv", "a\tb\t-1\n", "need a number from 0"),
            ("rank-none.tsv", "", "holds no queries"),
            ("rank-key.jsonl", "{\"query\": \"a\", \"text\": \"b\", \"score\": 1}\n", "`score`"),
        ] {
            let error = parse(name, text).unwrap_err();
            assert!(error.contains(message), "{name}: {error}");
        }
    }
}
