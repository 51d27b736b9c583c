//! The model cache, in the layout of Hugging Face's libraries:
//!
//! ```text
//! models--owner--name/blobs/<etag>               contents of files
//!                     refs/<branch or tag>       commit of a branch or tag
//!                     snapshots/<commit>/<file>  links to blobs
//!                     .no_exist/<commit>/<file>  empty: the commit has no such file
//! ```
//!
//! Every part of these paths that comes from a server (etag, commit) or from a downloaded file (the
//! name of a shard) is validated in [`words`](super::words) first.

use super::needs;
use super::words::{Commit, Etag, FileName};
use regard_models::checkpoint;
use std::convert::Infallible;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// One model in the cache.
pub struct Repository {
    /// Id of the model, such as `owner/name`.
    pub id: String,
    folder: PathBuf,
}

/// Completeness of a commit in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// All needed files.
    Whole,
    /// Enough files to load the model; optional files may exist on the Hub.
    Enough,
    /// Needed files are missing.
    Lacking,
}

impl Repository {
    pub fn new(cache: &Path, id: &str) -> Repository {
        let folder = cache.join(format!("models--{}", id.replace('/', "--")));
        Repository { id: id.to_string(), folder }
    }

    /// Cached commit of a branch or tag; a commit itself, if it is in the cache.
    pub fn commit(&self, revision: &str) -> Option<Commit> {
        if is_commit(revision) {
            let commit = Commit::new(revision).ok()?;
            return self.snapshot(&commit).is_dir().then_some(commit);
        }
        let commit = fs::read_to_string(self.folder.join("refs").join(revision)).ok()?;
        Commit::new(commit.trim()).ok()
    }

    /// Folder of a commit.
    pub fn snapshot(&self, commit: &Commit) -> PathBuf {
        self.folder.join("snapshots").join(commit.as_str())
    }

    /// Path of a file of a commit, if it is in the cache.
    pub fn file(&self, commit: &Commit, name: &FileName) -> Option<PathBuf> {
        Some(self.snapshot(commit).join(name.as_str())).filter(|path| path.exists())
    }

    /// Path of the contents with this etag.
    pub fn blob(&self, etag: &Etag) -> PathBuf {
        self.folder.join("blobs").join(etag.as_str())
    }

    /// Links a file of a commit to the contents with this etag, which must be in the cache.
    pub fn link(&self, commit: &Commit, name: &FileName, etag: &Etag) -> io::Result<PathBuf> {
        let pointer = self.snapshot(commit).join(name.as_str());
        let blob = self.blob(etag);
        // Another program may make the same link at the same time.
        let is_right = || match (fs::canonicalize(&pointer), fs::canonicalize(&blob)) {
            (Ok(here), Ok(blob)) => here == blob,
            _ => false,
        };
        if is_right() {
            return Ok(pointer);
        }
        fs::create_dir_all(pointer.parent().unwrap_or(&self.folder))?;
        let up = "../".repeat(2 + name.as_str().matches('/').count());
        let to = format!("{up}blobs/{}", etag.as_str());
        match symlink(&to, &blob, &pointer) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| pointer),
        }
        if !is_right() {
            // A dangling link, or one to other contents: it is replaced atomically.
            let beside = pointer.with_extension(format!("{}.link", std::process::id()));
            let _ = fs::remove_file(&beside);
            symlink(&to, &blob, &beside)?;
            fs::rename(&beside, &pointer)?;
        }
        Ok(pointer)
    }

    fn absence(&self, commit: &Commit, name: &FileName) -> PathBuf {
        self.folder.join(".no_exist").join(commit.as_str()).join(name.as_str())
    }

    /// Whether a commit is known not to have a file.
    pub fn is_absent(&self, commit: &Commit, name: &FileName) -> bool {
        self.absence(commit, name).exists()
    }

    /// Records that a commit does not have a file. Write errors are ignored.
    pub fn note_absent(&self, commit: &Commit, name: &FileName) {
        let note = self.absence(commit, name);
        let _ = note.parent().map(fs::create_dir_all);
        let _ = OpenOptions::new().write(true).create_new(true).open(note);
    }

    /// Records the commit of a branch or tag.
    pub fn name(&self, revision: &str, commit: &Commit) -> Result<(), String> {
        if is_commit(revision) {
            return Ok(());
        }
        let path = self.folder.join("refs").join(revision);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        checkpoint::write_file(&path, commit.as_str().as_bytes()).map_err(|e| e.to_string())
    }

    /// Checks which files of a commit are in the cache.
    pub fn look(&self, commit: &Commit) -> Here {
        let mut unknown = false;
        let mut get = |name: &str| -> Result<Option<PathBuf>, Infallible> {
            let Ok(name) = FileName::new(name) else { return Ok(None) };
            let file = self.file(commit, &name);
            unknown |= file.is_none() && !self.is_absent(commit, &name);
            Ok(file)
        };
        let Ok(lack) = needs::gather(&mut get);
        match (lack, unknown) {
            (Some(_), _) => Here::Lacking,
            (None, true) => Here::Enough,
            (None, false) => Here::Whole,
        }
    }
}

#[cfg(unix)]
fn symlink(relative: &str, _blob: &Path, pointer: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(relative, pointer)
}

/// Symbolic links need a privilege on Windows; without it the contents are moved.
#[cfg(windows)]
fn symlink(relative: &str, blob: &Path, pointer: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(relative, pointer).or_else(|_| fs::rename(blob, pointer))
}

#[cfg(not(any(unix, windows)))]
fn symlink(_relative: &str, blob: &Path, pointer: &Path) -> io::Result<()> {
    fs::copy(blob, pointer).map(|_| ())
}

/// Whether a revision is a commit hash, not a branch or tag.
fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn several_programs_may_make_the_same_link() {
        let cache = std::env::temp_dir().join(format!("regard-links-{}", std::process::id()));
        let _ = fs::remove_dir_all(&cache);
        let repository = Repository::new(&cache, "someone/tiny");
        let etag = Etag::new(&format!("\"{}\"", "a".repeat(40))).unwrap();
        let commit = Commit::new(&"1".repeat(40)).unwrap();
        let blob = repository.blob(&etag);
        fs::create_dir_all(blob.parent().unwrap()).unwrap();
        fs::write(&blob, "{}").unwrap();
        for round in 0..50 {
            let name = FileName::new(&format!("part-{round}.json")).unwrap();
            let start = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        start.wait();
                        let link = repository.link(&commit, &name, &etag).unwrap();
                        assert_eq!(fs::read_to_string(link).unwrap(), "{}");
                    });
                }
            });
        }
        // A link to other contents is made anew.
        let name = FileName::new("config.json").unwrap();
        let link = repository.link(&commit, &name, &etag).unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("../../blobs/gone", &link).unwrap();
        repository.link(&commit, &name, &etag).unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "{}");
        fs::remove_dir_all(cache).unwrap();
    }
}
