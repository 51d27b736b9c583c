//! `.npz`: a zip of `.npy` files.

use super::npy;
use super::raw::Raw;
use anyhow::{Context, Result, bail};
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use zip::ZipArchive;

/// Deflate cannot make more than this of one byte, so whoever claims more is lying.
const LARGEST_RATIO: u64 = 1032;

/// An open `.npz`.
pub struct Npz(RefCell<ZipArchive<BufReader<File>>>);

impl Npz {
    pub fn open(path: &Path) -> Result<Npz> {
        let file = BufReader::new(File::open(path)?);
        let zip = ZipArchive::new(file).context("not a whole npz (zip) file: cut off?")?;
        Ok(Npz(RefCell::new(zip)))
    }

    pub fn names(&self) -> Vec<String> {
        let zip = self.0.borrow();
        let names = zip.file_names().filter_map(Result::ok);
        names.filter_map(|file| Some(file.strip_suffix(".npy")?.to_string())).collect()
    }

    pub fn get(&self, name: &str) -> Result<Raw> {
        let mut zip = self.0.borrow_mut();
        let mut file = zip.by_name(&format!("{name}.npy"))?;
        let size = file.size();
        if size > file.compressed_size().saturating_mul(LARGEST_RATIO).saturating_add(64) {
            bail!("{size} bytes cannot be made of {}", file.compressed_size());
        }
        let mut bytes = vec![];
        if usize::try_from(size).map_or(true, |size| bytes.try_reserve_exact(size).is_err()) {
            bail!("{size} bytes do not fit into memory");
        }
        // One more than there should be, so that the end is met and the checksum looked at.
        (&mut file).take(size.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != size {
            bail!("{} bytes where the archive says {size}", bytes.len());
        }
        npy::parse(bytes)
    }
}
