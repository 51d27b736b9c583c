//! Text in columns.

use super::{pad, width};

/// A table with a heading.
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

const GAP: usize = 2;

impl<const N: usize> Table<N> {
    /// Only its heading.
    pub fn new(heading: [&str; N]) -> Table<N> {
        Table { rows: vec![heading.map(String::from)] }
    }

    /// One more row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// The lines, each behind `indent`; within `most` columns, if given, by wrapping cells.
    pub fn render(&self, indent: &str, most: Option<usize>) -> String {
        let mut widths: [usize; N] =
            std::array::from_fn(|c| self.rows.iter().map(|row| width(&row[c])).max().unwrap_or(0));
        let room = most.map_or(usize::MAX, |most| {
            most.saturating_sub(width(indent) + GAP * N.saturating_sub(1))
        });
        // The widest column gives first; 12 columns still hold most words.
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max().expect("a table has columns");
            if *widest <= 12 {
                break;
            }
            *widest -= 1;
        }
        let mut text = String::new();
        for row in &self.rows {
            let cells: [Vec<String>; N] = std::array::from_fn(|c| wrap(&row[c], widths[c]));
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let empty = String::new();
                let columns = (0..N).map(|c| pad(cells[c].get(line).unwrap_or(&empty), widths[c]));
                let columns: Vec<_> = columns.collect();
                text += indent;
                text += columns.join(&" ".repeat(GAP)).trim_end();
                text.push('\n');
            }
        }
        text
    }
}

/// Breaks a text between words into lines of at most so many columns; a long word stays whole.
fn wrap(text: &str, columns: usize) -> Vec<String> {
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
