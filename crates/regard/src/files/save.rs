//! Writing an `.npz`: the whole file, or none of it.

use super::npy;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use zip::write::{SimpleFileOptions, ZipWriter};

/// An array to be written: its name, its numbers and its shape.
pub type Named<'a> = (&'a str, &'a [f32], &'a [usize]);

/// Writes arrays beside `path`, makes sure that they are on the disk, and only then gives them
/// its name: whoever reads `path` sees the old file or the whole new one.
pub fn save_npz(path: &Path, arrays: &[Named]) -> Result<()> {
    let beside = beside(path)?;
    let written = write(&beside, arrays).and_then(|()| Ok(fs::rename(&beside, path)?));
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

fn write(path: &Path, arrays: &[Named]) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let mut zip = ZipWriter::new(BufWriter::new(file));
    for (name, numbers, shape) in arrays {
        // Stored as numpy.savez does, with room for more than 4 GB.
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .large_file(numbers.len() >= 1 << 29);
        zip.start_file(format!("{name}.npy"), options)?;
        zip.write_all(&npy::header_of_f32(shape))?;
        for part in numbers.chunks(1 << 14) {
            let bytes: Vec<u8> = part.iter().flat_map(|x| x.to_le_bytes()).collect();
            zip.write_all(&bytes)?;
        }
    }
    let mut buffer = zip.finish()?;
    buffer.flush()?;
    buffer.get_ref().sync_all()?;
    Ok(())
}
