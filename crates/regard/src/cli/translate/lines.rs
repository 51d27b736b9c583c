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
        let window = lines.window(WINDOW * job.batch(), WINDOW_BYTES)?;
        if window.is_empty() {
            note_stopped(stopped, done);
            return Ok(outcome);
        }
        let nothing = String::new();
        let texts: Vec<&String> =
            window.iter().map(|(_, text)| text.as_ref().unwrap_or(&nothing)).collect();
        let all = job.translate(&texts, done)?;
        texts.iter().for_each(|text| unknown.note(&job.translator.tokens().source, text));
        for ((text, (_, read)), found) in texts.iter().zip(&window).zip(&all) {
            done += 1;
            note_pieces(&format!("line {done}"), found, job.translator);
            stopped += usize::from(is_stopped(found));
            let unaligned = show.unaligned(found).map(|why| format!("line {done}: {why}"));
            let unread = read.as_ref().err().map(Error::to_string);
            match unread.or(unaligned) {
                None => show.line(text, found, out)?,
                Some(why) => {
                    note(&why);
                    outcome = Outcome::Negative;
                    show.unread(&why, out)?;
                }
            }
        }
        // The caller gets these results before more is read.
        out.flush()?;
    }
}
