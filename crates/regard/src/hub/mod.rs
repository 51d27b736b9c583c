//! Models of the Hugging Face Hub: found in the cache that Python's `huggingface_hub` keeps, or
//! downloaded into it.
//!
//! A model is asked for by its id. What the cache has is taken without a word to anybody; what it
//! lacks is downloaded, all files from one commit, and a branch gets its commit's name only when
//! everything is there. So a download that was interrupted is never taken for a model, and goes
//! on where it ended.

mod ask;
mod cache;
mod download;
mod failure;
mod name;
mod needs;
mod origin;
mod settings;
mod words;

pub use name::check;

use anyhow::{Result, anyhow};
use cache::{Here, Repository};
use clap::Args;
use download::Remote;
use failure::Failure;
use needs::Lack;
pub use needs::small_files;
use settings::Settings;
use std::io::Write;
use std::path::PathBuf;
use words::Commit;

/// Where help lists them.
const HEADING: &str = "Models of the Hugging Face Hub";

/// How a model of the Hub is found, as flags.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct Hub {
    /// A branch, a tag or a commit of the model [default: main]
    #[arg(long, value_name = "NAME")]
    pub revision: Option<String>,
    /// Download nothing: only what is on this machine [default: what HF_HUB_OFFLINE says]
    #[arg(long)]
    pub offline: bool,
}

impl Hub {
    /// The revision that is asked for.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    /// What is to be done about a model that is not here.
    pub fn fetch(&self) -> Fetch {
        match self.offline || settings::is_offline() {
            true => Fetch::Never,
            false => Fetch::Missing,
        }
    }
}

/// Whether a model may come from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Only what is on this machine is taken.
    Never,
    /// What is not on this machine is downloaded.
    Missing,
    /// The Hub is asked for the newest version, even if there is one here.
    Newest,
}

/// A model that is in the cache, whole.
#[derive(Debug)]
pub struct Snapshot {
    /// Its folder.
    pub folder: PathBuf,
    /// Which version of it.
    pub commit: String,
}

/// The model of an id.
pub fn find(id: &str, hub: &Hub, fetch: Fetch) -> Result<Snapshot> {
    let revision = hub.revision();
    name::check_revision(revision)?;
    let settings = Settings::of_environment()?;
    let repository = Repository::new(&settings.cache, id);
    let known = repository.commit(revision);
    let here = known.as_ref().map_or(Here::Lacking, |commit| repository.look(commit));
    let snapshot = |commit: Commit| Snapshot {
        folder: repository.snapshot(&commit),
        commit: commit.as_str().to_string(),
    };
    match (known, here, fetch) {
        (Some(commit), Here::Whole, Fetch::Never | Fetch::Missing)
        | (Some(commit), Here::Enough, Fetch::Never) => Ok(snapshot(commit)),
        (_, _, Fetch::Never) => Err(anyhow!(not_here(id, revision, &settings))),
        (known, here, _) => {
            let pinned = known.clone().filter(|_| fetch == Fetch::Missing);
            let remote = Remote::new(&settings, &repository);
            let failure = match fill(&repository, &remote, (revision, pinned.as_ref())) {
                Ok(commit) => return Ok(snapshot(commit)),
                Err(failure) => failure,
            };
            let told = failure.tell(id, revision, &settings);
            match (failure, here, pinned) {
                // Somebody changed a file: nothing from there is to be trusted.
                (Failure::Changed(_), ..) => Err(anyhow!(told)),
                // What was here will do, if nobody says what else there may be.
                (failure, Here::Enough, Some(commit)) => {
                    remote.forget();
                    if !matches!(failure, Failure::Unreachable(_)) {
                        // A closed standard error is no reason to stop.
                        let _ = writeln!(
                            std::io::stderr(),
                            "regard: warning: {told}. What is in the cache is used"
                        );
                    }
                    Ok(snapshot(commit))
                }
                _ => Err(anyhow!(told)),
            }
        }
    }
}

/// Downloads what a commit lacks: the one that is known, or the one that the revision now is.
fn fill(
    repository: &Repository,
    remote: &Remote,
    (revision, pinned): (&str, Option<&Commit>),
) -> Result<Commit, Failure> {
    let commit = match pinned {
        Some(commit) => commit.clone(),
        None => remote.commit(revision)?,
    };
    let lack = needs::gather(&mut |file| remote.file(&commit, file))?;
    match lack {
        None => {}
        Some(Lack::Config) => return Err(Failure::Absent),
        Some(lack) => return Err(Failure::Other(lack.to_string())),
    }
    repository.name(revision, &commit).map_err(Failure::Other)?;
    Ok(commit)
}

fn not_here(id: &str, revision: &str, settings: &Settings) -> String {
    format!(
        "{id}: not whole on this machine at revision {revision:?} (looked in {}), and nothing is \
         to be downloaded (--offline or HF_HUB_OFFLINE). Run it once with a network: \
         `regard models {id} --fetch`; or set HF_HOME to a folder that has it",
        settings.cache.display()
    )
}
