//! Errors of downloads, with hints.

use super::settings::{Settings, Token};
use regard_models::checkpoint;
use std::io::{self, ErrorKind};
use std::path::Path;
#[cfg(feature = "hub")]
use std::time::Duration;

/// Error of a download.
#[derive(Debug)]
pub enum HubFailure {
    /// No such model, revision or file (status 404).
    Absent,
    /// Access denied, with the HTTP status.
    NotAllowed(u16),
    /// No response from the Hub.
    Unreachable(String),
    /// The connection broke repeatedly.
    Broken(String),
    /// The checksum differs.
    Changed(String),
    /// Any other error.
    Other(String),
}

impl HubFailure {
    /// Error of reading or writing a file of the cache.
    pub fn disk(path: &Path) -> impl FnOnce(io::Error) -> HubFailure {
        let path = path.display().to_string();
        move |error| HubFailure::Other(format!("{path}: {error}"))
    }

    /// Error while receiving the contents of a file.
    #[cfg(feature = "hub")]
    pub fn stopped(error: &io::Error, patience: Duration) -> HubFailure {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        match inner {
            Some(ureq::Error::Timeout(_)) => {
                HubFailure::Broken(format!("no data for {} s", patience.as_secs()))
            }
            _ => HubFailure::Broken(error.to_string()),
        }
    }

    /// Error message with a hint.
    pub fn tell(&self, id: &str, revision: &str, settings: &Settings) -> String {
        let Settings { endpoint, token, .. } = settings;
        match (self, token) {
            (HubFailure::Absent, _) => format!(
                "{id}: {endpoint} has no such model with a {} at revision {revision:?}",
                checkpoint::CONFIG
            ),
            (HubFailure::NotAllowed(status), Token::None) => format!(
                "{id}: {endpoint} has no such public model (status {status}). If it is private or \
                 gated and you have access, set HF_TOKEN to your token"
            ),
            (HubFailure::NotAllowed(status), Token::Withheld(why)) => {
                format!("{id}: {endpoint} has no such public model (status {status}); {why}")
            }
            (HubFailure::NotAllowed(status), Token::Sent(_)) => format!(
                "{id}: {endpoint} denies access with your token, or has no such model (status \
                 {status}). The token (HF_TOKEN, or the file `token` in HF_HOME) needs read \
                 access; for gated models, accept the terms at {endpoint}/{id}"
            ),
            (HubFailure::Unreachable(why), _) => format!(
                "{id}: {endpoint} cannot be reached: {why}. Without a network, use a folder, or an \
                 id that was downloaded before: --model FOLDER; for training --from FOLDER or \
                 --set from=FOLDER"
            ),
            (HubFailure::Broken(why), _) => {
                format!("{id}: the download broke off: {why}. Run the command again to continue it")
            }
            (HubFailure::Changed(why) | HubFailure::Other(why), _) => {
                format!("{id}: {endpoint}: {why}")
            }
        }
    }
}

#[cfg(feature = "hub")]
impl From<ureq::Error> for HubFailure {
    fn from(error: ureq::Error) -> HubFailure {
        match error {
            ureq::Error::Io(error) if broke(error.kind()) => HubFailure::Broken(error.to_string()),
            error @ (ureq::Error::Io(_)
            | ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Timeout(_)) => HubFailure::Unreachable(error.to_string()),
            error => HubFailure::Other(error.to_string()),
        }
    }
}

/// Whether an established connection was lost.
fn broke(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}
