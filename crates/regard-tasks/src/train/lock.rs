//! A lock that allows one process per run. The system releases it when the process ends, however it
//! ends.

use regard_models::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

pub(crate) const LOCK: &str = "run.lock";
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Holds a run's folder for this process until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a folder, which must exist.
    ///
    /// # Errors
    /// If another process holds it: the message has its process id.
    pub fn acquire(run: &Path) -> Result<Lock> {
        let path = run.join(LOCK);
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(&path).map_err(Error::io(&path))?;
        // A process that only checks holds the lock for a moment.
        let locked = (0..TRIES).find_map(|try_| match file.try_lock() {
            Err(TryLockError::WouldBlock) if try_ + 1 < TRIES => {
                std::thread::sleep(PAUSE);
                None
            }
            locked => Some(locked),
        });
        match locked {
            Some(Err(TryLockError::WouldBlock)) => return Err(held(run, &mut file)),
            // Some network file systems have no locks: train without one there.
            Some(Err(TryLockError::Error(e))) if !is_unsupported(&e) => {
                return Err(Error::io(&path)(e));
            }
            _ => {}
        }
        // For the message of processes that find the folder locked; the lock does not depend on it.
        let written = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()));
        written.map_err(Error::io(&path))?;
        Ok(Lock { _file: file })
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    // 37 is ENOLCK on Linux.
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(37)
}

/// Returns an error if another process trains in this folder. A folder without a run is free.
pub fn check_unlocked(run: &Path) -> Result<()> {
    let Ok(mut file) = File::open(run.join(LOCK)) else { return Ok(()) };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Err(held(run, &mut file)),
        _ => Ok(()),
    }
}

/// Whether a process trains in this folder.
pub(super) fn is_locked(run: &Path) -> bool {
    // Opening a pipe would wait for ever.
    std::fs::metadata(run.join(LOCK)).is_ok_and(|found| found.is_file())
        && check_unlocked(run).is_err()
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
