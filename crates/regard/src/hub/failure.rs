//! Why a file did not come, and what to do about it.

use super::settings::{Settings, Token};
use regard_models::checkpoint;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// Why a file did not come.
#[derive(Debug)]
pub enum Failure {
    /// There is no such model, revision or file.
    Absent,
    /// Whoever asks may not have it; the status.
    NotAllowed(u16),
    /// The Hub did not answer.
    Unreachable(String),
    /// The connection broke, again and again.
    Broken(String),
    /// The checksum differs.
    Changed(String),
    /// Anything else.
    Other(String),
}

impl Failure {
    /// A file of the cache cannot be read or written.
    pub fn disk(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        let path = path.display().to_string();
        move |error| Failure::Other(format!("{path}: {error}"))
    }

    /// The contents of a file stopped coming.
    pub fn stopped(error: &io::Error, patience: Duration) -> Failure {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        match inner {
            Some(ureq::Error::Timeout(_)) => {
                Failure::Broken(format!("no bytes came for {} s", patience.as_secs()))
            }
            _ => Failure::Broken(error.to_string()),
        }
    }

    /// Error message with a hint.
    pub fn tell(&self, id: &str, revision: &str, settings: &Settings) -> String {
        let Settings { endpoint, token, .. } = settings;
        match (self, token) {
            (Failure::Absent, _) => format!(
                "{id}: {endpoint} has no such model with a {} at revision {revision:?}",
                checkpoint::CONFIG
            ),
            (Failure::NotAllowed(status), Token::None) => format!(
                "{id}: {endpoint} does not give it to everyone, or has none of this name (status \
                 {status}). If you may read it, set HF_TOKEN to a token of yours"
            ),
            (Failure::NotAllowed(status), Token::Withheld(why)) => format!(
                "{id}: {endpoint} does not give it to everyone, or has none of this name (status \
                 {status}); {why}"
            ),
            (Failure::NotAllowed(status), Token::Sent(_)) => format!(
                "{id}: {endpoint} does not give it to you, or has none of this name (status \
                 {status}). The token of HF_TOKEN, or of the file `token` in HF_HOME, must be one \
                 that may read it; of some models, terms have to be accepted at {endpoint}/{id}"
            ),
            (Failure::Unreachable(why), _) => format!(
                "{id}: {endpoint} cannot be reached: {why}. Without a network, only what was \
                 downloaded before can be used, or a folder of this machine: --model FOLDER, or for \
                 a recipe --set from=FOLDER"
            ),
            (Failure::Broken(why), _) => format!(
                "{id}: the download broke off: {why}. Run it again: it goes on where it ended"
            ),
            (Failure::Changed(why) | Failure::Other(why), _) => {
                format!("{id}: {endpoint}: {why}")
            }
        }
    }
}

impl From<ureq::Error> for Failure {
    fn from(error: ureq::Error) -> Failure {
        match error {
            ureq::Error::Io(error) if broke(error.kind()) => Failure::Broken(error.to_string()),
            error @ (ureq::Error::Io(_)
            | ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Timeout(_)) => Failure::Unreachable(error.to_string()),
            error => Failure::Other(error.to_string()),
        }
    }
}

/// Whether a connection was there and is no more.
fn broke(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}
