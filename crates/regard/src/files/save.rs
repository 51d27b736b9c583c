//! Writing files: the whole file, or none of it.

use super::npy;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use zip::write::{SimpleFileOptions, ZipWriter};

/// An array to be written: its name, its numbers and its shape.
pub type Named<'a> = (&'a str, &'a [f32], &'a [usize]);

/// Words to be written: their name and themselves.
pub type NamedWords<'a> = (&'a str, &'a [String]);

/// Writes arrays of numbers.
pub fn save_npz(path: &Path, arrays: &[Named]) -> Result<()> {
    save_npz_with_words(path, arrays, &[])
}

/// Writes arrays of numbers and of words.
pub fn save_npz_with_words(path: &Path, arrays: &[Named], words: &[NamedWords]) -> Result<()> {
    replace(path, |file| write_npz(file, arrays, words))
}

/// Writes text.
pub fn save_text(path: &Path, text: &str) -> Result<()> {
    replace(path, |mut file| {
        file.write_all(text.as_bytes())?;
        Ok(file)
    })
}

/// Writes beside `path`, makes sure that it is on the disk, and only then gives it its name:
/// whoever reads `path` sees the old file or the whole new one.
fn replace(path: &Path, write: impl FnOnce(File) -> Result<File>) -> Result<()> {
    let beside = beside(path)?;
    let written = || -> Result<()> {
        let file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        write(file)?.sync_all()?;
        Ok(fs::rename(&beside, path)?)
    };
    let written = written();
    if written.is_err() {
        // What went wrong is reported below; that this is left behind too would not help.
        let _ = fs::remove_file(&beside);
    }
    written.with_context(|| format!("{}: cannot be written", path.display()))?;
    // The new name is safe only once the directory is; not every system can do it.
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

fn beside(path: &Path) -> Result<PathBuf> {
    match path.file_name() {
        Some(name) => {
            let name = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
            Ok(path.with_file_name(name))
        }
        None => bail!("{}: need the name of a file", path.display()),
    }
}

fn write_npz(file: File, arrays: &[Named], words: &[NamedWords]) -> Result<File> {
    let mut zip = ZipWriter::new(BufWriter::new(file));
    // Stored as numpy.savez does, with room for more than 4 GB.
    let options = |large: bool| {
        let stored = zip::CompressionMethod::Stored;
        SimpleFileOptions::default().compression_method(stored).large_file(large)
    };
    for (name, numbers, shape) in arrays {
        zip.start_file(format!("{name}.npy"), options(numbers.len() >= 1 << 29))?;
        zip.write_all(&npy::header_of_f32(shape))?;
        for part in numbers.chunks(1 << 14) {
            let bytes: Vec<u8> = part.iter().flat_map(|x| x.to_le_bytes()).collect();
            zip.write_all(&bytes)?;
        }
    }
    for (name, words) in words {
        zip.start_file(format!("{name}.npy"), options(false))?;
        zip.write_all(&npy::words(words))?;
    }
    let mut buffer = zip.finish()?;
    buffer.flush()?;
    buffer.into_inner().context("the last bytes")
}
