//! E-mails with their subjects: AESLC (Zhang and Tetreault 2019), as its repository is archived.
//!
//! A file is the body, a blank line, `@subject` and the subject; in the validation and test parts,
//! the subjects of three annotators follow as `@ann0` to `@ann2`.

use super::{Part, tar};
use regard_models::{Error, Result};
use std::path::Path;

/// A text with its summaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Email {
    /// The text to summarise.
    pub text: String,
    /// Reference summaries: the original one first, then those of annotators.
    pub summaries: Vec<String>,
}

/// Reads a part of the archive, in the order of the files' names.
pub fn read(archive: &Path, part: Part) -> Result<Vec<Email>> {
    let folder = match part {
        Part::Train => "enron_subject_line/train/",
        Part::Valid => "enron_subject_line/dev/",
        Part::Test => "enron_subject_line/test/",
    };
    let mut found: Vec<(String, Email)> = vec![];
    tar::read(
        archive,
        |name| name.starts_with(folder) && name.ends_with(".subject"),
        |name, bytes| {
            // E-mails came in many encodings; bytes that are not UTF-8 become U+FFFD.
            let document = document(&String::from_utf8_lossy(&bytes));
            let document =
                document.map_err(|message| Error::file(archive, format!("{name}: {message}")))?;
            found.push((name.to_string(), document));
            Ok(())
        },
    )?;
    if found.is_empty() {
        return Err(Error::file(archive, format!("holds no files in {folder}")));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found.into_iter().map(|(_, document)| document).collect())
}

fn document(text: &str) -> Result<Email, &'static str> {
    let mut document = Email::default();
    for line in text.lines() {
        let is_mark = line == "@subject" || line.starts_with("@ann");
        if is_mark && (line == "@subject") != document.summaries.is_empty() {
            return Err("need exactly one @subject, before any @ann");
        }
        match document.summaries.last_mut() {
            _ if is_mark => document.summaries.push(String::new()),
            Some(summary) => add(summary, line),
            None => add(&mut document.text, line),
        }
    }
    if document.summaries.is_empty() {
        return Err("need a line @subject with the subject below it");
    }
    Ok(document)
}

fn add(text: &mut String, line: &str) {
    let line = line.trim();
    if !line.is_empty() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_and_subjects() {
        let read =
            document("Greg,\n see you.\r\n\n@subject\nThe  deal\n\n@ann0\nyes\n\n@ann1\n").unwrap();
        assert_eq!(read.text, "Greg, see you.");
        assert_eq!(read.summaries, ["The  deal", "yes", ""]);
        assert!(document("no subject").is_err());
        assert!(document("a\n@ann0\nb\n@subject\nc").is_err());
        assert!(document("a\n@subject\nb\n@subject\nc").is_err());
    }
}
