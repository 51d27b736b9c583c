//! Mutants of the files of a corpus.
//!
//! Random bytes do not get past a magic number, so every input begins as a valid file. The changes
//! are those that break readers: extreme numbers in place of numbers, in digits or in binary, parts
//! cut off, repeated, moved or taken from another file, and deep nesting.

use bolero::{Driver, ValueGenerator};
use std::fmt;
use std::ops::Bound;

/// Maximum size of a mutant, in bytes.
const LONGEST: usize = 1 << 16;

/// Replacements of numbers, and of other parts of a text.
const TEXTS: [&str; 34] = [
    "0",
    "1",
    "-1",
    "-0.0",
    "2",
    "3",
    "7",
    "127",
    "128",
    "255",
    "256",
    "1000",
    "4096",
    "65535",
    "65536",
    "1000000",
    "16777216",
    "16777217",
    "2147483647",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e999",
    "1e-320",
    "NaN",
    "null",
    "true",
    "\"\"",
    "[]",
];

/// Pieces inserted into texts.
const PIECES: [&str; 24] = [
    "\n", "\r\n", "\t", " ", ",", ":", "\"", "'", "\\", "{", "}", "[", "]", "(", ")", "#", "=",
    "\u{feff}", "\u{0}", "é", "中", "\u{202e}", "\\ud800", "{\"a\":",
];

/// Replacements of binary numbers.
const NUMBERS: [u64; 20] = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// A mutant of a corpus file.
#[derive(Clone, PartialEq, Eq)]
pub struct Mutant(pub Vec<u8>);

impl fmt::Debug for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(600)];
        write!(f, "{} bytes: \"{}\"", self.0.len(), shown.escape_ascii())
    }
}

/// Generator of mutants of corpus files.
pub struct Mutants {
    corpus: Vec<Vec<u8>>,
}

impl Mutants {
    /// Creates a generator for these files, of which there must be at least one.
    pub fn new(corpus: Vec<Vec<u8>>) -> Mutants {
        Mutants { corpus }
    }
}

impl ValueGenerator for Mutants {
    type Output = Mutant;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Mutant> {
        let mut bytes = self.corpus[below(driver, self.corpus.len())?].clone();
        // Usually one change: many at once only show again that the file is damaged.
        let changes = [1, 1, 1, 2, 2, 3, 5, 8][below(driver, 8)?];
        for _ in 0..changes {
            let other = &self.corpus[below(driver, self.corpus.len())?];
            change(driver, &mut bytes, other)?;
            bytes.truncate(LONGEST);
        }
        Some(Mutant(bytes))
    }
}

/// A number below `end`, or 0 if that is 0.
fn below<D: Driver>(driver: &mut D, end: usize) -> Option<usize> {
    match end {
        0 | 1 => Some(0),
        end => driver.gen_usize(Bound::Included(&0), Bound::Excluded(&end)),
    }
}

/// A random range of at most `longest` bytes.
fn range<D: Driver>(driver: &mut D, length: usize, longest: usize) -> Option<(usize, usize)> {
    let from = below(driver, length + 1)?;
    let size = below(driver, longest.min(length - from) + 1)?;
    Some((from, from + size))
}

fn change<D: Driver>(driver: &mut D, bytes: &mut Vec<u8>, other: &[u8]) -> Option<()> {
    let length = bytes.len();
    match below(driver, 13)? {
        // A flipped bit.
        0 if length > 0 => {
            let (at, bit) = (below(driver, length)?, below(driver, 8)?);
            bytes[at] ^= 1 << bit;
        }
        // Another byte.
        1 if length > 0 => {
            let at = below(driver, length)?;
            bytes[at] = below(driver, 256)? as u8;
        }
        // Cut off.
        2 => bytes.truncate(below(driver, length + 1)?),
        // A part left out.
        3 => {
            let (from, to) = range(driver, length, 64)?;
            bytes.drain(from..to);
        }
        // A part repeated.
        4 => {
            let (from, to) = range(driver, length, 256)?;
            let times = [1, 2, 10, 300][below(driver, 4)?];
            let part = bytes[from..to].repeat(times);
            bytes.splice(to..to, part);
        }
        // A part of another file.
        5 => {
            let (from, to) = range(driver, other.len(), 256)?;
            let (at, until) = range(driver, length, 256)?;
            bytes.splice(at..until, other[from..to].iter().copied());
        }
        // The beginning of one file and the end of another.
        6 => {
            bytes.truncate(below(driver, length + 1)?);
            bytes.extend(&other[below(driver, other.len() + 1)?..]);
        }
        // Another number in digits. Twice as likely as the rest.
        7 | 8 => {
            let numbers = digits(bytes);
            if !numbers.is_empty() {
                let (from, to) = numbers[below(driver, numbers.len())?];
                let text = TEXTS[below(driver, TEXTS.len())?];
                bytes.splice(from..to, text.bytes());
            }
        }
        // Another number in binary. Twice as likely as the rest.
        9 | 10 if length > 0 => {
            let width = [1, 2, 4, 8][below(driver, 4)?].min(length);
            let number = NUMBERS[below(driver, NUMBERS.len())?];
            let at = below(driver, length - width + 1)?;
            let mut stored = number.to_le_bytes();
            stored[..width].reverse();
            if driver.gen_bool(None)? {
                stored[..width].reverse();
            }
            bytes[at..at + width].copy_from_slice(&stored[..width]);
        }
        // A piece of text.
        11 => {
            let at = below(driver, length + 1)?;
            let piece = PIECES[below(driver, PIECES.len())?];
            bytes.splice(at..at, piece.bytes());
        }
        // Deep nesting.
        _ => {
            let at = below(driver, length + 1)?;
            let piece = ["[", "{\"a\":", "(", "{", "&!", "[["][below(driver, 6)?];
            let times = [50, 200, 5000][below(driver, 3)?];
            bytes.splice(at..at, piece.repeat(times).bytes());
        }
    }
    Some(())
}

/// Ranges of the numbers in digits.
fn digits(bytes: &[u8]) -> Vec<(usize, usize)> {
    let is_number = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'e');
    let mut numbers = vec![];
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|b| is_number(b)).count();
        if bytes[at..at + length].iter().any(u8::is_ascii_digit) {
            numbers.push((at, at + length));
        }
        at += length.max(1);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found() {
        let text = b"{\"a\": 12, \"b2\": -1.5e3, \"e\": []}";
        let found: Vec<&[u8]> = digits(text).iter().map(|(from, to)| &text[*from..*to]).collect();
        assert_eq!(found, [&b"12"[..], b"2", b"-1.5e3"]);
    }

    #[test]
    fn mutants_differ_from_the_corpus_and_from_each_other() {
        let mut seen = std::collections::BTreeSet::new();
        let corpus = b"{\"size\": 12}".to_vec();
        let seen = std::panic::AssertUnwindSafe(std::cell::RefCell::new(&mut seen));
        bolero::check!()
            .with_generator(Mutants::new(vec![corpus.clone()]))
            .with_iterations(500)
            .for_each(|mutant: &Mutant| {
                assert!(mutant.0.len() <= LONGEST);
                seen.borrow_mut().insert(mutant.0.clone());
            });
        assert!(seen.borrow().len() > 200, "only {} different mutants", seen.borrow().len());
    }
}
