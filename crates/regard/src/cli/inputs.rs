//! Texts from the command line, or the lines of standard input.

use anyhow::{Context, Result, anyhow};
use std::io::BufRead;

/// Gives each text to `see`, with a name for messages: what was given as arguments, or else the
/// lines of standard input as they come.
pub fn each(given: &[String], mut see: impl FnMut(&str) -> Result<()>) -> Result<()> {
    for (i, text) in given.iter().enumerate() {
        see(text).with_context(|| format!("text {}", i + 1))?;
    }
    if !given.is_empty() {
        return Ok(());
    }
    for (i, line) in std::io::stdin().lock().split(b'\n').enumerate() {
        let mut line = line.context("standard input")?;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let named = || format!("line {}", i + 1);
        let text = String::from_utf8(line).map_err(|_| anyhow!("not UTF-8")).with_context(named)?;
        see(&text).with_context(named)?;
    }
    Ok(())
}
