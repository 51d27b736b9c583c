//! One process a run: a lock that the system releases when its process ends, however it ends.

use regard_models::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

const LOCK: &str = "run.lock";

/// Holds a run's folder for this process until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a folder, which must exist.
    ///
    /// # Errors
    /// If another process holds it: the message has its number.
    pub fn acquire(run: &Path) -> Result<Lock> {
        let path = run.join(LOCK);
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(&path).map_err(Error::io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(run, &mut file)),
            Err(TryLockError::Error(e)) => return Err(Error::io(&path)(e)),
        }
        // For whoever finds the folder locked; the lock itself does not depend on it.
        let written = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()));
        written.map_err(Error::io(&path))?;
        Ok(Lock { _file: file })
    }
}

/// Refuses a folder in which another process trains. A folder without a run is free.
pub fn check_unlocked(run: &Path) -> Result<()> {
    let Ok(mut file) = File::open(run.join(LOCK)) else { return Ok(()) };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Err(held(run, &mut file)),
        _ => Ok(()),
    }
}

fn held(run: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    let _ = file.take(32).read_to_string(&mut text);
    let process = match text.trim().parse::<u32>() {
        Ok(process) => format!("process {process}"),
        Err(_) => "another process".to_string(),
    };
    Error::file(run, format!("{process} is training here; wait until it ends, or stop it"))
}
