//! Texts from the command line, or the lines of standard input.

use super::{Outcome, write_json};
use anyhow::{Context, Result};
use regard_tasks::Error;
use regard_tasks::data::Lines;
use serde_json::json;
use std::io::{BufReader, Write, stdin};
use std::path::{Path, PathBuf};

/// What a pipe holds: a reader with less would not see that more is there.
const BUFFER: usize = 1 << 16;

/// Why a text got no answer.
pub enum Trouble {
    /// It is of the text: the next one may be fine.
    Text(Error),
    /// Nobody reads the answers any more, or anything else that no other text would change.
    End(anyhow::Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Text(error)
    }
}

impl From<anyhow::Error> for Trouble {
    fn from(error: anyhow::Error) -> Trouble {
        Trouble::End(error)
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Trouble {
        Trouble::End(error.into())
    }
}

/// A file that a person named: - is standard input.
pub fn file(asked: &Path) -> PathBuf {
    if asked == Path::new("-") { "/dev/stdin".into() } else { asked.to_path_buf() }
}

/// A number of things that are asked for.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "need a number from 1".to_string())
}

/// A line on standard error; a closed one is no reason to stop.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "regard: note: {text}");
}

/// What `answer` is given, and where what it says is written.
pub type Answer<'a> = dyn FnMut(&str, &mut dyn Write) -> Result<(), Trouble> + 'a;

/// Has each text answered: what was given as arguments, or else the lines of standard input as
/// they come. An argument without an answer is an error. A line without one is told on standard
/// error, gives an empty line or an object that says why, and makes the outcome negative.
pub fn each(
    given: &[String],
    json: bool,
    out: &mut dyn Write,
    answer: &mut Answer,
) -> Result<Outcome> {
    for (i, text) in given.iter().enumerate() {
        answer(text, out).map_err(|trouble| match trouble {
            Trouble::Text(error) => anyhow::Error::from(error).context(format!("text {}", i + 1)),
            Trouble::End(error) => error,
        })?;
    }
    if !given.is_empty() {
        return Ok(Outcome::Positive);
    }
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, stdin().lock()), "standard input");
    let mut outcome = Outcome::Positive;
    while let Some(line) = lines.next() {
        let number = lines.number();
        let answered = match line {
            Ok(text) => answer(&text, out),
            Err(Error::File { message, .. }) => Err(Trouble::Text(Error::Invalid(message))),
            Err(error) => return Err(error.into()),
        };
        match answered {
            Ok(()) => {}
            Err(Trouble::End(error)) => return Err(error),
            Err(Trouble::Text(error)) => {
                outcome = Outcome::Negative;
                let why = match error.to_string() {
                    // What could not be read knows its line already.
                    why if why.starts_with("line ") => why,
                    why => format!("line {number}: {why}"),
                };
                note(&why);
                match json {
                    true => write_json(out, &json!({ "error": why }))?,
                    false => writeln!(out)?,
                }
            }
        }
        // Whoever waits for the answer has it before more is waited for.
        if lines.reader().buffer().is_empty() {
            out.flush().context("standard output")?;
        }
    }
    Ok(outcome)
}
