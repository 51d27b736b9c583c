//! Input texts: arguments, or the lines of standard input.

use super::say::{quoted, say as say_line};
use super::texts::{TextSource, TextStream};
use super::{Outcome, write_json};
use anyhow::{Context, Result, bail};
use regard_tasks::Error;
use regard_tasks::pipeline::Failure;
use regard_tasks::reader::TextEncoder;
use regard_tasks::say;
use regard_tasks::text::Tokenizer;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Error while processing a text.
pub enum InputError {
    /// An error of this text: the next one may be valid.
    Text(Error),
    /// A line that cannot be read, in a message that begins with its number: the next one may be
    /// valid.
    Line(String),
    /// A closed output, or any other error that every further text would have.
    End(anyhow::Error),
}

impl From<Error> for InputError {
    fn from(error: Error) -> InputError {
        InputError::Text(error)
    }
}

impl From<anyhow::Error> for InputError {
    fn from(error: anyhow::Error) -> InputError {
        InputError::End(error)
    }
}

impl From<std::io::Error> for InputError {
    fn from(error: std::io::Error) -> InputError {
        InputError::End(error.into())
    }
}

/// Name of standard input in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// File that standard input is, where the system tells it.
pub fn standard_input() -> Option<PathBuf> {
    let path = std::fs::read_link("/proc/self/fd/0").ok().filter(|path| path.is_file())?;
    let here = std::env::current_dir().ok();
    let inside = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf));
    Some(inside.unwrap_or(path))
}

/// Path of a file argument: `-` is standard input.
pub fn file(asked: &Path) -> PathBuf {
    if asked == Path::new("-") { "/dev/stdin".into() } else { asked.to_path_buf() }
}

/// Refuses a folder where a file is needed, with a command for the files in it. `ends` are the ends
/// of their names, and `flags` the words before them.
///
/// # Errors
/// If the path is a folder.
pub fn not_folder(path: &Path, ends: &[&str], flags: &str) -> Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    let is_one = |path: &PathBuf| {
        let end = path.extension().map(|end| end.to_string_lossy().to_lowercase());
        path.is_file() && end.is_some_and(|end| ends.contains(&end.as_str()))
    };
    // In the folder itself, or in one of the folders in it, as of classes.
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let within = inside(path);
    let folders = within.iter().filter(|path| path.is_dir()).map(|path| inside(path));
    let mut all = [within.clone()].into_iter().chain(folders).flatten();
    let shown = path.display();
    let Some(found) = all.find(is_one) else {
        bail!("{shown} is a folder, need files; none in it ends in .{}", ends.join(" or ."));
    };
    let end = found.extension().unwrap_or_default().to_string_lossy();
    let between = if found.parent() == Some(path) { "" } else { "*/" };
    let place = format!("{}/{between}*.{end}", quoted(shown.to_string().trim_end_matches('/')));
    let given = [shown.to_string(), flags.to_string(), format!("{flags}={shown}")];
    let command = command_without(&given);
    let flags = if flags.is_empty() { String::new() } else { format!(" {flags}") };
    bail!("{shown} is a folder, need files. For those in it: {command}{flags} {place}")
}

/// Parses a count of at least 1.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "need a number from 1".to_string())
}

/// Writes a note to standard error.
pub fn note(text: &str) {
    say_line(format_args!("regard: note: {text}"));
}

/// Writes a note to standard error, unless it was written before: a model may be looked for twice.
pub fn note_once(text: &str) {
    static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    if noted.insert(text.to_string()) {
        note(text);
    }
}

/// Returns the command line without these texts.
pub fn command_without(texts: &[String]) -> String {
    let all: Vec<String> = std::env::args().skip(1).collect();
    without(&all, texts)
}

fn without(all: &[String], texts: &[String]) -> String {
    let mut words = vec!["regard".to_string()];
    for (at, arg) in all.iter().enumerate() {
        // A run may have the name of its data.
        let is_model = at > 0 && all[at - 1] == "--model";
        if is_model || (!texts.contains(arg) && arg != "--") {
            words.push(quoted(arg));
        }
    }
    words.join(" ")
}

/// Notes on standard error what of a text is not in the vocabulary, for the first few
/// texts only: in a file of another language, every line would be noted.
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
        let count: usize = unknown.iter().map(|(_, count)| count).sum();
        let pieces: Vec<&str> = unknown.iter().map(|(piece, _)| *piece).collect();
        let last = self.last();
        note(&format!(
            "the model does not know {} of {:?}: {}{last}",
            say::many(count, "character"),
            say::short(text, 40),
            say::list(&pieces, 8)
        ));
    }

    /// Notes that most words of a text are not in the vocabulary of a model that reads whole words,
    /// so that its result says little about the text.
    pub fn note_words(&mut self, encoder: &TextEncoder, text: &str) {
        if self.told >= Unknown::MOST {
            return;
        }
        let Some((unknown, all)) = encoder.unknown_words(text) else { return };
        if unknown.is_empty() || 2 * unknown.len() < all {
            return;
        }
        let last = self.last();
        note(&format!(
            "{} of {} of {:?} {} not in the vocabulary: {}{last}",
            unknown.len(),
            say::many(all, "word"),
            say::short(text, 40),
            if unknown.len() == 1 { "is" } else { "are" },
            say::list(&unknown, 8)
        ));
    }

    /// Counts a note, and returns its end.
    fn last(&mut self) -> &'static str {
        self.told += 1;
        if self.told == Unknown::MOST { "; no further texts are checked" } else { "" }
    }
}

/// Callback that processes a text and writes its result.
pub type InputResult<'a> = dyn FnMut(&str, &mut dyn Write) -> Result<(), InputError> + 'a;

/// Processes each text: the arguments, or else those of a file or of standard input as they arrive.
/// A failing argument is an error. A failing line is noted on standard error, prints an empty line or
/// a JSON object with `error`, and makes the outcome negative.
pub fn each(
    source: &TextSource,
    json: bool,
    out: &mut dyn Write,
    answer: &mut InputResult,
) -> Result<Outcome> {
    source.check()?;
    for (i, text) in source.given.iter().enumerate() {
        answer(text, out).map_err(|trouble| match trouble {
            InputError::Text(error) => {
                anyhow::Error::from(error).context(format!("text {}", i + 1))
            }
            InputError::Line(message) => anyhow::anyhow!(message),
            InputError::End(error) => error,
        })?;
    }
    if !source.given.is_empty() {
        return Ok(Outcome::Positive);
    }
    each_of(source.open()?, json, out, answer)
}

/// Processes each text of a file or of standard input; see [`each`].
pub fn each_of(
    mut texts: TextStream,
    json: bool,
    out: &mut dyn Write,
    answer: &mut InputResult,
) -> Result<Outcome> {
    let mut outcome = Outcome::Positive;
    while let Some(line) = texts.next() {
        let number = texts.line();
        let answered = match line {
            Ok(text) => answer(&text, out),
            Err(Error::File { message, .. }) => Err(InputError::Line(message)),
            Err(error) => return Err(error.into()),
        };
        let why = match answered {
            Ok(()) => None,
            Err(InputError::End(error)) => return Err(error),
            Err(InputError::Text(error)) => Some(of_line(number, &error)),
            Err(InputError::Line(message)) => Some(message),
        };
        if let Some(why) = why {
            outcome = Outcome::Negative;
            failed(&why, json, out)?;
        }
        // Flush before waiting for more input.
        if texts.is_waiting() {
            out.flush().context("standard output")?;
        }
    }
    Ok(outcome)
}

/// Error of the text on a line.
pub fn of_line(line: u64, error: &Error) -> String {
    format!("line {line}: {error}")
}

/// Notes on standard error why a text failed, and prints an empty line or a JSON object with `error`
/// in its place.
pub fn failed(why: &str, json: bool, out: &mut dyn Write) -> Result<()> {
    let why = say::message(why);
    note(&why);
    match json {
        true => write_json(out, &Failure { error: why }),
        false => Ok(writeln!(out)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_line_of_its_text_once() {
        let mut out = vec![];
        let texts = TextStream::of_lines(Box::new(&b"a\n\xff\nb\n"[..]), "in");
        // The message of a text may begin as that of a line does.
        let mut answer = |text: &str, out: &mut dyn Write| -> Result<(), InputError> {
            match text {
                "a" => Ok(writeln!(out, "fine")?),
                _ => Err(InputError::Text(Error::invalid("line 7 of the poem is empty"))),
            }
        };
        let outcome = each_of(texts, true, &mut out, &mut answer).unwrap();
        assert!(matches!(outcome, Outcome::Negative));
        let said = String::from_utf8(out).unwrap();
        let [fine, unread, wrong] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
        assert_eq!(fine, "fine");
        assert!(unread.starts_with("{\"error\":\"line 2: not UTF-8"), "{unread}");
        assert_eq!(wrong, "{\"error\":\"line 3: line 7 of the poem is empty\"}");
    }

    #[test]
    fn a_model_with_the_name_of_its_data_stays() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let all = words("classify --image farben --model farben --json");
        let said = without(&all, &words("farben --image"));
        assert_eq!(said, "regard classify --model farben --json");
    }
}
