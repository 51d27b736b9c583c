//! Tables of text.

use super::{pad, width};

/// A table with a heading and `N` columns.
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

/// A table with a heading and any number of columns.
pub struct Rows {
    /// Headings of the columns.
    pub heading: Vec<String>,
    /// Rows, with as many cells as the heading.
    pub rows: Vec<Vec<String>>,
}

const GAP: usize = 2;

impl<const N: usize> Table<N> {
    /// Creates a table with a heading and no rows.
    pub fn new(heading: [&str; N]) -> Table<N> {
        Table { rows: vec![heading.map(String::from)] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Formats the table with `indent` before each line; cells are wrapped to fit `most` columns.
    pub fn render(&self, indent: &str, most: Option<usize>) -> String {
        render(&self.rows.iter().map(|row| &row[..]).collect::<Vec<_>>(), indent, most)
    }
}

impl Rows {
    /// Formats the table, as [`Table::render`].
    pub fn render(&self, indent: &str, most: Option<usize>) -> String {
        let all: Vec<&[String]> =
            std::iter::once(&self.heading).chain(&self.rows).map(|row| &row[..]).collect();
        render(&all, indent, most)
    }
}

fn render(rows: &[&[String]], indent: &str, most: Option<usize>) -> String {
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let empty = String::new();
    let cell = |row: &[String], c: usize| row.get(c).unwrap_or(&empty).clone();
    let widest = |c: usize| rows.iter().map(|row| width(&cell(row, c))).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns).map(widest).collect();
    let room = most.map_or(usize::MAX, |most| {
        most.saturating_sub(width(indent) + GAP * columns.saturating_sub(1))
    });
    // Shrinks the widest column first, down to 12.
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter_mut().max().expect("a table has columns");
        if *widest <= 12 {
            break;
        }
        *widest -= 1;
    }
    let mut text = String::new();
    for row in rows {
        let cells: Vec<Vec<String>> =
            (0..columns).map(|c| wrap(&cell(row, c), widths[c])).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let parts = (0..columns).map(|c| pad(cells[c].get(line).unwrap_or(&empty), widths[c]));
            let parts: Vec<_> = parts.collect();
            text += indent;
            text += parts.join(&" ".repeat(GAP)).trim_end();
            text.push('\n');
        }
    }
    text
}

/// Wraps a text at spaces into lines of at most `columns`; longer words are not split.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_wrap() {
        let mut table = Table::new(["name", "formula"]);
        table.row(["dot".into(), "scale · (q · k), scale = 1/√D unless given".into()]);
        assert_eq!(
            table.render("", None),
            "name  formula\ndot   scale · (q · k), scale = 1/√D unless given\n"
        );
        let narrow = table.render("  ", Some(30));
        assert!(narrow.lines().all(|line| width(line) <= 30), "{narrow}");
        assert!(narrow.lines().count() > 2);
    }
}
