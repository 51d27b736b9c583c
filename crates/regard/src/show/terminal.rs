//! Width and colours of the terminal.

use clap::ValueEnum;
use std::io::{IsTerminal, stdout};

/// Condition for colours or maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// If standard output is a terminal
    Auto,
    Always,
    Never,
}

/// Colours that a terminal supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// No colours: shades of Unicode blocks.
    Blocks,
    /// Palette of 256 colours.
    Palette,
    /// 24-bit colours.
    True,
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Colours to use on standard output.
pub fn paint(when: When) -> Paint {
    let auto = || stdout().is_terminal() && set("NO_COLOR").is_none();
    let capable = set("TERM").as_deref() != Some("dumb");
    match when {
        When::Never => Paint::Blocks,
        When::Auto if !(auto() && capable) => Paint::Blocks,
        _ => match set("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Paint::True,
            _ => Paint::Palette,
        },
    }
}

/// Width of the terminal; None if standard output is not a terminal.
pub fn width_of_terminal() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(stdout())?;
    Some(usize::from(width)).filter(|width| *width > 0)
}

/// Maximum width of a drawing: that of the terminal, of COLUMNS, or 100.
pub fn width() -> usize {
    let asked = || set("COLUMNS").and_then(|text| text.parse().ok());
    width_of_terminal().or_else(asked).unwrap_or(100).clamp(20, 1000)
}
