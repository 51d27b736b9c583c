//! Record of the files that a recipe read, with hashes, so that a resumed run can check its data.
//!
//! Readers call [`note`] for every file they open. [`record`] collects the notes of one thread
//! while a recipe prepares its data, so that no reader has to pass a list around.

use crate::data::sets::sha256;
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Path as the recipe or the data set gives it.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

/// A file, with its size and modification time when it was opened.
struct Noted {
    path: PathBuf,
    like: Option<(u64, Option<SystemTime>)>,
}

fn like(metadata: &Metadata) -> (u64, Option<SystemTime>) {
    (metadata.len(), metadata.modified().ok())
}

thread_local! {
    static NOTED: RefCell<Option<Vec<Noted>>> = const { RefCell::new(None) };
}

/// Notes that a file is read, if a [recording](record) is active on this thread.
pub fn note(path: &Path) {
    NOTED.with_borrow_mut(|noted| {
        if let Some(paths) = noted {
            let like = std::fs::metadata(path).ok().map(|metadata| like(&metadata));
            paths.push(Noted { path: path.to_path_buf(), like });
        }
    });
}

/// Runs `work` and returns the files that it read on this thread, each once, in the order in
/// which they were first opened.
///
/// # Errors
/// Those of `work`, or of a file that cannot be read again to hash it.
pub fn record<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Vec<DataFile>)> {
    NOTED.set(Some(vec![]));
    let done = work();
    let paths = NOTED.take().unwrap_or_default();
    let done = done?;
    let mut seen = HashSet::new();
    let first = paths.into_iter().filter(|noted| seen.insert(noted.path.clone()));
    let files = first.map(|Noted { path, like: before }| {
        let metadata = std::fs::metadata(&path).map_err(Error::io(&path))?;
        if !metadata.is_file() {
            let message = "is not a regular file; a run reads its data again when it is resumed";
            return Err(Error::file(&path, message));
        }
        if before != Some(like(&metadata)) {
            let message = "changed while it was read; start again when it is complete";
            return Err(Error::file(&path, message));
        }
        let sha256 = sha256(&path)?;
        Ok(DataFile { path, bytes: metadata.len(), sha256 })
    });
    Ok((done, files.collect::<Result<_>>()?))
}

/// Runs `work` and returns the paths of the files that it read on this thread, without hashes.
pub fn paths<T>(work: impl FnOnce() -> T) -> (T, Vec<PathBuf>) {
    NOTED.set(Some(vec![]));
    let done = work();
    let mut paths: Vec<PathBuf> =
        NOTED.take().unwrap_or_default().into_iter().map(|noted| noted.path).collect();
    paths.sort();
    paths.dedup();
    (done, paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::stream::Lines;

    #[test]
    fn files_are_listed_once_in_the_order_of_reading() {
        let folder = std::env::temp_dir().join(format!("regard-ledger-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (one, two) = (folder.join("one"), folder.join("two"));
        std::fs::write(&one, "abc").unwrap();
        std::fs::write(&two, "").unwrap();
        let read = || {
            for path in [&two, &one, &two] {
                Lines::open(path)?.for_each(drop);
            }
            Ok(7)
        };
        let (seven, files) = record(read).unwrap();
        assert_eq!((seven, files.len()), (7, 2));
        assert_eq!((&files[0].path, files[0].bytes), (&two, 0));
        assert_eq!((&files[1].path, files[1].bytes), (&one, 3));
        assert!(files[1].sha256.starts_with("ba7816bf8f01cfea"));
        // Outside of a recording nothing is kept.
        Lines::open(&one).unwrap();
        assert_eq!(record(|| Ok(())).unwrap().1, []);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
