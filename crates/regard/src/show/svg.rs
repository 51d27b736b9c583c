//! Attention maps as SVG, for pages and papers.
//!
//! The opacity of a cell is its weight relative to the largest one of the map.

use super::heatmap::Map;
use super::{label, width};
use std::fmt::Write;

/// Maximum width of a label in columns.
const LABEL: usize = 24;
/// Side of a cell in pixels.
const CELL: f32 = 18.0;
/// Width of a character in pixels, in a monospaced font of 12 pixels.
const LETTER: f32 = 7.3;
const LINE: f32 = 16.0;
const MARGIN: f32 = 16.0;

/// Colours are attributes, not style sheets: converters (rsvg, Inkscape, LaTeX) draw the same
/// picture as a browser.
const PAPER: &str = "#fff";
const INK: &str = "#222";
const PALE: &str = "#888";
const LINES: &str = "#ddd";
const WEIGHT: &str = "#1f4e9c";
const NOT_FINITE: &str = "#c22";

/// A part of a picture.
pub struct Drawing {
    /// SVG elements.
    pub inside: String,
    /// Width in pixels.
    pub width: f32,
    /// Height in pixels.
    pub height: f32,
}

/// Draws maps below each other.
pub fn drawing(maps: &[Map]) -> Drawing {
    let (mut inside, mut top, mut right) = (String::new(), MARGIN, 0f32);
    for map in maps {
        let (below, wide) = draw(map, top, &mut inside);
        top = below + 2.0 * LINE;
        right = right.max(wide);
    }
    Drawing { inside, width: right + MARGIN, height: top - 2.0 * LINE + MARGIN }
}

/// Returns an SVG document of drawings below each other.
pub fn document(parts: &[Drawing]) -> String {
    let wide = parts.iter().map(|part| part.width).fold(0.0, f32::max);
    let high: f32 = parts.iter().map(|part| part.height).sum();
    let (mut inside, mut top) = (String::new(), 0.0);
    for part in parts {
        match parts.len() {
            1 => inside += &part.inside,
            _ => {
                let _ = write!(
                    inside,
                    "<g transform=\"translate(0 {top:.0})\">\n{}</g>\n",
                    part.inside
                );
            }
        }
        top += part.height;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" fill=\"{INK}\" \
         viewBox=\"0 0 {wide:.0} {high:.0}\" width=\"{wide:.0}\" height=\"{high:.0}\" \
         font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>\n{inside}</svg>\n"
    )
}

/// Draws a map from `top` on; returns its lower and right end.
fn draw(map: &Map, top: f32, out: &mut String) -> (f32, f32) {
    let shown =
        |words: &[String]| -> Vec<String> { words.iter().map(|word| label(word, LABEL)).collect() };
    let (rows, columns) = (shown(map.rows), shown(map.columns));
    let longest = |labels: &[String]| labels.iter().map(|l| width(l)).max().unwrap_or(0) as f32;
    let left = MARGIN + longest(&rows) * LETTER + 8.0;
    let mut y = top;
    let mut right = left + CELL * columns.len() as f32;
    for line in &map.title {
        y += LINE;
        right = right.max(MARGIN + width(line) as f32 * LETTER);
        text(out, MARGIN, y - 4.0, "", line);
    }
    y += longest(&columns) * LETTER + 8.0;
    for (j, column) in columns.iter().enumerate() {
        let x = left + CELL * j as f32 + CELL / 2.0 + 4.0;
        let turned = format!(" transform=\"rotate(-90 {x:.1} {:.1})\"", y - 6.0);
        text(out, x, y - 6.0, &turned, column);
    }
    let largest = map.largest();
    for (i, row) in rows.iter().enumerate() {
        let line = y + CELL * i as f32;
        text(out, left - 8.0, line + 13.0, " text-anchor=\"end\"", row);
        for j in 0..columns.len() {
            let x = left + CELL * j as f32;
            let weight = map.cells[i * columns.len() + j];
            let name = format!("{} → {}: {weight:.4}", map.rows[i], map.columns[j]);
            // Avoids 0/0 if all weights are 0.
            cell(out, x, line, if weight == 0.0 { 0.0 } else { weight / largest }, &name);
        }
    }
    y += CELL * rows.len() as f32 + LINE;
    let zeros = if map.has_zeros() { "; a dot marks weights of exactly 0" } else { "" };
    let caption = format!("largest {largest:.3}{zeros}");
    right = right.max(left + width(&caption) as f32 * LETTER);
    text(out, left, y, &format!(" fill=\"{PALE}\""), &caption);
    (y, right)
}

fn cell(out: &mut String, x: f32, y: f32, level: f32, name: &str) {
    let name = escape(name);
    let fill = if level.is_finite() { WEIGHT } else { NOT_FINITE };
    let level = if level.is_finite() { level.clamp(0.0, 1.0) } else { 1.0 };
    let _ = writeln!(
        out,
        "<rect class=\"cell\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{CELL}\" height=\"{CELL}\" \
         fill=\"{fill}\" fill-opacity=\"{level:.3}\" stroke=\"{LINES}\" stroke-width=\"0.5\"><title>{name}</title></rect>"
    );
    if level == 0.0 {
        let (x, y) = (x + CELL / 2.0, y + CELL / 2.0);
        let _ = writeln!(
            out,
            "<circle fill=\"{PALE}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1\" pointer-events=\"none\"/>"
        );
    }
}

fn text(out: &mut String, x: f32, y: f32, more: &str, words: &str) {
    let words = escape(words);
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\"{more}>{words}</text>");
}

/// Escapes a text for XML; control characters, which XML cannot represent, are replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(maps: &[Map]) -> String {
        document(&[drawing(maps)])
    }

    #[test]
    fn captions_fit_and_style_sheets_are_absent() {
        let one = ["a".to_string()];
        let map = Map { title: vec![], rows: &one, columns: &one, cells: &[0.0] };
        let drawn = drawing(&[map]);
        let caption = width("largest 0.000; a dot marks weights of exactly 0") as f32 * LETTER;
        assert!(drawn.width >= caption, "{} of {caption}", drawn.width);
        let text = document(&[drawn]);
        assert!(!text.contains("style") && !text.contains("var("), "{text}");
    }

    #[test]
    fn a_cell_for_each_weight() {
        let (rows, columns) = (["a<b".to_string()], ["x&y".to_string(), "\u{1b}[31m".to_string()]);
        let map = Map {
            title: vec!["\"t\"".into()],
            rows: &rows,
            columns: &columns,
            cells: &[0.25, 0.0],
        };
        let text = svg(&[map]);
        assert_eq!(text.matches("<rect class=\"cell\"").count(), 2);
        assert_eq!(text.matches("<circle").count(), 1, "one is exactly 0");
        for part in ["a&lt;b → x&amp;y: 0.2500", "fill-opacity=\"1.000\"", "&quot;t&quot;"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn what_is_not_a_number_is_marked() {
        let one = ["a".to_string()];
        let broken = Map { title: vec![], rows: &one, columns: &one, cells: &[f32::NAN] };
        assert!(svg(&[broken]).contains(NOT_FINITE));
        let nothing = Map { title: vec![], rows: &one, columns: &one, cells: &[0.0] };
        let text = svg(&[nothing]);
        assert!(!text.contains(NOT_FINITE) && !text.contains("NaN"), "{text}");
    }
}
