//! Lines of standard input, translated as they come, in constant memory.

use super::show::Show;
use super::{Job, Outcome, Unknown, is_stopped, note, note_pieces, note_stopped};
use anyhow::Result;
use regard_tasks::Error;
use regard_tasks::data::Lines;
use std::io::{BufRead, BufReader, Read, Write, stdin};

/// Lines that are read before they are translated, for each sentence of a batch: enough that
/// batches are of one length.
const WINDOW: usize = 32;

/// Bytes of text after which no more lines are waited for.
const WINDOW_BYTES: usize = 1 << 22;

/// What a pipe holds: a reader with less would not see that more is there.
const BUFFER: usize = 1 << 16;

pub fn run(job: &Job, show: &Show, out: &mut dyn Write) -> Result<Outcome> {
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, stdin().lock()), "standard input");
    let (mut done, mut stopped, mut outcome) = (0, 0, Outcome::Positive);
    let mut unknown = Unknown::default();
    loop {
        let window = Window::read(&mut lines, WINDOW * job.batch())?;
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
        // Whoever waits for the answer has it before more is read.
        out.flush()?;
    }
}

/// Some lines.
struct Window {
    texts: Vec<String>,
    /// For each line, why it could not be read, if it could not.
    unread: Vec<Option<String>>,
}

impl Window {
    /// Waits for one line, and takes what else is there already.
    fn read<R: Read>(lines: &mut Lines<BufReader<R>>, most: usize) -> Result<Window>
    where
        BufReader<R>: BufRead,
    {
        let (mut texts, mut unread, mut bytes) = (vec![], vec![], 0);
        while let Some(line) = lines.next() {
            let (text, why) = match line {
                Ok(text) => (text, None),
                // The line, not the reader: the next one may be fine.
                Err(error @ Error::File { .. }) => (String::new(), Some(error.to_string())),
                Err(error) => return Err(error.into()),
            };
            bytes += text.len();
            texts.push(text);
            unread.push(why);
            let waiting = lines.reader().buffer().is_empty();
            if waiting || texts.len() >= most || bytes >= WINDOW_BYTES {
                break;
            }
        }
        Ok(Window { texts, unread })
    }
}
