//! First bytes of a file, from which its encoding and the separator of its columns are guessed.

use crate::data::columns::{Separator, row};
use crate::data::stream::{LONGEST, Lines};
use regard_models::{Error, Result};
use std::io::{BufRead, Cursor, Read};
use std::path::Path;

/// Number of bytes from which the separator and the encoding are guessed.
const GLIMPSE: usize = 1 << 16;

/// Separators of CSV files besides comma and semicolon, and the number of rows that must fit.
const RARE: [char; 2] = ['\t', '|'];
const ROWS: usize = 50;

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

/// Returns the bytes up to the end of the first line that is not blank, and a reader that begins with
/// them. In whatever pieces a pipe delivers the line, and however long it is.
pub(super) fn first_line<R: BufRead>(mut reader: R, path: &Path) -> Result<(Vec<u8>, Again<R>)> {
    let mut bytes = vec![];
    let mut limited = Read::take(&mut reader, LONGEST as u64);
    loop {
        let before = bytes.len();
        limited.read_until(b'\n', &mut bytes).map_err(Error::io(path))?;
        let line = &bytes[before..];
        if line.is_empty() || !line.trim_ascii().is_empty() {
            break;
        }
    }
    let again = Cursor::new(bytes.clone()).chain(reader);
    Ok((bytes, again))
}

/// Message for a file that is no table in text with one byte per ASCII character, whatever its name
/// says.
pub(super) fn foreign(bytes: &[u8]) -> Option<String> {
    if let Some(message) = not_the_file(bytes) {
        return Some(message.into());
    }
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
        _ => unmarked_utf16(bytes)
            .map(|order| format!("is UTF-16; convert it: iconv -f {order} -t UTF-8 FILE > NEW")),
    }
}

/// Encoding of UTF-16 without a byte-order mark: every other byte of a text in ASCII is 0.
fn unmarked_utf16(bytes: &[u8]) -> Option<&'static str> {
    let pairs = || bytes.chunks_exact(2);
    let high = pairs().filter(|pair| pair[0] == 0 && pair[1] != 0).count();
    let low = pairs().filter(|pair| pair[0] != 0 && pair[1] == 0).count();
    let most = |count: usize| count > 1 && 2 * count > pairs().count();
    [(high, "UTF-16BE"), (low, "UTF-16LE")].into_iter().find(|(n, _)| most(*n)).map(|(_, e)| e)
}

/// Message for what a download leaves in the place of a file.
fn not_the_file(bytes: &[u8]) -> Option<&'static str> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let begins =
        |word: &[u8]| text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    if (begins(b"<!doctype html") || begins(b"<html")) && !has_columns(bytes) {
        return Some(
            "is a web page, not the file itself: download it again, such as by its raw link",
        );
    }
    if begins(b"version https://git-lfs.github.com/") {
        return Some("is a pointer of Git LFS, not the file itself: git lfs pull fetches it");
    }
    match bytes {
        [0x1f, 0x8b, ..] => Some("is compressed: its name must end in .gz, such as .csv.gz"),
        _ if !bytes.contains(&b'\n') && text.trim_ascii_end().contains(&b'\r') => {
            Some("ends its lines with CR alone; convert it: tr '\\r' '\\n' < FILE > NEW")
        }
        [0xd0, 0xcf, 0x11, 0xe0, ..] => Some("is a spreadsheet (.xls); save it as CSV"),
        _ => None,
    }
}

/// Whether the first row has several columns and at least half of the next ones have as many: a text
/// of a table may be a web page.
fn has_columns(bytes: &[u8]) -> bool {
    [',', ';', '\t', '|'].into_iter().any(|mark| {
        let mut lines = Lines::new(bytes, "");
        let mut next = || row(&mut lines, Separator::Other(mark));
        let Some(width) = next().ok().flatten().map(|cells| cells.len()).filter(|n| *n > 1) else {
            return false;
        };
        let (mut alike, mut others) = (0, 0);
        for _ in 1..ROWS {
            match next() {
                Ok(Some(cells)) if cells.len() == width => alike += 1,
                Ok(Some(_)) => others += 1,
                // The end, or that of the glimpse.
                _ => break,
            }
        }
        alike > 0 && alike >= others
    })
}

/// Guesses the encoding of a file that is not UTF-8. A wrong one would make other letters of it.
pub(super) fn encoding_hint(bytes: &[u8]) -> String {
    // Chinese characters have two bytes each and stand together; accented letters are one byte, or
    // a few in a row, beside letters of ASCII.
    let (mut chinese, mut western, mut at) = (0, 0, 0);
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| **byte >= 0x80).count();
        let is_letter = |at: Option<usize>| {
            at.and_then(|at| bytes.get(at)).is_some_and(|byte| byte.is_ascii_alphabetic())
        };
        let is_beside = is_letter(at.checked_sub(1)) || is_letter(Some(at + length));
        match length {
            0 => {}
            1..=3 if is_beside || length % 2 == 1 => western += 1,
            _ => chinese += 1,
        }
        at += length.max(1);
    }
    let guess = if chinese > western { "GB18030" } else { "WINDOWS-1252" };
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

/// Separator of a CSV file: a comma or, as spreadsheets in many countries write it, a semicolon; if
/// the first line has neither, a tab or a `|` that divides all rows alike. `like` is that of the
/// training file, which is used if the first line has it.
pub(super) fn comma(glimpse: &[u8], like: Option<char>) -> Separator {
    let first = glimpse.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut quoted = false;
    let mut bare = vec![];
    for byte in first {
        match byte {
            b'"' => quoted = !quoted,
            _ if !quoted => bare.push(*byte),
            _ => {}
        }
    }
    let bare = String::from_utf8_lossy(&bare);
    let [commas, semicolons] = [',', ';'].map(|mark| bare.matches(mark).count());
    match like {
        Some(';') if semicolons > 0 => Separator::Semicolon,
        Some(',') if commas > 0 => Separator::Comma,
        Some(other) if ![',', ';'].contains(&other) && bare.contains(other) => {
            Separator::Other(other)
        }
        _ if semicolons > commas => Separator::Semicolon,
        _ if commas > 0 => Separator::Comma,
        _ => {
            let other = RARE.into_iter().find(|mark| is_between(glimpse, *mark));
            other.map_or(Separator::Comma, Separator::Other)
        }
    }
}

/// Whether a mark divides all of the first rows into the same number of columns, two or more.
fn is_between(glimpse: &[u8], mark: char) -> bool {
    // The last line may be cut.
    let whole = match glimpse.len() < GLIMPSE {
        true => glimpse,
        false => &glimpse[..glimpse.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)],
    };
    let mut lines = Lines::new(whole, "");
    let mut width = None;
    for _ in 0..ROWS {
        match row(&mut lines, Separator::Other(mark)) {
            Ok(Some(cells)) if cells.len() != *width.get_or_insert(cells.len()) => return false,
            Ok(Some(_)) => {}
            Ok(None) => break,
            // The rest of a text in quotation marks may be cut off too.
            Err(_) if glimpse.len() == GLIMPSE => break,
            Err(_) => return false,
        }
    }
    width.is_some_and(|width| width > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_guessed_by_the_letters_beside_them() {
        let latin = |text: &str| text.chars().map(|c| c as u8).collect::<Vec<u8>>();
        for (bytes, guess) in [
            (latin("größe, Straße, naïve\n"), "WINDOWS-1252"),
            (latin("À l'été, où\n"), "WINDOWS-1252"),
            (b"\xba\xdc\xba\xc3,\xd5\xfd\xc3\xe6\n".to_vec(), "GB18030"),
            (b"\xba\xdc\xba\xc3\xb3\xd4 iPhone \xba\xc3,1\n".to_vec(), "GB18030"),
        ] {
            assert!(encoding_hint(&bytes).contains(guess), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_table_is_named() {
        for (bytes, says) in [
            (&b"\xef\xbb\xbf\n<!DOCTYPE HTML>\n"[..], "is a web page"),
            (b"<html lang=en>", "is a web page"),
            (b"<html><p>one, two</p></html>", "is a web page"),
            (b"<!doctype html><p>a, b\n<p>c\n<p>d, e, f\n</html>\n", "is a web page"),
            (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
            (b"\x1f\x8b\x08\x00", "must end in .gz"),
            (b"\xd0\xcf\x11\xe0\xa1", "save it as CSV"),
            (b"PK\x03\x04", "zip archive"),
            (b"t\0e\0x\0t\0,\0\x7d\x59\n\0", "-f UTF-16LE"),
            (b"\0t\0e\0x\0t\0,\x59\x7d\0\n", "-f UTF-16BE"),
            (b"text,label\ra,x\rb,y\r", "ends its lines with CR alone"),
        ] {
            let message = foreign(bytes);
            assert!(message.as_ref().is_some_and(|m| m.contains(says)), "{says}: {message:?}");
        }
        for bytes in [
            &b"text,label\n"[..],
            b"<b>bold</b>,x\n",
            b"<html><body>Buy</body></html>,spam\nHello,ham\n",
            b"<!DOCTYPE html><p>Buy\tspam\nHello, you\tham\none two\n",
            b"version,label\n",
            b"a\r",
            b"a\0b,c\n",
            b"",
        ] {
            assert_eq!(foreign(bytes), None);
        }
    }

    #[test]
    fn rare_separators_divide_all_rows_alike() {
        for (text, like, wanted) in [
            ("text|label\na, b|x\n\"c|d\ne\"|y\n", None, Separator::Other('|')),
            ("text\tlabel\na, b|c\tx\n", None, Separator::Other('\t')),
            ("text|label\na|b|c\n", None, Separator::Comma),
            ("text\na|b\n", None, Separator::Comma),
            ("a|b,c|d\n", None, Separator::Comma),
            ("a|b;c|d\n", None, Separator::Semicolon),
            ("a, b|x\n", Some('|'), Separator::Other('|')),
            ("a, b\n", Some('|'), Separator::Comma),
            ("\"a|b\",c\n", Some('|'), Separator::Comma),
            ("", None, Separator::Comma),
        ] {
            assert_eq!(comma(text.as_bytes(), like), wanted, "{text:?}");
        }
        // The last row is cut where the glimpse ends.
        let mut long = "one text|label\n".repeat(GLIMPSE / 14).into_bytes();
        long.truncate(GLIMPSE);
        assert_eq!(comma(&long, None), Separator::Other('|'));
    }
}
