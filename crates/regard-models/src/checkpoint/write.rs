//! Files that are there whole or not at all.

use crate::{Error, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Writes a file: to a temporary name beside it, synced, then renamed. If anything fails, what was
/// there before is there still.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        // The new name is only as durable as the folder that holds it.
        match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    })();
    if written.is_err() {
        // What is left of a full disk is better given back; the first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(Error::io(path))
}
