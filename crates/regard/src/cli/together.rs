//! Texts that are processed several at a time, and answered in their order.

use super::inputs::{self, InputError};
use super::texts::{TextSource, TextStream};
use super::{Outcome, inputs::of_line};
use anyhow::{Context, Result};
use regard_tasks::Error;
use regard_tasks::batching::in_order;
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
    pub show: &'a mut Show<'a, T>,
    /// Another way for texts that do not come in company, such as one that shows parts of a result.
    pub alone: Option<&'a mut Alone<'a>>,
}

/// A text, or why it cannot be read, and its line.
type Line = (u64, Result<String, String>);

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
        let texts = read(&mut stream)?;
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

/// Waits for a line, then takes those that are already there.
fn read(stream: &mut TextStream) -> Result<Vec<Line>> {
    let (mut texts, mut bytes) = (vec![], 0);
    while let Some(line) = stream.next() {
        let text = match line {
            Ok(text) => Ok(text),
            // An error of this line only: the next one may be valid.
            Err(Error::File { message, .. }) => Err(message),
            Err(error) => return Err(error.into()),
        };
        bytes += text.as_ref().map_or(0, String::len);
        texts.push((stream.line(), text));
        if stream.is_waiting() || texts.len() >= WINDOW || bytes >= WINDOW_BYTES {
            break;
        }
    }
    Ok(texts)
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
                    Err(why) => Err(InputError::Line(why.clone())),
                };
                answered.or_else(|trouble| failed(*line, trouble, out))?;
            }
            return Ok(());
        }
        let (one, show) = (self.compute, &mut *self.show);
        let compute = |at: usize| match &texts[at].1 {
            Ok(text) => one(numbers[at], text).map_err(InputError::Text),
            Err(why) => Err(InputError::Line(why.clone())),
        };
        in_order(texts.len(), TOGETHER, compute, &mut |at, found| {
            let (line, text) = &texts[at];
            let text = text.as_deref().unwrap_or_default();
            let shown = found.and_then(|found| show(numbers[at], text, found, out));
            shown.or_else(|trouble| failed(*line, trouble, out))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_texts_with_the_errors_between() {
        let input: String = (0..50).map(|i| format!("{i}\n")).collect();
        let mut bytes = input.into_bytes();
        bytes.splice(6..6, *b"\xff\n");
        let mut stream = TextStream::of_lines(Box::new(std::io::Cursor::new(bytes)), "in");
        let texts = read(&mut stream).unwrap();
        assert_eq!(texts.len(), 51);
        let compute = |number: u64, text: &str| match text {
            "7" => Err(Error::invalid("seven")),
            _ => Ok(format!("{number}:{text}")),
        };
        let mut show =
            |_: u64, _: &str, found: String, out: &mut dyn Write| -> Result<(), InputError> {
                Ok(write!(out, "{found} ")?)
            };
        let mut each = Each { compute: &compute, show: &mut show, alone: None };
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
}
