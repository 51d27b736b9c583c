//! `.npz`: a zip of `.npy` files.

use super::npy;
use super::raw::{Header, RawData};
use anyhow::{Context, Result, bail};
use regard_models::checkpoint::open_file;
use std::cell::RefCell;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use zip::ZipArchive;

/// Maximum compression ratio of deflate; a larger claimed size is invalid.
const LARGEST_RATIO: u64 = 1032;

/// An open `.npz`.
pub struct Npz(RefCell<ZipArchive<BufReader<File>>>);

impl Npz {
    pub fn open(path: &Path) -> Result<Npz> {
        let file = BufReader::new(open_file(path)?.0);
        let zip = ZipArchive::new(file);
        let zip = zip.context("not a complete npz (zip) file; it may be truncated")?;
        Ok(Npz(RefCell::new(zip)))
    }

    pub fn names(&self) -> Vec<String> {
        let zip = self.0.borrow();
        let names = zip.file_names().filter_map(Result::ok);
        names.filter_map(|file| Some(file.strip_suffix(".npy")?.to_string())).collect()
    }

    /// Header of an array; only its start is decompressed.
    pub fn header(&self, name: &str) -> Result<Header> {
        self.read(name, |header, _| Ok(header))
    }

    /// Reads an array; its data are decompressed in small parts as they are `read`.
    pub fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(Header, RawData) -> Result<T>,
    ) -> Result<T> {
        let mut zip = self.0.borrow_mut();
        let mut file = zip.by_name(&format!("{name}.npy"))?;
        let size = file.size();
        if size > file.compressed_size().saturating_mul(LARGEST_RATIO).saturating_add(64) {
            bail!(
                "claims {size} bytes from {} compressed bytes, more than zip allows; the file is \
                 damaged",
                file.compressed_size()
            );
        }
        let (header, bytes) = npy::start(&mut file, size)?;
        read(header, RawData { bytes, from: &mut file })
    }

    /// Reads the values of an array, and checks that nothing follows them.
    pub fn numbers<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Header, RawData) -> Result<T>,
    ) -> Result<(T, Header)> {
        self.read(name, |header, RawData { bytes, from }| {
            let numbers = read(&header, RawData { bytes, from: &mut *from })?;
            // The zip reader checks the checksum at the end.
            match from.read(&mut [0])? {
                0 => Ok((numbers, header)),
                _ => bail!("got more bytes than the archive's header says"),
            }
        })
    }
}
