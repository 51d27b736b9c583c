//! Rows of columns: with tabs between them, or with commas and quotes as spreadsheets write them.

use std::io::BufRead;

use regard_models::{Error, Result};

use super::stream::{LONGEST, Lines};

/// Separator between columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// A tab; nothing is quoted, so a quotation mark is an ordinary character.
    Tab,
    /// A comma; a column in quotation marks may contain commas, line ends and, doubled, quotation
    /// marks (RFC 4180).
    Comma,
    /// As [`Separator::Comma`] with semicolons, as spreadsheets write them where the comma is the
    /// decimal mark.
    Semicolon,
    /// As [`Separator::Comma`] with another character, which the first line of a file names or its
    /// rows show.
    Other(char),
}

/// Returns the next row, or `None` at the end. Lines that are empty or have only spaces are skipped,
/// as JSON lines and words with tags have them between rows.
pub fn row<R: BufRead>(lines: &mut Lines<R>, between: Separator) -> Result<Option<Vec<String>>> {
    while let Some(line) = lines.next().transpose()? {
        if line.trim_matches(' ').is_empty() {
            continue;
        }
        return match between {
            Separator::Tab => Ok(Some(line.split('\t').map(str::to_owned).collect())),
            Separator::Comma => quoted(lines, &line, ',').map(Some),
            Separator::Semicolon => quoted(lines, &line, ';').map(Some),
            Separator::Other(between) => quoted(lines, &line, between).map(Some),
        };
    }
    Ok(None)
}

/// Returns the columns of a row that begins with `line` and may continue over the next lines.
fn quoted<R: BufRead>(lines: &mut Lines<R>, line: &str, between: char) -> Result<Vec<String>> {
    let first = lines.number();
    let mut columns = Vec::new();
    let mut line = line.to_owned();
    let mut rest = line.as_str();
    loop {
        let Some(inside) = rest.strip_prefix('"') else {
            let (column, after) = split(rest, between);
            columns.push(column.to_owned());
            match after {
                Some(after) => rest = after,
                None => return Ok(columns),
            }
            continue;
        };
        let mut column = String::new();
        rest = inside;
        loop {
            match rest.split_once('"') {
                Some((before, after)) if after.starts_with('"') => {
                    column += before;
                    column.push('"');
                    rest = &after[1..];
                }
                Some((before, after)) => {
                    column += before;
                    rest = after;
                    break;
                }
                None => {
                    column += rest;
                    column.push('\n');
                    if column.len() > LONGEST {
                        return Err(lines.error(format!(
                            "the quotation mark of line {first} is not closed in {LONGEST} bytes"
                        )));
                    }
                    line = match lines.next() {
                        Some(Ok(next)) => next,
                        Some(Err(error)) => {
                            let text = error.to_string();
                            let name = format!("{}: ", lines.name().display());
                            return Err(Error::file(
                                lines.name(),
                                format!(
                                    "{}; the line is within the quotation marks of line {first}",
                                    text.strip_prefix(&name).unwrap_or(&text)
                                ),
                            ));
                        }
                        None => {
                            return Err(lines.error(format!(
                                "the file ends within the quotation marks of line {first}"
                            )));
                        }
                    };
                    rest = line.as_str();
                }
            }
        }
        columns.push(column);
        match split(rest, between) {
            ("", Some(after)) => rest = after,
            ("", None) => return Ok(columns),
            (stray, _) => {
                let place = match lines.number() == first {
                    true => "a quotation mark".to_string(),
                    false => format!("the quotation marks of line {first}"),
                };
                return Err(lines.error(format!("got {stray:?} after {place}")));
            }
        }
    }
}

/// Splits a text at the next separator.
fn split(text: &str, between: char) -> (&str, Option<&str>) {
    match text.split_once(between) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, between: Separator) -> Result<Vec<Vec<String>>, String> {
        let mut lines = Lines::new(text.as_bytes(), "in");
        let mut rows = Vec::new();
        while let Some(row) = row(&mut lines, between).map_err(|e| e.to_string())? {
            rows.push(row);
        }
        Ok(rows)
    }

    #[test]
    fn commas_and_quotes() {
        for (text, wanted) in [
            ("a,b\n\n  \nc,d\n \n", vec![vec!["a", "b"], vec!["c", "d"]]),
            ("\"a,b\",\"c \"\"d\"\"\"\n", vec![vec!["a,b", "c \"d\""]]),
            ("\"one\r\n\ntwo\",1\n", vec![vec!["one\n\ntwo", "1"]]),
            (",\n\"\",\n", vec![vec!["", ""], vec!["", ""]]),
            ("a \"b\" c,5\" wide", vec![vec!["a \"b\" c", "5\" wide"]]),
        ] {
            assert_eq!(rows(text, Separator::Comma).unwrap(), wanted, "{text:?}");
        }
    }

    #[test]
    fn with_tabs_nothing_is_quoted() {
        let found = rows("\"a\tb,c\"\n\t\n", Separator::Tab).unwrap();
        assert_eq!(found, [["\"a", "b,c\""], ["", ""]]);
    }

    #[test]
    fn quotes_that_are_wrong_are_named() {
        for (text, message) in [
            ("a,b\nc,\"d\ne\n", "in: line 3: the file ends within the quotation marks of line 2"),
            ("\"a\"b,c\n", "in: line 1: got \"b\" after a quotation mark"),
            ("\n\"a\nd\"b,c\n", "in: line 3: got \"b\" after the quotation marks of line 2"),
        ] {
            assert_eq!(rows(text, Separator::Comma).unwrap_err(), message);
        }
    }
}
