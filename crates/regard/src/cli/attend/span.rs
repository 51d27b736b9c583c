//! Ranges on the command line, such as `3:7`.

use anyhow::{Result, bail};
use std::ops::Range;
use std::str::FromStr;

/// Range of indices: `3`, `3:7`, `:7` or `3:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    from: usize,
    to: Option<usize>,
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let number = |text: &str| {
            text.parse::<usize>()
                .map_err(|_| format!("`{text}` is not a number; need 3, 3:7, :7 or 3:"))
        };
        let Some((from, to)) = text.split_once(':') else {
            let only = number(text)?;
            return Ok(Span { from: only, to: only.checked_add(1) });
        };
        let from = if from.is_empty() { 0 } else { number(from)? };
        let to = if to.is_empty() { None } else { Some(number(to)?) };
        Ok(Span { from, to })
    }
}

impl Span {
    /// Returns the range within `0..n`; `what` names the flag in errors.
    pub fn of(self, n: usize, what: &str) -> Result<Range<usize>> {
        let range = self.from..self.to.unwrap_or(n);
        if range.end > n || range.is_empty() {
            bail!("--{what}: got {}:{}, need a range within 0:{n}", range.start, range.end);
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        let of = |text: &str, n| text.parse::<Span>().unwrap().of(n, "rows");
        assert_eq!(of("3", 9).unwrap(), 3..4);
        assert_eq!(of("3:7", 9).unwrap(), 3..7);
        assert_eq!(of(":7", 9).unwrap(), 0..7);
        assert_eq!(of("3:", 9).unwrap(), 3..9);
        assert_eq!(of(":", 9).unwrap(), 0..9);
        for (text, n) in [("3:7", 6), ("3:3", 9), ("7:3", 9), ("9", 9), (":", 0)] {
            assert!(of(text, n).is_err(), "{text} of {n}");
        }
        for text in ["", "a", "1:b", "-1", "1:2:3", "99999999999999999999"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert!(of("18446744073709551615", 9).is_err());
    }
}
