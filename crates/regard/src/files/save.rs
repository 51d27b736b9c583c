//! Atomic writing of files: the complete file, or nothing.

use super::npy;
use anyhow::{Result, bail};
use regard_models::checkpoint;
use regard_tasks::say;
use std::io::{self, BufWriter, Cursor, Seek, Write};
use std::path::Path;
use zip::result::ZipResult;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Array to write: name, values and shape.
pub type Named<'a> = (&'a str, &'a [f32], &'a [usize]);

/// Array of strings to write: name and strings.
pub type NamedWords<'a> = (&'a str, &'a [String]);

/// Writes arrays to an `.npz` file.
pub fn save_npz(path: &Path, arrays: &[Named]) -> Result<()> {
    save_npz_with_words(path, arrays, &[])
}

/// Writes arrays of values and of strings to an `.npz` file.
pub fn save_npz_with_words(path: &Path, arrays: &[Named], words: &[NamedWords]) -> Result<()> {
    let failed = |e: zip::result::ZipError| io::Error::other(e);
    // A zip writer seeks back to fill in sizes, which a pipe does not allow.
    if checkpoint::is_stream(path) {
        let mut bytes = Cursor::new(vec![]);
        write_npz(&mut bytes, arrays, words)?;
        return Ok(checkpoint::write_file(path, bytes.get_ref())?);
    }
    checkpoint::write_file_with(path, |file| {
        let mut buffered = BufWriter::new(file);
        write_npz(&mut buffered, arrays, words).map_err(failed)?;
        buffered.flush()
    })?;
    announce(path);
    Ok(())
}

/// Says on standard error that a file was written, and its size. What goes to a pipe or a device is
/// not said: it may be this very terminal.
pub fn announce(path: &Path) {
    if let (Ok(file), false) = (path.metadata(), checkpoint::is_stream(path)) {
        let size = say::many(file.len() as usize, "byte");
        let _ = writeln!(io::stderr(), "wrote {}, {size}", path.display());
    }
}

/// Refuses to overwrite an input file of the same command.
///
/// # Errors
/// If `out`, which `flag` names, is one of `inputs`.
pub fn not_an_input(flag: &str, out: &Path, inputs: &[&Path]) -> Result<()> {
    let Ok(place) = out.canonicalize() else { return Ok(()) };
    match inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == place)) {
        true if place.is_file() => {
            bail!("{flag}: {} is an input file; name another file", out.display())
        }
        _ => Ok(()),
    }
}

/// Refuses a file name whose extension is that of another format. A name without one is fine, and
/// so is a pipe or a device, whatever it is called.
pub fn expect_extension(flag: &str, out: &Path, known: &[&str]) -> Result<()> {
    let Some(end) = out.extension().filter(|_| !checkpoint::is_stream(out)) else {
        return Ok(());
    };
    match known.iter().any(|name| end.eq_ignore_ascii_case(name)) {
        true => Ok(()),
        false => bail!(
            "{flag}: got {}, need a name that ends in .{}: that is what is written",
            out.display(),
            known[0]
        ),
    }
}

/// Writes a text file.
pub fn save_text(path: &Path, text: &str) -> Result<()> {
    checkpoint::write_file(path, text.as_bytes())?;
    announce(path);
    Ok(())
}

fn write_npz(
    to: &mut (impl Write + Seek),
    arrays: &[Named],
    words: &[NamedWords],
) -> ZipResult<()> {
    let mut zip = ZipWriter::new(to);
    // Uncompressed as by numpy.savez; zip64 for arrays of more than 2 GB.
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
    zip.finish()?;
    Ok(())
}
