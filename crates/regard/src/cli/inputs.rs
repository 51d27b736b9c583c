//! Texts from the command line, or the lines of standard input.

use super::say::{quoted, say as say_line};
use super::{Outcome, write_json};
use anyhow::{Context, Result, bail};
use regard_tasks::Error;
use regard_tasks::data::Lines;
use regard_tasks::say;
use regard_tasks::text::Tokenizer;
use serde::Serialize;
use std::io::{BufReader, Write, stdin};
use std::path::{Path, PathBuf};

/// What a pipe holds: a reader with less would not see that more is there.
const BUFFER: usize = 1 << 16;

/// A line that stands for the answer to a text that has none.
#[derive(Serialize)]
struct Unanswered<'a> {
    error: &'a str,
}

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

/// Writes a note to standard error.
pub fn note(text: &str) {
    say_line(format_args!("regard: note: {text}"));
}

/// That none of these texts is the name of a file: somebody meant what is in it.
///
/// # Errors
/// With the command that reads the lines of the file, and with the one that takes the name as text.
pub fn not_files(texts: &[String]) -> Result<()> {
    let Some(file) = texts.iter().find(|text| Path::new(text).is_file()) else { return Ok(()) };
    let command = command_without(texts);
    let quoted = quoted(file);
    bail!(
        "{file} is a file, and a text is needed. The lines of the file are texts with: {command} < \
         {quoted}\nIf the name itself is the text: echo {quoted} | {command}"
    )
}

/// As [`not_files`], for verbs with an option that reads a whole file.
pub fn not_files_but(texts: &[String], option: &str) -> Result<()> {
    let Some(file) = texts.iter().find(|text| Path::new(text).is_file()) else { return Ok(()) };
    let (command, quoted) = (command_without(texts), quoted(file));
    bail!("{file} is a file, and a text is needed. To read the file: {command} {option} {quoted}")
}

/// The command line without these texts.
fn command_without(texts: &[String]) -> String {
    let given = std::env::args().skip(1).filter(|arg| !texts.contains(arg) && arg != "--");
    ["regard".to_string()]
        .into_iter()
        .chain(given.map(|arg| quoted(&arg)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Says on standard error which parts of texts a vocabulary does not have. The first few texts are
/// enough: of a file of another language every line would be told.
#[derive(Default)]
pub struct Unknown {
    told: usize,
}

impl Unknown {
    const MOST: usize = 5;

    pub fn note(&mut self, tokenizer: &Tokenizer, text: &str) {
        if self.told >= Unknown::MOST {
            return;
        }
        let unknown = tokenizer.unknown(text);
        if unknown.is_empty() {
            return;
        }
        self.told += 1;
        let count: usize = unknown.iter().map(|(_, count)| count).sum();
        let pieces: Vec<&str> = unknown.iter().map(|(piece, _)| *piece).collect();
        let last =
            if self.told == Unknown::MOST { "; of other texts this is not told" } else { "" };
        note(&format!(
            "the model does not know {} of {:?}: {}{last}",
            say::many(count, "character"),
            say::short(text, 40),
            say::list(&pieces, 8)
        ));
    }
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
    not_files(given)?;
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
                let why = say::message(&why);
                note(&why);
                match json {
                    true => write_json(out, &Unanswered { error: &why })?,
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
