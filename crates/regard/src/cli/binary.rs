//! Files that are no texts, by their first bytes: their lines would be taken for texts.

use super::inputs::{STANDARD_INPUT, standard_input};
use super::say::quoted;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// Refuses the first bytes of an image, a recording, an archive or a document.
///
/// # Errors
/// If they are such, with what to do.
pub fn refuse_binary(first: &[u8], name: &Path) -> Result<()> {
    let file = match name == Path::new(STANDARD_INPUT) {
        true => standard_input().map_or("FILE".into(), |path| quoted(path.display())),
        false => quoted(name.display()),
    };
    let (kind, instead) = match first {
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] => {
            ("an image", format!("to classify it: regard classify --image {file}"))
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => {
            ("a recording", format!("to transcribe it: regard recognize {file}"))
        }
        [b'P', b'K', 3, 4, ..] => {
            let save = "save it as CSV or as plain text";
            ("a zip archive, perhaps a spreadsheet or a document", save.to_string())
        }
        [b'%', b'P', b'D', b'F', ..] => ("a PDF file", format!("to convert it: pdftotext {file}")),
        [0x1f, 0x8b, ..] => {
            ("compressed by gzip", format!("to decompress it: gzip -dc {file} > NEW"))
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            ("UTF-16", format!("to convert it: iconv -f UTF-16 -t UTF-8 {file} > NEW"))
        }
        _ => return Ok(()),
    };
    bail!("{}: is {kind}, need a text in UTF-8; {instead}", name.display())
}

/// Reads a text file as a whole.
///
/// # Errors
/// If it cannot be read, or is no text.
pub fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    refuse_binary(&bytes, path)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        anyhow::anyhow!("{}: line {line}: not UTF-8; convert the file to UTF-8", path.display())
    })
}
