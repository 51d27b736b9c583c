//! First bytes of a file, from which its encoding and the separator of its columns are guessed.

use crate::data::columns::Separator;
use regard_models::{Error, Result};
use std::io::{BufRead, Cursor, Read};
use std::path::Path;

/// Number of bytes from which the separator and the encoding are guessed.
const GLIMPSE: usize = 1 << 16;

/// Reader that gives the first bytes again.
pub(super) type Again<R> = std::io::Chain<Cursor<Vec<u8>>, R>;

/// Returns the first bytes of a reader, and a reader that begins with them. A file is opened once,
/// so that it may be a pipe.
pub(super) fn glimpse<R: BufRead>(mut reader: R, path: &Path) -> Result<(Vec<u8>, Again<R>)> {
    let mut bytes = vec![];
    let mut first = Read::take(&mut reader, GLIMPSE as u64);
    first.read_to_end(&mut bytes).map_err(Error::io(path))?;
    let again = Cursor::new(bytes.clone()).chain(reader);
    Ok((bytes, again))
}

/// Message for a file that is not text in one byte per ASCII character.
pub(super) fn foreign(bytes: &[u8]) -> Option<String> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Some("is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW".into())
        }
        [b'P', b'K', 3, 4, ..] => {
            Some("is a zip archive, perhaps a spreadsheet (.xlsx); save it as CSV".into())
        }
        [b'P', b'A', b'R', b'1', ..] if cfg!(feature = "parquet") => {
            Some("is a Parquet file: the end of its name must be .parquet".into())
        }
        [b'P', b'A', b'R', b'1', ..] => Some(
            "is a Parquet file, which this build does not read: build regard with --features \
             parquet, as in cargo install --path crates/regard --features parquet, or convert the \
             file to CSV: python3 -c \"import pandas; \
             pandas.read_parquet('FILE').to_csv('NEW.csv', index=False)\""
                .into(),
        ),
        _ => None,
    }
}

/// Guesses the encoding of a file that is not UTF-8.
pub(super) fn encoding_hint(bytes: &[u8]) -> String {
    // Bytes of two-byte Chinese encodings come in pairs, accented letters mostly alone.
    let (mut pairs, mut alone, mut at) = (0, 0, 0);
    while at < bytes.len() {
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        match (bytes[at] >= 0x81, next >= 0x40) {
            (false, _) => at += 1,
            (true, true) if next >= 0x81 => {
                pairs += 1;
                at += 2;
            }
            (true, _) => {
                alone += 1;
                at += 1;
            }
        }
    }
    let guess = if pairs > alone { "GB18030" } else { "WINDOWS-1252" };
    format!("may be {guess}; convert it: iconv -f {guess} -t UTF-8 FILE > NEW")
}

/// Separator that the first line of a CSV file names, as in `sep=;`, which spreadsheets write and
/// read. `None` if the first line is another; the text after `sep=` if it is no separator.
pub(super) fn named(first: &[u8]) -> Option<Result<Separator, String>> {
    let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()?;
    // Some programs write it in quotation marks.
    let line = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(line);
    let (key, value) = line.split_once('=')?;
    if !key.eq_ignore_ascii_case("sep") {
        return None;
    }
    let mut all = value.chars();
    Some(match (all.next(), all.next()) {
        (Some(','), None) => Ok(Separator::Comma),
        (Some(';'), None) => Ok(Separator::Semicolon),
        (Some(one), None) if one != '"' && !one.is_alphanumeric() => Ok(Separator::Other(one)),
        _ => Err(value.to_string()),
    })
}

/// Separator of a CSV file: a comma or, as spreadsheets in many countries write it, a semicolon.
/// `like` is that of the training file, which is used if the first line has it.
pub(super) fn comma(glimpse: &[u8], like: Option<char>) -> Separator {
    let first = glimpse.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let (mut quoted, mut commas, mut semicolons) = (false, 0, 0);
    for byte in first {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => commas += 1,
            b';' if !quoted => semicolons += 1,
            _ => {}
        }
    }
    let semicolon = match like {
        Some(';') if semicolons > 0 => true,
        Some(',') if commas > 0 => false,
        _ => semicolons > commas,
    };
    if semicolon { Separator::Semicolon } else { Separator::Comma }
}
