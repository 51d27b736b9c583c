//! Texts that are processed several at a time, and answered in their order.

use super::inputs::{self, InputError};
use super::texts::{Line, TextSource};
use super::{Outcome, inputs::of_line};
use anyhow::{Context, Result};
use regard_tasks::Error;
use regard_tasks::batching::{Cancel, in_order};
use regard_tasks::generate::TOGETHER;
use std::io::Write;

/// Lines that are read before their results are written, if they are there already.
const WINDOW: usize = 32 * TOGETHER;

/// Bytes of text after which no further line is read.
const WINDOW_BYTES: usize = 1 << 22;

/// Writes a result. The number counts texts from 0.
pub type Show<'a, T> = dyn FnMut(u64, &str, T, &mut dyn Write) -> Result<(), InputError> + 'a;

/// Computes and writes a result.
pub type Alone<'a> = dyn FnMut(u64, &str, &mut dyn Write) -> Result<(), InputError> + 'a;

/// What is done with each text.
pub struct Each<'a, T> {
    /// Computes a result; several threads call it at once.
    pub compute: &'a (dyn Fn(u64, &str) -> Result<T, Error> + Sync),
    /// Is cancelled when no further result is wanted, as after a closed output.
    pub cancel: &'a Cancel,
    pub show: &'a mut Show<'a, T>,
    /// Another way for texts that do not come in company, such as one that shows parts of a result.
    pub alone: Option<&'a mut Alone<'a>>,
}

/// As [`inputs::each`], for several texts at a time.
pub fn each<T: Send>(
    source: &TextSource,
    json: bool,
    out: &mut dyn Write,
    mut each: Each<T>,
) -> Result<Outcome> {
    source.check()?;
    if !source.given.is_empty() {
        let texts: Vec<Line> = (1..).zip(source.given.iter().cloned().map(Ok)).collect();
        let one_by_one = each.alone.is_some();
        each.window(&texts, 0, one_by_one, out, &mut |number, trouble, _| {
            Err(match trouble {
                InputError::Text(error) => {
                    anyhow::Error::from(error).context(format!("text {number}"))
                }
                InputError::Line(message) => anyhow::anyhow!(message),
                InputError::End(error) => error,
            })
        })?;
        return Ok(Outcome::Positive);
    }
    let (mut stream, mut outcome, mut first) = (source.open()?, Outcome::Positive, 0);
    loop {
        let texts = stream.window(WINDOW, WINDOW_BYTES)?;
        if texts.is_empty() {
            return Ok(outcome);
        }
        let one_by_one = texts.len() == 1;
        each.window(&texts, first, one_by_one, out, &mut |line, trouble, out| {
            let why = match trouble {
                InputError::End(error) => return Err(error),
                InputError::Text(error) => of_line(line, &error),
                InputError::Line(message) => message,
            };
            outcome = Outcome::Negative;
            inputs::failed(&why, json, out)
        })?;
        first += texts.iter().filter(|(_, text)| text.is_ok()).count() as u64;
        // The caller gets these results before more is read.
        out.flush().context("standard output")?;
    }
}

/// What becomes of an error of the text with this line.
type Failed<'a> = dyn FnMut(u64, InputError, &mut dyn Write) -> Result<()> + 'a;

impl<T: Send> Each<'_, T> {
    fn window(
        &mut self,
        texts: &[Line],
        first: u64,
        one_by_one: bool,
        out: &mut dyn Write,
        failed: &mut Failed,
    ) -> Result<()> {
        // Lines that cannot be read have no number.
        let counted = texts.iter().scan(first, |next, (_, text)| {
            let number = *next;
            *next += u64::from(text.is_ok());
            Some(number)
        });
        let numbers: Vec<u64> = counted.collect();
        if let (true, Some(alone)) = (one_by_one, self.alone.as_deref_mut()) {
            for ((line, text), number) in texts.iter().zip(numbers) {
                let answered = match text {
                    Ok(text) => alone(number, text, out),
                    Err(why) => Err(unread(why)),
                };
                answered.or_else(|trouble| failed(*line, trouble, out))?;
            }
            return Ok(());
        }
        let (one, show) = (self.compute, &mut *self.show);
        let compute = |at: usize| match &texts[at].1 {
            Ok(text) => one(numbers[at], text).map_err(InputError::Text),
            Err(why) => Err(unread(why)),
        };
        let cancel = self.cancel;
        in_order(texts.len(), TOGETHER, compute, &mut |at, found| {
            let (line, text) = &texts[at];
            let text = text.as_deref().unwrap_or_default();
            let shown = found.and_then(|found| show(numbers[at], text, found, out));
            let shown = shown.or_else(|trouble| failed(*line, trouble, out));
            // The other threads must not compute on for nobody.
            shown.inspect_err(|_| cancel.cancel())
        })
    }
}

/// Error of a line that cannot be read.
fn unread(why: &Error) -> InputError {
    InputError::Line(match why {
        Error::File { message, .. } => message.clone(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::texts::TextStream;
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn results_come_in_the_order_of_the_texts_with_the_errors_between() {
        let input: String = (0..50).map(|i| format!("{i}\n")).collect();
        let mut bytes = input.into_bytes();
        bytes.splice(6..6, *b"\xff\n");
        let mut stream = TextStream::of_lines(Box::new(std::io::Cursor::new(bytes)), "in");
        let texts = stream.window(WINDOW, WINDOW_BYTES).unwrap();
        assert_eq!(texts.len(), 51);
        let compute = |number: u64, text: &str| match text {
            "7" => Err(Error::invalid("seven")),
            _ => Ok(format!("{number}:{text}")),
        };
        let mut show =
            |_: u64, _: &str, found: String, out: &mut dyn Write| -> Result<(), InputError> {
                Ok(write!(out, "{found} ")?)
            };
        let cancel = &Cancel::new();
        let mut each = Each { compute: &compute, cancel, show: &mut show, alone: None };
        let (mut out, mut wrong) = (vec![], vec![]);
        let mut failed = |line: u64, trouble: InputError, out: &mut dyn Write| -> Result<()> {
            let what = match trouble {
                InputError::Text(error) => error.to_string(),
                InputError::Line(_) => "unread".into(),
                InputError::End(error) => return Err(error),
            };
            wrong.push((line, what));
            Ok(write!(out, "- ")?)
        };
        each.window(&texts, 100, false, &mut out, &mut failed).unwrap();
        assert_eq!(wrong, [(4, "unread".into()), (9, "seven".to_string())]);
        let out = String::from_utf8(out).unwrap();
        assert!(out.starts_with("100:0 101:1 102:2 - 103:3 104:4 105:5 106:6 - 108:8 "), "{out}");
        assert!(out.ends_with(" 149:49 "), "{out}");
    }

    #[test]
    fn a_closed_output_cancels_what_is_computed() {
        let texts: Vec<Line> = (1..5).map(|line| (line, Ok(line.to_string()))).collect();
        let (cancel, began) = (&Cancel::new(), Instant::now());
        // The first one is done; the others go on until they are cancelled.
        let compute = |number: u64, _: &str| {
            while number > 0 && !cancel.is_cancelled() && began.elapsed() < Duration::from_secs(60)
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        let mut show = |_: u64, _: &str, (): (), _: &mut dyn Write| -> Result<(), InputError> {
            Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into())
        };
        let mut each = Each { compute: &compute, cancel, show: &mut show, alone: None };
        let mut failed = |_: u64, trouble: InputError, _: &mut dyn Write| match trouble {
            InputError::End(error) => Err(error),
            _ => Ok(()),
        };
        each.window(&texts, 0, false, &mut vec![], &mut failed).unwrap_err();
        assert!(cancel.is_cancelled() && began.elapsed() < Duration::from_secs(30));
    }
}
