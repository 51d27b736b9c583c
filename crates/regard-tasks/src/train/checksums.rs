//! `SHA256SUMS`: the checksums of a checkpoint's files, so that damage is found before it is used.
//!
//! One line per file, in the format of the `sha256sum` program, and a last line with the checksum
//! of
//! the lines above it, which `sha256sum --check` skips as a comment:
//!
//! ```text
//! 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  config.json
//! # 60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752
//! ```

use crate::data::sets::{hex, sha256};
use regard_models::checkpoint::{read_text, write_file};
use regard_models::{Error, Result};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Name of the file with the checksums.
pub const CHECKSUMS: &str = "SHA256SUMS";

/// Writes the checksums of every file of a folder.
pub fn write_checksums(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(Error::io(folder))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name != CHECKSUMS).collect();
    names.sort();
    let mut text = String::new();
    for name in names {
        let _ = writeln!(text, "{}  {name}", sha256(&folder.join(&name))?);
    }
    let own = hex(&Sha256::digest(text.as_bytes()));
    write_file(&folder.join(CHECKSUMS), format!("{text}# {own}\n").as_bytes())
}

/// Compares the files of a folder with their checksums.
///
/// # Errors
/// The first damaged file, and how it differs.
pub fn verify_checksums(folder: &Path) -> Result<(), String> {
    let path = folder.join(CHECKSUMS);
    let text = match read_text(&path) {
        Ok(text) => text,
        Err(_) if !path.exists() => return Err(format!("{CHECKSUMS} is missing")),
        Err(e) => return Err(e.to_string()),
    };
    let damaged = || format!("{CHECKSUMS} is damaged");
    let (lines, own) = text.rsplit_once("# ").ok_or_else(damaged)?;
    if own != format!("{}\n", hex(&Sha256::digest(lines.as_bytes()))) {
        return Err(damaged());
    }
    for line in lines.lines() {
        let (wanted, name) = line.split_once("  ").ok_or_else(damaged)?;
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(format!("{CHECKSUMS} names {name:?}, which is not a file of the folder"));
        }
        let file = folder.join(name);
        // Opening a pipe would wait for ever.
        match fs::symlink_metadata(&file) {
            Err(e) => return Err(format!("{name}: {e}")),
            Ok(found) if !found.is_file() => return Err(format!("{name} is not a regular file")),
            Ok(_) => {}
        }
        match sha256(&file) {
            Err(e) => return Err(e.to_string()),
            Ok(found) if found != wanted => {
                return Err(format!("{name} is damaged: its SHA-256 differs from {CHECKSUMS}"));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_found() {
        let folder = std::env::temp_dir().join(format!("regard-sums-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.json"), "{\"step\": 3}").unwrap();
        fs::write(folder.join("b.bin"), [0, 1, 2, 255]).unwrap();
        write_checksums(&folder).unwrap();
        verify_checksums(&folder).unwrap();
        for name in ["a.json", "b.bin", CHECKSUMS] {
            let path = folder.join(name);
            let whole = fs::read(&path).unwrap();
            for bit in 0..8 * whole.len() {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                fs::write(&path, &flipped).unwrap();
                assert!(verify_checksums(&folder).is_err(), "{name}: bit {bit}");
            }
            fs::write(&path, &whole[..whole.len() - 1]).unwrap();
            assert!(verify_checksums(&folder).is_err(), "{name}: truncated");
            fs::remove_file(&path).unwrap();
            let error = verify_checksums(&folder).unwrap_err();
            assert!(error.contains(name), "{error}");
            fs::write(&path, &whole).unwrap();
        }
        verify_checksums(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
