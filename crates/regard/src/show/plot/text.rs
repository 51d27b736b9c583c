//! Plots as text: a mark for each curve, on a grid of characters.

use super::{Plot, Style};
use crate::show::{label, pad, width};

/// Marks of the curves. Where curves overlap, the first one is visible.
const MARKS: [char; 8] = ['●', '○', '▲', '△', '■', '□', '×', '+'];

/// Height of the grid in lines.
const HEIGHT: usize = 16;

/// Maximum width of the grid in columns.
const WIDEST: usize = 72;

impl Plot {
    /// Draws the plot with lines of at most `most` columns.
    pub fn text(&self, most: usize) -> String {
        let [across, up] = self.axes();
        let numbers = up.ticks();
        let side = numbers.iter().map(|(_, number)| width(number)).max().unwrap_or(0);
        let wide = most.saturating_sub(side + 2).clamp(16, WIDEST);
        let mut grid = vec![vec![' '; wide]; HEIGHT];
        let column = |place: f64| (place * (wide - 1) as f64).round() as usize;
        let line = |place: f64| HEIGHT - 1 - (place * (HEIGHT - 1) as f64).round() as usize;
        for (i, curve) in self.curves.iter().enumerate().rev() {
            let mark = MARKS[i % MARKS.len()];
            let place = |p: &(f64, f64)| Some((across.place(p.0)?, up.place(p.1)?));
            let places: Vec<(f64, f64)> = curve.points.iter().filter_map(place).collect();
            if curve.style == Style::Line {
                for pair in places.windows(2) {
                    join(pair[0], pair[1], wide, |x, y| grid[line(y)][column(x)] = mark);
                }
            }
            for (x, y) in places {
                grid[line(y)][column(x)] = mark;
            }
        }
        let mut text = format!("{}\n{}\n", label(&self.title, most), label(&self.y, most));
        for (at, row) in grid.iter().enumerate() {
            let number = numbers.iter().find(|(place, _)| line(*place) == at);
            let number = number.map_or("", |(_, number)| number);
            let row: String = row.iter().collect();
            let number = format!("{}{number}", " ".repeat(side - width(number)));
            text += format!("{number} │{row}").trim_end();
            text.push('\n');
        }
        text += &format!("{} └{}\n", " ".repeat(side), "─".repeat(wide));
        let mut below = String::new();
        for (place, number) in across.ticks() {
            // Centred under its tick, within the width.
            let from = (side + 2 + column(place)).saturating_sub(width(&number) / 2);
            let from = from.min((side + 2 + wide).saturating_sub(width(&number)));
            if from > width(&below) || below.is_empty() {
                below = pad(&below, from) + &number;
            }
        }
        text += &format!("{below}\n{}{}\n", " ".repeat(side + 2), label(&self.x, most));
        let legend = |(i, curve): (usize, &super::Curve)| {
            format!("{} {}", MARKS[i % MARKS.len()], curve.name)
        };
        let mut row = String::new();
        for name in self.curves.iter().enumerate().map(legend) {
            if !row.is_empty() && side + 4 + width(&row) + width(&name) > most {
                text += &format!("{}{row}\n", " ".repeat(side + 2));
                row.clear();
            }
            row += if row.is_empty() { "" } else { "  " };
            row += &name;
        }
        text + &format!("{}{row}\n", " ".repeat(side + 2))
    }
}

/// Calls `f` with positions along a line, at least one per column and line of the grid.
fn join(from: (f64, f64), to: (f64, f64), wide: usize, mut f: impl FnMut(f64, f64)) {
    let across = (to.0 - from.0).abs() * wide as f64;
    let steps = across.max((to.1 - from.1).abs() * HEIGHT as f64).ceil().max(1.0) as usize;
    for i in 0..=steps {
        let part = i as f64 / steps as f64;
        f(from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Curve, Scale};
    use super::*;

    #[test]
    fn marks_stand_where_points_are() {
        let line = Curve {
            name: "rises".into(),
            points: vec![(0.0, 0.0), (5.0, 1.0)],
            style: Style::Line,
        };
        let dots = Curve { name: "dot".into(), points: vec![(5.0, 0.0)], style: Style::Dots };
        let plot =
            Plot { x: "x".into(), y: "y".into(), curves: vec![line, dots], ..Plot::default() };
        let text = plot.text(60);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("  1 │") && lines[2].ends_with('●'), "{text}");
        assert!(
            lines[1 + HEIGHT].starts_with("  0 │●") && lines[1 + HEIGHT].ends_with('○'),
            "{text}"
        );
        assert!(lines.last().unwrap().trim() == "● rises  ○ dot", "{text}");
        assert!(lines.iter().all(|line| width(line) <= 60), "{text}");
        let bare = Plot { scales: [Scale::Logarithmic; 2], ..Plot::default() };
        assert!(bare.text(10).contains('└'));
    }
}
