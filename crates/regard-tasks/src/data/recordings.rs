//! Recordings with transcripts or labels.
//!
//! | form | contents |
//! |---|---|
//! | a list | a line per recording: the file, relative to the list's folder, a tab, the text |
//! | `fsdd` | a folder of files that are named digit, speaker and number: `7_jackson_32.wav` |
//! | `fsdd-speakers` | the same files, with the speaker as the label |

use super::split::Part;
use super::stream::Lines;
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};

/// A recording with its transcript or label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recording {
    /// Path of the sound file.
    pub path: PathBuf,
    /// Transcript, or the label.
    pub text: String,
}

/// The names of the digits.
pub const DIGITS: [&str; 10] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/// Reads a list.
pub fn list(path: impl AsRef<Path>) -> Result<Vec<Recording>> {
    let folder = path.as_ref().parent().unwrap_or(Path::new("")).to_owned();
    let mut lines = Lines::open(path)?;
    let mut all = vec![];
    while let Some(line) = lines.next().transpose()? {
        if line.trim().is_empty() {
            continue;
        }
        let (file, text) = line.split_once('\t').unwrap_or((&line, ""));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if file.is_empty() || text.is_empty() {
            return Err(lines.error(format!("got {line:?}, need a file, a tab and the text")));
        }
        all.push(Recording { path: folder.join(file), text });
    }
    match all.is_empty() {
        true => Err(Error::file(lines.name(), "lists no recordings")),
        false => Ok(all),
    }
}

/// Reads a part of the Free Spoken Digit Dataset: of each digit of each speaker, numbers 0 to 4
/// are the test part, as its authors define it; 5 to 9 are the validation part.
pub fn fsdd(folder: impl AsRef<Path>, part: Part) -> Result<Vec<Recording>> {
    let folder = folder.as_ref().join("recordings");
    let mut all = vec![];
    for entry in std::fs::read_dir(&folder).map_err(Error::io(&folder))? {
        let path = entry.map_err(Error::io(&folder))?.path();
        if path.extension().is_none_or(|end| end != "wav") {
            continue;
        }
        let (digit, number) = digit(&path).ok_or_else(|| {
            Error::file(&path, "need a name of digit, speaker and number: 7_jackson_32.wav")
        })?;
        let of = match number {
            0..=4 => Part::Test,
            5..=9 => Part::Valid,
            _ => Part::Train,
        };
        if of == part {
            all.push(Recording { path, text: DIGITS[digit].to_string() });
        }
    }
    // `read_dir` has no defined order.
    all.sort();
    match all.is_empty() {
        true => {
            let part = part.name();
            let message = format!(
                "has no {part} recordings: need files such as 7_jackson_32.wav (digit, speaker, \
                 number)"
            );
            Err(Error::file(folder, message))
        }
        false => Ok(all),
    }
}

/// Reads the recordings of [`fsdd`], each with its speaker as the label.
pub fn fsdd_speakers(folder: impl AsRef<Path>, part: Part) -> Result<Vec<Recording>> {
    let of_speaker = |recording: Recording| {
        let text = speaker(&recording.path).unwrap_or_default().to_string();
        Recording { text, ..recording }
    };
    Ok(fsdd(folder, part)?.into_iter().map(of_speaker).collect())
}

/// Speaker in the name of a file.
fn speaker(path: &Path) -> Option<&str> {
    digit(path)?;
    path.file_stem()?.to_str()?.split('_').nth(1)
}

/// Digit and number in the name of a file.
fn digit(path: &Path) -> Option<(usize, usize)> {
    let parts: Vec<&str> = path.file_stem()?.to_str()?.split('_').collect();
    let [digit, _, number] = parts[..] else { return None };
    let digit = digit.parse().ok().filter(|digit| *digit < DIGITS.len())?;
    Some((digit, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::scratch::with_file;

    #[test]
    fn names_say_what_is_said() {
        assert_eq!(digit(Path::new("a/7_jackson_32.wav")), Some((7, 32)));
        for wrong in ["7_jackson.wav", "10_jackson_3.wav", "7_jackson_x.wav", "x.wav"] {
            assert_eq!(digit(Path::new(wrong)), None, "{wrong}");
            assert_eq!(speaker(Path::new(wrong)), None, "{wrong}");
        }
        assert_eq!(speaker(Path::new("a/7_jackson_32.wav")), Some("jackson"));
    }

    #[test]
    fn lists_name_files_beside_them() {
        let text = "a.wav\tone  two\n\n/b.wav\tthree\n";
        with_file("list.tsv", text.as_bytes(), |path| {
            let (all, folder) = (list(path).unwrap(), path.parent().unwrap());
            assert_eq!(all[0], Recording { path: folder.join("a.wav"), text: "one two".into() });
            assert_eq!(all[1].path, Path::new("/b.wav"));
        });
        let error = |text: &str| {
            with_file("list.tsv", text.as_bytes(), |path| list(path).unwrap_err().to_string())
        };
        let told = error("a.wav\tone\nb.wav\n");
        assert!(told.contains("list.tsv: line 2") && told.contains("b.wav"), "{told}");
        assert!(error("\n").contains("no recordings"));
    }
}
