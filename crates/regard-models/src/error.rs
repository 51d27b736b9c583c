//! What can go wrong with the world: files, their contents, what a person asked for.

use std::io;
use std::path::{Path, PathBuf};

/// An error of the world. Mistakes of a programmer panic instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("{}: {why}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why. It is told with the file, and is no cause behind it that would be told again.
        why: io::Error,
    },
    /// A file holds what it should not.
    #[error("{}: {message}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What it got, what it needed, what to do.
        message: String,
    },
    /// Anything else that was asked for and cannot be.
    #[error("{0}")]
    Invalid(String),
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The system refused this file: `read(path).map_err(Error::io(path))`.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        let path = path.as_ref().to_owned();
        move |why| Error::Io { path, why }
    }

    /// This file holds what it should not.
    pub fn file(path: impl AsRef<Path>, message: impl Into<String>) -> Error {
        Error::File { path: path.as_ref().to_owned(), message: message.into() }
    }

    /// What was asked for cannot be.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid(message.into())
    }
}
