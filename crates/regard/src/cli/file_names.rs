//! Names of files where texts are expected.

use super::inputs::{command_without, note};
use super::say::quoted;
use anyhow::{Result, bail};
use regard_tasks::say;
use std::path::Path;

/// Refuses texts that are names of files, because their content was probably meant.
///
/// # Errors
/// With the command that processes the lines of the file, and the one that takes the name as text.
pub fn not_files(texts: &[String]) -> Result<()> {
    let Some(file) = texts.iter().find(|text| Path::new(text).is_file()) else {
        texts.iter().filter(|text| is_file_name(text)).for_each(|text| note_file_name(text));
        return Ok(());
    };
    let command = command_without(texts);
    let quoted = quoted(file);
    let end = Path::new(file).extension().map(|end| end.to_string_lossy().to_lowercase());
    if end.is_some_and(|end| ["png", "jpg", "jpeg", "wav"].contains(&end.as_str())) {
        bail!(
            "{file} is a file of an image or a sound; need a text. For images: regard classify \
             --image {quoted}; for speech: regard recognize {quoted}"
        );
    }
    bail!(
        "{file} is a file; need a text. To process the lines of the file: {command} < {quoted}\nTo \
         process the name itself: echo {quoted} | {command}"
    )
}

/// Ends of the names of files that hold inputs.
const ENDS: [&str; 18] = [
    "txt", "md", "csv", "tsv", "json", "jsonl", "ndjson", "parquet", "conll", "conllu", "xlsx",
    "docx", "pdf", "gz", "png", "jpg", "jpeg", "wav",
];

/// Whether a text can only be the name of a file.
fn is_file_name(text: &str) -> bool {
    let end = text.rsplit_once('.').map(|(stem, end)| (!stem.is_empty(), end.to_lowercase()));
    let is_known = end.is_some_and(|(has_stem, end)| has_stem && ENDS.contains(&end.as_str()));
    // An address is not a file.
    is_known && !text.contains(char::is_whitespace) && !text.contains("://")
}

fn note_file_name(text: &str) {
    note(&format!(
        "there is no file {:?}; its name is taken as the text itself",
        say::short(text, 100)
    ));
}

/// As [`not_files`], for verbs with an option that reads a whole file.
pub fn not_files_but(texts: &[String], option: &str) -> Result<()> {
    let Some(file) = texts.iter().find(|text| Path::new(text).is_file()) else {
        texts.iter().filter(|text| is_file_name(text)).for_each(|text| note_file_name(text));
        return Ok(());
    };
    let (command, quoted) = (command_without(texts), quoted(file));
    bail!("{file} is a file; need a text. To read the file: {command} {option} {quoted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_told_from_texts() {
        for name in ["reviews.csv", "/no/such/file.txt", "./a.b.JSONL", "x.tar.gz"] {
            assert!(is_file_name(name), "{name}");
        }
        for text in ["", ".txt", "See reviews.csv", "node.js", "e.g.", "The end.", "3.14"] {
            assert!(!is_file_name(text), "{text}");
        }
    }
}
