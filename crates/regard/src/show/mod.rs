//! Output for terminals and browsers.

pub mod graph;
pub mod heatmap;
pub mod html;
pub mod plane;
pub mod plot;
pub mod svg;
pub mod table;
pub mod terminal;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Width of a text in terminal columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Truncates a text to `most` columns, and replaces control characters.
pub fn label(word: &str, most: usize) -> String {
    let mut columns = 0;
    let mut cut = String::new();
    let visible = |c: char| match c.width() {
        None => ('\u{fffd}', 1),
        Some(width) => (c, width),
    };
    let total: usize = word.chars().map(|c| visible(c).1).sum();
    for (c, wide) in word.chars().map(visible) {
        let room = if total > most { most.saturating_sub(1) } else { most };
        if columns + wide > room {
            break;
        }
        columns += wide;
        cut.push(c);
    }
    if total > most {
        cut.push('…');
    }
    cut
}

/// Pads a text with spaces to a number of columns.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Formats a number of bytes as kB or MB.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{} kB", count.div_ceil(1000)),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_fit_and_hold_no_control_characters() {
        let rows =
            [("watch", 5, "watch"), ("watching", 5, "watc…"), ("a\u{1b}[31m", 9, "a\u{fffd}[31m")];
        for (word, most, want) in rows {
            assert_eq!(label(word, most), want);
        }
        assert_eq!(label("注意力", 6), "注意力");
        assert_eq!(label("注意力", 5), "注意…");
        assert!(width(&label("注意力", 4)) <= 4);
        assert_eq!(pad("注意", 6), "注意  ");
    }
}
