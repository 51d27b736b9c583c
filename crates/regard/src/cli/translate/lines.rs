//! Translation of standard input or of a file, text by text.

use super::super::texts::TextStream;
use super::show::TranslationPrinter;
use super::{Job, Outcome, Unknown, is_stopped, note, note_pieces, note_stopped};
use anyhow::Result;
use regard_tasks::Error;
use std::io::Write;

/// Lines buffered per sentence of a batch, so that sentences of similar length can be batched.
const WINDOW: usize = 32;

/// Bytes of text after which the buffer is translated.
const WINDOW_BYTES: usize = 1 << 22;

pub fn run(
    lines: &mut TextStream,
    job: &Job,
    show: &TranslationPrinter,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let (mut done, mut stopped, mut outcome) = (0, 0, Outcome::Positive);
    let mut unknown = Unknown::default();
    loop {
        let window = Window::read(lines, WINDOW * job.batch())?;
        if window.texts.is_empty() {
            note_stopped(stopped, done);
            return Ok(outcome);
        }
        let texts: Vec<&String> = window.texts.iter().collect();
        let all = job.translate(&texts, done)?;
        texts.iter().for_each(|text| unknown.note(&job.translator.tokens().source, text));
        for ((text, unread), found) in window.texts.iter().zip(&window.unread).zip(&all) {
            done += 1;
            note_pieces(&format!("line {done}"), found, job.translator);
            stopped += usize::from(is_stopped(found));
            let unaligned = show.unaligned(found).map(|why| format!("line {done}: {why}"));
            match unread.as_ref().or(unaligned.as_ref()) {
                None => show.line(text, found, out)?,
                Some(why) => {
                    note(why);
                    outcome = Outcome::Negative;
                    show.unread(why, out)?;
                }
            }
        }
        // The caller gets these results before more is read.
        out.flush()?;
    }
}

/// A buffer of input lines.
struct Window {
    texts: Vec<String>,
    /// For each line, the error of reading it, if any.
    unread: Vec<Option<String>>,
}

impl Window {
    /// Waits for one line, then takes further lines that are already available.
    fn read(lines: &mut TextStream, most: usize) -> Result<Window> {
        let (mut texts, mut unread, mut bytes) = (vec![], vec![], 0);
        while let Some(line) = lines.next() {
            let (text, why) = match line {
                Ok(text) => (text, None),
                // An error of this line only: the next one may be valid.
                Err(error @ Error::File { .. }) => (String::new(), Some(error.to_string())),
                Err(error) => return Err(error.into()),
            };
            bytes += text.len();
            texts.push(text);
            unread.push(why);
            if lines.is_waiting() || texts.len() >= most || bytes >= WINDOW_BYTES {
                break;
            }
        }
        Ok(Window { texts, unread })
    }
}
