//! Texts of standard input of which the first lines were read already, because they might have been
//! words with labels.

use super::sentences::INPUT;
use super::{Flags, Outcome};
use crate::cli::inputs::{InputResult, command_without, each_of};
use crate::cli::say::quoted;
use crate::cli::texts::{TextStream, trained_columns};
use anyhow::{Result, bail};
use regard_tasks::import::texts::looks_like_table;
use std::io::{Cursor, Read, Write};

/// Processes each line as a text, as `inputs::each` does: `beginning`, then the rest.
pub fn each(
    flags: &Flags,
    beginning: Vec<u8>,
    rest: impl Read + 'static,
    json: bool,
    out: &mut dyn Write,
    answer: &mut InputResult,
) -> Result<Outcome> {
    refuse_table(flags, &beginning)?;
    let reader = Box::new(Cursor::new(beginning).chain(rest));
    each_of(TextStream::of_lines(reader, INPUT), json, out, answer)
}

/// Refuses rows of a table that would be taken for texts, with the command for a column.
fn refuse_table(flags: &Flags, beginning: &[u8]) -> Result<()> {
    let known = trained_columns(flags.model.as_deref());
    let Some(found) = looks_like_table(beginning, &known, false) else { return Ok(()) };
    let (command, text) = (command_without(&[]), quoted(&found.text));
    let read = if flags.file.file.is_some() { "" } else { " --file -" };
    bail!(
        "{INPUT}: looks like a table, not like a text on each line; its first line is {:?}\nTo \
         process a column of it: {command}{read} --text {text} < FILE\nIf each line is a text: \
         {command} --lines < FILE",
        found.first_line
    )
}
