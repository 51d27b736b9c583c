//! What standard output is: how wide, and which colours.

use clap::ValueEnum;
use std::io::{IsTerminal, stdout};

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    Always,
    Never,
}

/// The colours that a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// None: shades of Unicode blocks.
    Blocks,
    /// The palette of 256.
    Palette,
    /// 24 bits.
    True,
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The colours to use on standard output.
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

/// The width of the terminal that standard output is, if it is one.
pub fn width_of_terminal() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(stdout())?;
    Some(usize::from(width)).filter(|width| *width > 0)
}

/// The columns that a drawing may take: of the terminal, of COLUMNS, or 100.
pub fn width() -> usize {
    let asked = || set("COLUMNS").and_then(|text| text.parse().ok());
    width_of_terminal().or_else(asked).unwrap_or(100).clamp(20, 1000)
}
