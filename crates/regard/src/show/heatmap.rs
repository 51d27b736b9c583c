//! Attention maps in a terminal: rows are queries, columns are keys.

use super::terminal::Paint;
use super::{label, pad, width};

/// An attention map; `cells` is `[rows, columns]`.
pub struct Map<'a> {
    /// Lines above the map.
    pub title: Vec<String>,
    /// Labels of the queries.
    pub rows: &'a [String],
    /// Labels of the keys.
    pub columns: &'a [String],
    /// Weights in row-major order.
    pub cells: &'a [f32],
}

/// Maximum width of a row label, and height of a column label.
const LABEL: usize = 14;

/// Width of a cell: two columns are about as wide as a line is high.
const CELL: usize = 2;

/// Number of keys that fit into a map of `most` columns.
pub fn columns_that_fit(rows: &[String], most: usize) -> usize {
    (most.saturating_sub(label_width(rows) + 3) / CELL).max(1)
}

fn label_width(rows: &[String]) -> usize {
    rows.iter().map(|row| width(&label(row, LABEL))).max().unwrap_or(0)
}

/// Lines of a drawing, each with its width in columns.
pub struct HeatmapPicture(Vec<(String, usize)>);

impl Map<'_> {
    /// Largest finite weight, which gets the strongest colour.
    pub fn largest(&self) -> f32 {
        self.cells.iter().copied().filter(|w| w.is_finite()).fold(0.0, f32::max)
    }

    /// Whether a weight is exactly 0, and so drawn as a dot.
    pub fn has_zeros(&self) -> bool {
        self.cells.contains(&0.0)
    }

    /// Draws the map.
    pub fn draw(&self, paint: Paint) -> HeatmapPicture {
        let side = label_width(self.rows);
        let largest = self.largest();
        let mut lines: Vec<(String, usize)> = vec![];
        let mut line = |text: String, columns: usize| lines.push((text, columns));
        for title in &self.title {
            line(title.clone(), width(title));
        }
        let heads: Vec<Vec<String>> =
            self.columns.iter().map(|key| letters(&label(key, LABEL))).collect();
        let height = heads.iter().map(Vec::len).max().unwrap_or(0);
        for level in 0..height {
            let mut text = " ".repeat(side + 2);
            for head in &heads {
                // Vertical labels, aligned at the bottom.
                let at = (level + head.len()).checked_sub(height);
                text += &pad(at.map_or("", |at| &head[at]), CELL);
            }
            let text = text.trim_end().to_string();
            let columns = width(&text);
            line(text, columns);
        }
        for (i, row) in self.rows.iter().enumerate() {
            let name = label(row, LABEL);
            let mut text = format!("{}{name} │", " ".repeat(side - width(&name)));
            for j in 0..self.columns.len() {
                text += &cell(self.cells[i * self.columns.len() + j], largest, paint);
            }
            line(text, side + 2 + CELL * self.columns.len());
        }
        let scale: String = match paint {
            Paint::Blocks => " ░▒▓█".into(),
            _ => (1..=8).map(|n| half(n as f32 / 8.0, paint)).collect(),
        };
        let zeros = if self.has_zeros() { "   (·: exactly 0)" } else { "" };
        let legend = format!("0 {scale} {largest:.3}{zeros}");
        let plain = if paint == Paint::Blocks { 5 } else { 8 };
        let columns = width(&format!("0  {largest:.3}{zeros}")) + plain;
        line(format!("{}{legend}", " ".repeat(side + 2)), side + 2 + columns);
        HeatmapPicture(lines)
    }
}

/// Splits a word into characters, with combining marks attached.
fn letters(word: &str) -> Vec<String> {
    let mut letters: Vec<String> = vec![];
    for c in word.chars() {
        match letters.last_mut() {
            Some(last) if width(c.encode_utf8(&mut [0; 4])) == 0 => last.push(c),
            _ => letters.push(c.into()),
        }
    }
    letters
}

fn cell(weight: f32, largest: f32, paint: Paint) -> String {
    if !weight.is_finite() {
        return "??".into();
    }
    if weight == 0.0 {
        return "· ".into();
    }
    let level = (weight / largest).clamp(0.0, 1.0);
    match paint {
        Paint::Blocks => {
            const SHADES: [&str; 5] = ["  ", "░░", "▒▒", "▓▓", "██"];
            SHADES[(level * 4.0).round() as usize].into()
        }
        _ => format!("{0}{0}", half(level, paint)),
    }
}

/// One column in the colour of a level between 0 and 1.
fn half(level: f32, paint: Paint) -> String {
    match paint {
        Paint::True => {
            let [r, g, b] = colour(level);
            format!("\x1b[48;2;{r};{g};{b}m \x1b[0m")
        }
        _ => {
            // Palette colours nearest to those of `colour`, dark to bright.
            const RAMP: [u8; 11] = [234, 53, 54, 90, 126, 162, 168, 209, 215, 222, 230];
            let index = RAMP[(level * 10.0).round() as usize];
            format!("\x1b[48;5;{index}m \x1b[0m")
        }
    }
}

/// Interpolates six points of matplotlib's "magma" colour map.
fn colour(level: f32) -> [u8; 3] {
    const POINTS: [[f32; 3]; 6] = [
        [20.0, 14.0, 54.0],
        [81.0, 18.0, 124.0],
        [146.0, 43.0, 129.0],
        [211.0, 67.0, 110.0],
        [252.0, 137.0, 97.0],
        [252.0, 253.0, 191.0],
    ];
    let at = level * 5.0;
    let from = (at as usize).min(4);
    let part = at - from as f32;
    std::array::from_fn(|c| {
        (POINTS[from][c] + part * (POINTS[from + 1][c] - POINTS[from][c])).round() as u8
    })
}

/// Arranges pictures side by side, as many as fit into `most` columns.
pub fn gallery(pictures: Vec<HeatmapPicture>, most: usize) -> String {
    const GAP: usize = 4;
    let wide = |picture: &HeatmapPicture| picture.0.iter().map(|line| line.1).max().unwrap_or(0);
    let mut text = String::new();
    let mut rest = &pictures[..];
    while !rest.is_empty() {
        let (mut taken, mut columns) = (1, wide(&rest[0]));
        while taken < rest.len() && columns + GAP + wide(&rest[taken]) <= most {
            columns += GAP + wide(&rest[taken]);
            taken += 1;
        }
        let (shelf, others) = rest.split_at(taken);
        let height = shelf.iter().map(|picture| picture.0.len()).max().unwrap_or(0);
        for at in 0..height {
            let mut line = String::new();
            let mut reached = 0;
            let mut wanted = 0;
            for picture in shelf {
                if let Some((part, columns)) = picture.0.get(at) {
                    line += &" ".repeat(wanted - reached);
                    line += part;
                    reached = wanted + columns;
                }
                wanted += wide(picture) + GAP;
            }
            text += line.trim_end_matches(' ');
            text.push('\n');
        }
        rest = others;
        if !rest.is_empty() {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn every_weight_has_its_place() {
        let (rows, columns) = (words("a bc"), words("x yz"));
        let cells = [0.0, 0.5, 1.0, f32::NAN];
        let map = Map { title: vec!["t".into()], rows: &rows, columns: &columns, cells: &cells };
        let text = gallery(vec![map.draw(Paint::Blocks)], 80);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..5], ["t", "      y", "    x z", " a │· ▒▒", "bc │██??"], "{text}");
        assert_eq!(lines[5], "    0  ░▒▓█ 1.000   (·: exactly 0)");
        let coloured = gallery(vec![map.draw(Paint::True)], 80);
        assert!(coloured.contains("\x1b[48;2;252;253;191m"), "{coloured:?}");
    }

    #[test]
    fn pictures_share_a_line_only_if_they_fit() {
        let (rows, columns) = (words("a b"), words("x y"));
        let cells = [0.0, 0.2, 0.3, 0.4];
        let draw = || {
            let map = Map { title: vec![], rows: &rows, columns: &columns, cells: &cells };
            map.draw(Paint::Blocks)
        };
        let (one, two) = (gallery(vec![draw()], 80), gallery(vec![draw(), draw()], 80));
        assert_eq!(one.lines().count(), two.lines().count());
        assert!(gallery(vec![draw(), draw()], 40).lines().count() > one.lines().count());
    }
}
