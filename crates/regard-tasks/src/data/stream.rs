//! Lines of text from any reader, in constant memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use regard_models::{Error, Result};

/// Longest line in bytes: a line is held in memory as a whole.
pub(crate) const LONGEST: usize = 1 << 26;

/// Iterator over the lines of a reader, without line ends and the byte-order mark.
///
/// A line that is not UTF-8 is an error with its number, and iteration continues with the next
/// line; an error of the reader ends it.
pub struct Lines<R> {
    reader: R,
    name: PathBuf,
    number: u64,
    buffer: Vec<u8>,
    failed: bool,
}

impl Lines<Box<dyn BufRead + Send>> {
    /// Opens a file; one whose name ends in `.gz` is decompressed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Lines::new(open(path)?, path))
    }
}

/// Opens a file for reading; one whose name ends in `.gz` is decompressed.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    super::ledger::note(path);
    let file = BufReader::new(File::open(path).map_err(Error::io(path))?);
    Ok(if path.extension().is_some_and(|e| e == "gz") {
        Box::new(BufReader::new(MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

impl<R: BufRead> Lines<R> {
    /// Iterates over the lines of a reader; `name` is its name in errors.
    pub fn new(reader: R, name: impl AsRef<Path>) -> Lines<R> {
        let name = name.as_ref().to_owned();
        Lines { reader, name, number: 0, buffer: Vec::new(), failed: false }
    }

    /// Returns the number of the last line that was read; the first line is 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the reader, which may hold unread data.
    pub fn reader(&self) -> &R {
        &self.reader
    }

    /// Returns the name of the reader in errors.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Returns an error about the last line that was read.
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::file(&self.name, format!("line {}: {message}", self.number))
    }

    /// Reads up to the next line feed; returns false at the end.
    fn read(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        let mut limited = io::Read::take(&mut self.reader, LONGEST as u64 + 1);
        if limited.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(false);
        }
        if self.buffer.len() > LONGEST {
            let message = format!("line {} is longer than {LONGEST} bytes", self.number + 1);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(true)
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        if self.failed {
            return None;
        }
        match self.read() {
            Ok(false) => return None,
            Ok(true) => self.number += 1,
            Err(e) => {
                self.failed = true;
                return Some(Err(Error::io(&self.name)(e)));
            }
        }
        let mut bytes = self.buffer.as_slice();
        bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if self.number == 1 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        Some(match std::str::from_utf8(bytes) {
            Ok(line) => Ok(line.to_owned()),
            Err(e) => Err(self.error(format!(
                "not UTF-8 at byte {} of the line; convert the file to UTF-8",
                e.valid_up_to() + 1
            ))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<std::result::Result<String, String>> {
        Lines::new(bytes, "in").map(|line| line.map_err(|e| e.to_string())).collect()
    }

    #[test]
    fn lines_end_anyhow() {
        let rows: [(&[u8], &[&str]); 7] = [
            (b"", &[]),
            (b"\n", &[""]),
            (b"a\nb", &["a", "b"]),
            (b"a\r\nb\n", &["a", "b"]),
            (b"a\n\nb\n", &["a", "", "b"]),
            (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", &["a", "\u{feff}b"]),
            ("é\u{2028}\u{85}\n".as_bytes(), &["é\u{2028}\u{85}"]),
        ];
        for (bytes, lines) in rows {
            assert_eq!(read(bytes), lines.iter().map(|l| Ok(l.to_string())).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_bad_line_has_its_number_and_the_rest_comes() {
        let lines = read(b"one\ntw\xff\nthree\n\x80");
        assert_eq!(lines[0], Ok("one".into()));
        assert_eq!(lines[2], Ok("three".into()));
        let message = |i: usize| lines[i].clone().unwrap_err();
        assert!(message(1).starts_with("in: line 2: not UTF-8 at byte 3"), "{}", message(1));
        assert!(message(3).starts_with("in: line 4: not UTF-8 at byte 1"), "{}", message(3));
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn a_reader_that_fails_is_the_end() {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the plug was pulled"))
            }
        }
        let mut lines = Lines::new(BufReader::new(Broken), "in");
        assert!(lines.next().unwrap().unwrap_err().to_string().contains("plug"));
        assert!(lines.next().is_none());
    }
}
