//! The cache of models, in the layout that all of Hugging Face's libraries share:
//!
//! ```text
//! models--owner--name/blobs/<etag>               the contents of files
//!                     refs/<branch or tag>       the commit that it is
//!                     snapshots/<commit>/<file>  links to blobs
//!                     .no_exist/<commit>/<file>  empty: the commit has no such file
//! ```

use super::needs;
use hf_hub::{Cache, CacheRepo, Repo, RepoType};
use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One model in the cache.
pub struct Repository {
    /// Its id.
    pub id: String,
    cache: Cache,
    folder: PathBuf,
}

/// What the cache has of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// Everything that is needed.
    Whole,
    /// A model that can be used; whether there are more files for it is not known.
    Enough,
    /// Not enough.
    Lacking,
}

impl Repository {
    pub fn new(cache: &Path, id: &str) -> Repository {
        let cache = Cache::new(cache.to_path_buf());
        let repo = Repo::new(id.to_string(), RepoType::Model);
        let folder = cache.path().join(repo.folder_name());
        Repository { id: id.to_string(), cache, folder }
    }

    /// The cache as hf-hub knows it.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// As hf-hub knows it.
    pub fn at(&self, revision: &str) -> Repo {
        Repo::with_revision(self.id.clone(), RepoType::Model, revision.to_string())
    }

    fn cached(&self, revision: &str) -> CacheRepo {
        self.cache.repo(self.at(revision))
    }

    /// The commit that a branch or tag was when it was last asked for; of a commit, itself.
    pub fn commit(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return self.snapshot(revision).is_dir().then(|| revision.to_string());
        }
        let commit = fs::read_to_string(self.folder.join("refs").join(revision)).ok()?;
        let commit = commit.trim();
        // A file that climbs out of the cache is not a name of a commit.
        let plain = commit.chars().all(|c| c.is_ascii_alphanumeric());
        (plain && !commit.is_empty()).then(|| commit.to_string())
    }

    /// The folder of a commit.
    pub fn snapshot(&self, commit: &str) -> PathBuf {
        self.cached(commit).pointer_path(commit)
    }

    /// A file of a commit, if it is here.
    pub fn file(&self, commit: &str, name: &str) -> Option<PathBuf> {
        Some(self.snapshot(commit).join(name)).filter(|path| path.exists())
    }

    /// Where contents with this mark are, or will be.
    pub fn blob(&self, etag: &str) -> PathBuf {
        self.cached("main").blob_path(etag)
    }

    fn absence(&self, commit: &str, name: &str) -> PathBuf {
        self.folder.join(".no_exist").join(commit).join(name)
    }

    /// Whether a commit is known not to have a file.
    pub fn is_absent(&self, commit: &str, name: &str) -> bool {
        self.absence(commit, name).exists()
    }

    /// Remembers that a commit does not have a file. A cache that cannot be written to forgets.
    pub fn note_absent(&self, commit: &str, name: &str) {
        let note = self.absence(commit, name);
        let _ = note.parent().map(fs::create_dir_all);
        let _ = fs::write(note, "");
    }

    /// Gives a commit the name of a branch or tag.
    pub fn name(&self, revision: &str, commit: &str) -> io::Result<()> {
        // hf-hub names every commit that it downloads from, also after itself.
        let _ = fs::remove_file(self.folder.join("refs").join(commit));
        if is_commit(revision) {
            return Ok(());
        }
        self.cached(revision).create_ref(commit)
    }

    /// What is here of a commit.
    pub fn look(&self, commit: &str) -> Here {
        let mut unknown = false;
        let mut get = |name: &str| -> Result<Option<PathBuf>, Infallible> {
            let file = self.file(commit, name);
            unknown |= file.is_none() && !self.is_absent(commit, name);
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

/// Whether a revision is a commit, and not the name of one.
fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.chars().all(|c| c.is_ascii_hexdigit())
}
