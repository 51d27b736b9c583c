//! `metrics.jsonl`: one JSON object per line, with its step first.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// A JSON lines file open for appending.
#[derive(Debug)]
pub(super) struct JsonLines {
    path: PathBuf,
    file: File,
    /// Last line, including its newline.
    last: Vec<u8>,
}

/// The only key that resuming uses.
#[derive(serde::Deserialize)]
struct Line {
    step: u64,
}

impl JsonLines {
    /// Opens a new file, or an existing one to continue after a step.
    pub(super) fn open(path: &Path, resume_at: Option<u64>) -> Result<JsonLines> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(Error::io(path))?;
        let mut lines = JsonLines { path: path.to_owned(), file, last: vec![] };
        match resume_at {
            Some(step) => lines.take_back(step)?,
            None if lines.file.metadata().map_err(Error::io(path))?.len() == 0 => {}
            None => {
                let hint = "this folder holds the log of another run: resume it, \
                            train in another folder, or remove the file";
                return Err(Error::file(path, hint));
            }
        }
        Ok(lines)
    }

    /// Removes the lines after a step, and an incomplete last line.
    fn take_back(&mut self, last_step: u64) -> Result<()> {
        let mut reader = BufReader::new(&self.file);
        let (mut line, mut last) = (Vec::new(), Vec::new());
        let (mut keep, mut number, mut is_whole) = (0, 0, true);
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line).map_err(Error::io(&self.path))?;
            if line.is_empty() {
                break;
            }
            number += 1;
            let ends = line.last() == Some(&b'\n');
            match serde_json::from_slice::<Line>(&line) {
                Ok(found) if found.step <= last_step => {
                    keep += line.len() as u64;
                    // Only the last line can be without its end.
                    is_whole = ends;
                    last.clone_from(&line);
                }
                Ok(_) => break,
                Err(_) if !ends => break,
                Err(error) => {
                    return Err(Error::file(
                        &self.path,
                        format!(
                            "line {number} is not a JSON object with a step ({error}): \
                             correct the line or remove the file"
                        ),
                    ));
                }
            }
        }
        self.file.set_len(keep).map_err(Error::io(&self.path))?;
        self.file.seek(SeekFrom::End(0)).map_err(Error::io(&self.path))?;
        if !is_whole {
            self.append(b"\n")?;
            last.push(b'\n');
        }
        self.last = last;
        Ok(())
    }

    /// Writes a line, unless it equals the last one: a run that was killed after logging repeats
    /// its last line when resumed. Returns whether it was new.
    pub(super) fn write(&mut self, step: u64, values: &[(&str, f64)]) -> Result<bool> {
        let mut line = format!("{{\"step\":{step}");
        for (name, value) in values {
            let name = serde_json::Value::from(*name);
            // The shortest text that parses to the same number; null where JSON has none.
            let value = serde_json::Value::from(*value);
            write!(line, ",{name}:{value}").expect("a string takes everything");
        }
        line.push_str("}\n");
        if self.last == line.as_bytes() {
            return Ok(false);
        }
        self.append(line.as_bytes())?;
        self.last = line.into_bytes();
        Ok(true)
    }

    /// Appends in one system call and without a buffer, so that a crash of the program loses
    /// nothing and a crash of the system at most the end of a line.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(Error::io(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A file of that content, resumed at a step and with one more line.
    fn resume(name: &str, content: &str, step: u64) -> Result<String> {
        let path = std::env::temp_dir().join(format!("regard-{name}-{}", std::process::id()));
        fs::write(&path, content).unwrap();
        let after = JsonLines::open(&path, Some(step))
            .and_then(|mut lines| lines.write(step + 1, &[("x", 0.5)]))
            .map(|_| fs::read_to_string(&path).unwrap());
        fs::remove_file(&path).unwrap();
        after
    }

    #[test]
    fn later_and_torn_lines_are_taken_back() {
        let check = |content: &str, step: u64, kept: &str| {
            let after = resume("torn", content, step).unwrap();
            assert_eq!(after, format!("{kept}{{\"step\":{},\"x\":0.5}}\n", step + 1));
        };
        let (one, two, three) = ("{\"step\":1}\n", "{\"step\":2,\"a\":null}\n", "{\"step\":3}\n");
        let whole = [one, two, two, three].concat();
        check("", 0, "");
        check("", 9, "");
        check(&whole, 0, "");
        check(&whole, 1, one);
        check(&whole, 2, &[one, two, two].concat());
        check(&whole, 3, &whole);
        check(&whole, 100, &whole);
        // Every offset at which the last line can be cut.
        for end in 0..three.len() {
            let torn = [one, two, &three[..end]].concat();
            let last = if end + 1 == three.len() { three } else { "" };
            check(&torn, 3, &[one, two, last].concat());
            check(&torn, 2, &[one, two].concat());
        }
        // Blocks that the system had no time to write.
        check(&[one, "\0\0\0\0"].concat(), 1, one);
    }

    #[test]
    fn what_is_said_twice_stands_once() {
        let path = std::env::temp_dir().join(format!("regard-twice-{}", std::process::id()));
        fs::write(&path, "{\"step\":1,\"a\":0.5}").unwrap();
        let mut lines = JsonLines::open(&path, Some(1)).unwrap();
        let said = [(1, 0.5, false), (1, 0.25, true), (1, 0.25, false), (2, 0.25, true)];
        for (step, a, new) in said {
            assert_eq!(lines.write(step, &[("a", a)]).unwrap(), new, "{step} {a}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_line_of_another_kind_is_named() {
        for line in ["loss 3", "{\"loss\":1}", "{\"step\":-1}", "[]", ""] {
            let content = format!("{{\"step\":1}}\n{line}\n");
            let error = resume("kind", &content, 5).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains("regard-kind"), "{error}");
        }
    }

    #[test]
    fn numbers_read_back_the_same() {
        let path = std::env::temp_dir().join(format!("regard-numbers-{}", std::process::id()));
        let mut lines = JsonLines::open(&path, None).unwrap();
        let mut check = |value: f64, text: &str| {
            lines.write(u64::MAX, &[("a \"b\"\n", value)]).unwrap();
            let written = fs::read_to_string(&path).unwrap();
            let line = written.lines().last().unwrap();
            assert_eq!(line, format!("{{\"step\":{},\"a \\\"b\\\"\\n\":{text}}}", u64::MAX));
            if value.is_finite() {
                assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            }
        };
        check(0.1 + 0.2, "0.30000000000000004");
        check(1.0, "1.0");
        check(-0.0, "-0.0");
        check(f64::from(0.1_f32), "0.10000000149011612");
        check(f64::MIN_POSITIVE, "2.2250738585072014e-308");
        check(f64::NAN, "null");
        check(f64::INFINITY, "null");
        fs::remove_file(&path).unwrap();
    }
}
