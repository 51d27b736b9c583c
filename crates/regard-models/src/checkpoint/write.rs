//! Atomic writes. Everything that the program writes to a path that the user gave goes through
//! here.
//!
//! A regular file, or none yet: the new one is written beside it, synced, and renamed. A link: the
//! same, at its target, and the link stays. A FIFO, a device or a file that is already open
//! (`/dev/stdout`, `/dev/fd/63`): it is written to, and never replaced.

use crate::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Most links in a chain; Linux has the same limit.
const LINKS: usize = 40;

/// Target of a write.
enum WriteTarget {
    /// A file that exists or will be created, to be replaced.
    Regular(PathBuf),
    /// Written in place: a FIFO, a device, or a file descriptor that is already open.
    Stream(PathBuf),
}

/// Writes a file as described in this module. On failure a regular file that existed before is
/// unchanged.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    write_file_with(path, |file| file.write_all(bytes))
}

/// Writes a file piece by piece, otherwise like [`write_file`]. `write` must not seek: the file
/// may be a pipe.
pub fn write_file_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let written = || match place(path)? {
        WriteTarget::Regular(path) => replace(&path, write),
        WriteTarget::Stream(path) => {
            let mut file = open(&path)?;
            write(&mut file)?;
            file.flush()
        }
    };
    let told = |why: io::Error| io::Error::new(why.kind(), format!("cannot be written: {why}"));
    written().map_err(told).map_err(Error::io(path))
}

/// Whether this is a path that is written in place and not replaced, and cannot seek.
pub fn is_stream(path: &Path) -> bool {
    matches!(place(path), Ok(WriteTarget::Stream(_)))
}

fn place(path: &Path) -> io::Result<WriteTarget> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        let kind = match fs::symlink_metadata(&path) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(WriteTarget::Regular(path));
            }
            Err(error) => return Err(error),
        };
        if kind.is_file() {
            return Ok(WriteTarget::Regular(path));
        }
        if kind.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder, need a file"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        // There, an apparent link is an open file.
        let open = fs::canonicalize(folder).is_ok_and(|folder| folder.starts_with("/proc"));
        if !kind.is_symlink() || open {
            return Ok(WriteTarget::Stream(path));
        }
        path = folder.join(fs::read_link(&path)?);
    }
    Err(io::Error::other(format!("leads from link to link, more than {LINKS} times")))
}

/// Opens a stream for writing. Standard output and error are duplicated: with file offsets of
/// their own they would overwrite each other's output.
fn open(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
        let mine = Path::new("/proc").join(std::process::id().to_string()).join("fd");
        match path.file_name().and_then(|name| name.to_str()).filter(|_| folder == Some(mine)) {
            Some("1") => {
                io::stdout().flush()?;
                return Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?));
            }
            Some("2") => return Ok(File::from(io::stderr().as_fd().try_clone_to_owned()?)),
            _ => {}
        }
    }
    OpenOptions::new().append(true).open(path)
}

fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "need the name of a file"));
    };
    let name = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
    let beside = path.with_file_name(name);
    // Left by an earlier process with the same id; never opened, since it could be a link.
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written = || {
        write(&mut file)?;
        if let Ok(old) = fs::metadata(path) {
            // Not all systems permit this; the file is more important than its mode.
            let _ = file.set_permissions(old.permissions());
        }
        file.sync_all()?;
        drop(file);
        fs::rename(&beside, path)
    };
    let written = written();
    if written.is_err() {
        // Free the space of a full disk; the first error is the one to report.
        let _ = fs::remove_file(&beside);
    }
    written?;
    // The rename is durable only once the folder is synced; not every system can do that.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    Ok(())
}
