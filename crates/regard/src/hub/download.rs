//! Files of a model from the Hub, through hf-hub.
//!
//! hf-hub writes what comes to a file beside the contents, and gives it its name at the end. It
//! does not ask whether that was everything, so that is done here.

use super::cache::Repository;
use super::settings::Settings;
use hf_hub::api::Progress;
use hf_hub::api::sync::{Api, ApiBuilder, ApiError};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regard_models::checkpoint;
use std::cell::Cell;
use std::fs;
use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// How often a connection that breaks is made again. What came before is kept.
const ATTEMPTS: usize = 3;

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
    /// Anything else.
    Other(String),
}

/// A model on the Hub.
pub struct Remote<'a> {
    api: Api,
    repository: &'a Repository,
}

impl Remote<'_> {
    pub fn new<'a>(settings: &Settings, repository: &'a Repository) -> Result<Remote<'a>, Failure> {
        let api = ApiBuilder::from_cache(repository.cache().clone())
            .with_endpoint(settings.endpoint.clone())
            .with_token(settings.token.clone())
            .with_user_agent("regard", env!("CARGO_PKG_VERSION"))
            .build();
        Ok(Remote { api: api.map_err(failure)?, repository })
    }

    /// The commit that a revision is now.
    pub fn commit(&self, revision: &str) -> Result<String, Failure> {
        let url = self.api.repo(self.repository.at(revision)).url(checkpoint::CONFIG);
        let commit = self.api.metadata(&url).map_err(failure)?.commit_hash().to_string();
        // It becomes the name of a folder.
        match !commit.is_empty() && commit.chars().all(|c| c.is_ascii_alphanumeric()) {
            true => Ok(commit),
            false => Err(Failure::Other(format!("the Hub says that its commit is {commit:?}"))),
        }
    }

    /// A file of a commit, downloaded unless it is here; nothing, if there is none.
    pub fn file(&self, commit: &str, name: &str) -> Result<Option<PathBuf>, Failure> {
        if let Some(file) = self.repository.file(commit, name) {
            return Ok(Some(file));
        }
        if self.repository.is_absent(commit, name) {
            return Ok(None);
        }
        let mut attempt = 1;
        loop {
            match self.download(commit, name) {
                Ok(path) => return Ok(Some(path)),
                Err(Failure::Absent) => {
                    self.repository.note_absent(commit, name);
                    return Ok(None);
                }
                Err(Failure::Broken(_)) if attempt < ATTEMPTS => attempt += 1,
                Err(other) => return Err(other),
            }
        }
    }

    fn download(&self, commit: &str, name: &str) -> Result<PathBuf, Failure> {
        let remote = self.api.repo(self.repository.at(commit));
        let seen = Rc::new(Cell::new(Seen::default()));
        let bar = Bar { bar: ProgressBar::hidden(), seen: seen.clone() };
        let path = match remote.download_with_progress(name, bar) {
            Ok(path) => path,
            Err(error) => {
                if cannot_go_on(&error) {
                    self.forget_part(&remote.url(name))?;
                    return Err(Failure::Broken(error.to_string()));
                }
                return Err(failure(error));
            }
        };
        let got = fs::metadata(&path).map_or(0, |file| file.len());
        let Seen { size, went_on, .. } = seen.get();
        // Contents that were compressed on their way may be longer than what was announced.
        if got < size || (went_on && got != size) {
            forget(&path);
            return Err(Failure::Broken(format!("{got} bytes came of {size}")));
        }
        Ok(path)
    }

    /// Removes what came of a file before.
    fn forget_part(&self, url: &str) -> Result<(), Failure> {
        let metadata = self.api.metadata(url).map_err(failure)?;
        let _ = fs::remove_file(self.repository.blob(metadata.etag()).with_extension("part"));
        Ok(())
    }
}

/// Removes a link and the contents that it leads to.
fn forget(path: &Path) {
    let contents = fs::canonicalize(path);
    let _ = fs::remove_file(path);
    if let Ok(contents) = contents {
        let _ = fs::remove_file(contents);
    }
}

/// Whether what came before is the reason: it is longer than the file, or is all of it.
fn cannot_go_on(error: &ApiError) -> bool {
    match error {
        ApiError::InvalidResume => true,
        ApiError::RequestError(error) => matches!(**error, ureq::Error::StatusCode(416)),
        _ => false,
    }
}

fn failure(error: ApiError) -> Failure {
    match error {
        ApiError::RequestError(error) => match *error {
            ureq::Error::StatusCode(404) => Failure::Absent,
            ureq::Error::StatusCode(status @ (401 | 403)) => Failure::NotAllowed(status),
            ureq::Error::StatusCode(status) => {
                Failure::Other(format!("the answer was the status {status}"))
            }
            ureq::Error::Io(error) if broke(error.kind()) => Failure::Broken(error.to_string()),
            error @ (ureq::Error::Io(_)
            | ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Timeout(_)) => Failure::Unreachable(error.to_string()),
            error => Failure::Other(error.to_string()),
        },
        ApiError::IoError(error) if broke(error.kind()) => Failure::Broken(error.to_string()),
        ApiError::LockAcquisition(path) => Failure::Other(format!(
            "another program is downloading it (it holds {}); try again when it is done",
            path.display()
        )),
        ApiError::MissingHeader(name) | ApiError::InvalidHeader(name) => {
            Failure::Other(format!("the answer is not the Hub's: its header {name:?} is not right"))
        }
        error => Failure::Other(error.to_string()),
    }
}

/// Whether a connection was there and is no more.
fn broke(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

impl Failure {
    /// What happened, and what to do.
    pub fn tell(&self, id: &str, revision: &str, settings: &Settings) -> String {
        let Settings { endpoint, token, .. } = settings;
        match (self, token) {
            (Failure::Absent, _) => format!(
                "{id}: {endpoint} has no such model with a {} at revision {revision:?}",
                checkpoint::CONFIG
            ),
            (Failure::NotAllowed(status), None) => format!(
                "{id}: {endpoint} does not give it to everyone, or has none of this name (status \
                 {status}). If you may read it, set HF_TOKEN to a token of yours"
            ),
            (Failure::NotAllowed(status), Some(_)) => format!(
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
            (Failure::Other(why), _) => format!("{id}: {endpoint}: {why}"),
        }
    }
}

/// What a download told of itself.
#[derive(Clone, Copy, Default)]
struct Seen {
    size: u64,
    /// Whether the next number is the first one.
    fresh: bool,
    /// Whether a part of the file was there before.
    went_on: bool,
}

/// The progress of one file: a bar on a terminal, nothing elsewhere.
struct Bar {
    bar: ProgressBar,
    seen: Rc<Cell<Seen>>,
}

impl Progress for Bar {
    fn init(&mut self, size: usize, name: &str) {
        self.seen.set(Seen { size: size as u64, fresh: true, ..self.seen.get() });
        if std::io::stderr().is_terminal() {
            let target = ProgressDrawTarget::stderr();
            self.bar = ProgressBar::with_draw_target(Some(size as u64), target);
            let style = ProgressStyle::with_template(
                "{msg} {bar:24} {bytes}/{total_bytes} · {bytes_per_sec} · {eta} left",
            );
            self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.bar.set_message(name.to_string());
        }
    }

    fn update(&mut self, bytes: usize) {
        // hf-hub begins by telling how much was there.
        let Seen { size, fresh, went_on } = self.seen.get();
        self.seen.set(Seen { size, fresh: false, went_on: went_on || (fresh && bytes > 0) });
        self.bar.inc(bytes as u64);
    }

    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}
