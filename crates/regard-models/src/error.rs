//! Errors of files, their contents, and what the user requested.

use std::io;
use std::path::{Path, PathBuf};

/// An error that is not a bug. Programming errors panic instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system reported an error.
    #[error("{}: {why}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system. It is part of the message, and therefore not the `source`.
        why: io::Error,
    },
    /// A file has invalid contents.
    #[error("{}: {message}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Found and expected contents, and what to do.
        message: String,
    },
    /// Any other request that cannot be fulfilled.
    #[error("{0}")]
    Invalid(String),
}

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps an error of the system: `read(path).map_err(Error::io(path))`.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        let path = path.as_ref().to_owned();
        move |why| Error::Io { path, why }
    }

    /// Makes an error about the contents of a file.
    pub fn file(path: impl AsRef<Path>, message: impl Into<String>) -> Error {
        Error::File { path: path.as_ref().to_owned(), message: message.into() }
    }

    /// Makes an error about an invalid request.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid(message.into())
    }
}
