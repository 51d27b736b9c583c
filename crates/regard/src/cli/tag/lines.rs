//! Texts of standard input of which the first lines were read already, because they might have been
//! words with labels.

use super::sentences::INPUT;
use super::{Flags, Outcome};
use crate::cli::inputs::{InputError, InputResult, command_without, failed};
use crate::cli::say::quoted;
use crate::cli::texts::{BUFFER, trained_columns};
use anyhow::{Context, Result, bail};
use regard_tasks::Error;
use regard_tasks::data::Lines;
use regard_tasks::import::texts::looks_like_table;
use std::io::{BufReader, Cursor, Read, Write};

/// Processes each line as a text, as `inputs::each` does: `beginning`, then the rest.
pub fn each(
    flags: &Flags,
    beginning: Vec<u8>,
    rest: impl Read,
    json: bool,
    out: &mut dyn Write,
    answer: &mut InputResult,
) -> Result<Outcome> {
    refuse_table(flags, &beginning)?;
    let reader = BufReader::with_capacity(BUFFER, Cursor::new(beginning).chain(rest));
    let mut lines = Lines::new(reader, INPUT);
    let mut outcome = Outcome::Positive;
    while let Some(line) = lines.next() {
        let answered = match line {
            Ok(text) => answer(&text, out),
            Err(Error::File { message, .. }) => Err(InputError::Text(Error::Invalid(message))),
            Err(error) => return Err(error.into()),
        };
        match answered {
            Ok(()) => {}
            Err(InputError::End(error)) => return Err(error),
            Err(InputError::Text(error)) => {
                outcome = Outcome::Negative;
                failed(&error, lines.number(), json, out)?;
            }
        }
        // Flush before waiting for more input.
        if lines.reader().buffer().is_empty() {
            out.flush().context("standard output")?;
        }
    }
    Ok(outcome)
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
