//! Files of a model's folder, read whole or memory-mapped.
//!
//! A folder from elsewhere may hold anything under the name of a file. Opening a FIFO blocks
//! forever, and a device has no end, so both are refused before they are opened. Links are
//! followed: the Hub's cache consists of them.

use crate::{Error, Result};
use regard_attention::storage::Bytes;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Opens a regular file, and returns it with its size in bytes.
///
/// # Errors
/// If there is none, or if it is a folder, a FIFO, a socket or a device.
pub fn open_file(path: &Path) -> Result<(File, u64)> {
    let refused = || Error::file(path, "is not a regular file; need one, or a link to one");
    if !fs::metadata(path).map_err(Error::io(path))?.is_file() {
        return Err(refused());
    }
    let file = File::open(path).map_err(Error::io(path))?;
    // The file may have been replaced between the two calls.
    let opened = file.metadata().map_err(Error::io(path))?;
    match opened.is_file() {
        true => Ok((file, opened.len())),
        false => Err(refused()),
    }
}

/// Reads a regular file of at most `largest` bytes.
///
/// # Errors
/// As [`open_file`]; if it is larger, or does not fit into memory.
pub fn read_file(path: &Path, largest: u64) -> Result<Vec<u8>> {
    let (file, size) = open_file(path)?;
    let too_large = |size: u64| {
        Error::file(path, format!("has {size} bytes; need at most {largest} for such a file"))
    };
    if size > largest {
        return Err(too_large(size));
    }
    let mut bytes = vec![];
    if usize::try_from(size).map_or(true, |size| bytes.try_reserve_exact(size).is_err()) {
        return Err(Error::file(path, format!("its {size} bytes do not fit into memory")));
    }
    // It may grow while it is read, but not without limit.
    file.take(largest.saturating_add(1)).read_to_end(&mut bytes).map_err(Error::io(path))?;
    match bytes.len() as u64 <= largest {
        true => Ok(bytes),
        false => Err(too_large(bytes.len() as u64)),
    }
}

/// Maps a regular file into memory, where the system can; otherwise reads it.
///
/// For files that are only read: see [`Bytes::map`] for what happens if one is modified. This
/// program never modifies a file in place, it replaces it ([`write_file`](super::write_file)), so
/// that a mapped file keeps its contents.
///
/// # Errors
/// As [`open_file`]; if it can be neither mapped nor read.
pub fn map_file(path: &Path) -> Result<Bytes> {
    let (file, size) = open_file(path)?;
    match Bytes::map(&file) {
        // An empty file cannot be mapped.
        Ok(bytes) if size > 0 => Ok(bytes),
        _ => Ok(read_file(path, u64::MAX)?.into()),
    }
}

/// Most bytes of a text file, such as a configuration.
pub const LARGEST_TEXT: u64 = 1 << 26;

/// Reads a regular file of text, of at most [`LARGEST_TEXT`] bytes.
///
/// # Errors
/// As [`read_file`]; if it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_file(path, LARGEST_TEXT)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to() + 1;
        Error::file(path, format!("is not UTF-8 at byte {at}; convert it to UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_refused() {
        let path = std::env::temp_dir().join(format!("regard-large-{}", std::process::id()));
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_file(&path, 5).unwrap(), b"12345");
        let error = read_file(&path, 4).unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert!(error.contains("regard-large") && error.contains("at most 4"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_refused_before_it_is_opened() {
        let folder = std::env::temp_dir().join(format!("regard-irregular-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let fifo = folder.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let link = folder.join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&folder, &fifo, &link] {
            let error = read_file(path, 1 << 20).unwrap_err().to_string();
            assert!(error.contains("is not a regular file"), "{error}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
