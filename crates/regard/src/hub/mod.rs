//! Models of the Hugging Face Hub, in the cache of Python's `huggingface_hub`.
//!
//! A cached model is loaded without a request. Missing files are downloaded, all from one commit,
//! and the branch is recorded only when all files are there. So an interrupted download is never
//! taken for a complete model, and is continued. Without the feature `hub` only the cache is used.
#![cfg_attr(not(feature = "hub"), allow(dead_code))]

#[cfg(feature = "hub")]
mod ask;
mod cache;
#[cfg(feature = "hub")]
mod download;
#[cfg(not(feature = "hub"))]
#[path = "no_download.rs"]
mod download;
mod failure;
mod name;
mod needs;
mod origin;
mod settings;
mod words;

pub use name::check;

use anyhow::{Result, anyhow, bail};
use cache::{Here, Repository};
use clap::{Args, ValueEnum};
use download::Remote;
use failure::HubFailure;
use needs::Lack;
pub use needs::small_files;
use regard_kernels::quant::Bits;
use settings::Settings;
use std::io::Write;
use std::path::PathBuf;
use words::Commit;

/// Whether a name without an owner is a model of the Hub: one of its first years, or one that was
/// downloaded before.
pub fn is_id_alone(id: &str) -> bool {
    let is_cached = || {
        let settings = Settings::of_environment().ok()?;
        Repository::new(&settings.cache, id).commit("main")
    };
    name::is_without_owner(id) || is_cached().is_some()
}

/// Heading of these flags in `--help`.
const HEADING: &str = "Models of the Hugging Face Hub";

/// Flags for models of the Hub.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct Hub {
    /// Branch, tag or commit of a Hub model [default: main]
    #[arg(long, value_name = "NAME")]
    pub revision: Option<String>,
    /// Do not download: use only the cache [default: HF_HUB_OFFLINE]
    #[arg(long)]
    pub offline: bool,
    /// Quantise the weights of the model while it is loaded [default: as its files are]
    #[arg(long, value_name = "TYPE", help_heading = "Weights")]
    pub storage: Option<Storage>,
    /// Add a LoRA adapter to the weights of the model: a folder as PEFT writes it, or a run that
    /// trained one
    #[arg(long, value_name = "FOLDER", help_heading = "Weights")]
    pub adapter: Option<PathBuf>,
}

/// Type in which weight matrices are kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Storage {
    /// 16 bits (bfloat16), for the activations too
    Bf16,
    /// 8 bits, a scale for each output
    Int8,
    /// 8 bits, a scale for each 32 inputs, as Q8_0 of GGUF
    Int8Groups,
    /// 4 bits, a scale for each 32 inputs; embeddings in 8 bits
    Int4,
}

impl Storage {
    /// Number of bits of a weight.
    pub fn bits(self) -> Bits {
        match self {
            Storage::Bf16 => Bits::Bf16,
            Storage::Int8 => Bits::Int8,
            Storage::Int8Groups => Bits::Int8Groups,
            Storage::Int4 => Bits::Int4,
        }
    }
}

impl Hub {
    /// Number of bits to which weights are quantised on load, if any.
    pub fn bits(&self) -> Option<Bits> {
        self.storage.map(Storage::bits)
    }

    /// Refuses `--storage` and `--adapter` where no weights are loaded to compute with; `instead`
    /// says what to do.
    ///
    /// # Errors
    /// If one was given.
    pub fn refuse_weight_flags(&self, instead: &str) -> Result<()> {
        if self.adapter.is_some() {
            bail!("--adapter: the files of a model are listed as they are; leave it out");
        }
        match self.bits() {
            Some(bits) => bail!("--storage {}: {instead}", bits.name()),
            None => Ok(()),
        }
    }

    /// Requested revision; `main` by default.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    /// Download policy for models that are not cached.
    pub fn fetch(&self) -> Fetch {
        match self.offline || settings::is_offline() {
            true => Fetch::Never,
            false => Fetch::Missing,
        }
    }
}

/// Download policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Use only the cache.
    Never,
    /// Download what is not in the cache.
    Missing,
    /// Download the newest version, even if another one is cached.
    Newest,
}

/// A complete model in the cache.
#[derive(Debug)]
pub struct Snapshot {
    /// Folder of the commit.
    pub folder: PathBuf,
    /// Commit hash.
    pub commit: String,
}

/// Finds a model by its id, and downloads it if `fetch` allows it.
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
            let failure = match fill(&repository, &remote, revision, pinned.as_ref()) {
                Ok(commit) => return Ok(snapshot(commit)),
                Err(failure) => failure,
            };
            let told = failure.tell(id, revision, &settings);
            match (failure, here, pinned) {
                // A wrong checksum: the server is not trusted.
                (HubFailure::Changed(_), ..) => Err(anyhow!(told)),
                // The cached files are enough to load the model.
                (failure, Here::Enough, Some(commit)) => {
                    remote.forget();
                    if !matches!(failure, HubFailure::Unreachable(_)) {
                        // Write errors of a closed standard error are ignored.
                        let _ = writeln!(
                            std::io::stderr(),
                            "regard: warning: {told}. Using the cached files"
                        );
                    }
                    Ok(snapshot(commit))
                }
                _ => Err(anyhow!(told)),
            }
        }
    }
}

/// Downloads the missing files of the pinned commit, or of the revision's current commit.
fn fill(
    repository: &Repository,
    remote: &Remote,
    revision: &str,
    pinned: Option<&Commit>,
) -> Result<Commit, HubFailure> {
    let commit = match pinned {
        Some(commit) => commit.clone(),
        None => remote.commit(revision)?,
    };
    let lack = needs::gather(&mut |file| remote.file(&commit, file))?;
    match lack {
        None => {}
        Some(Lack::Config) => return Err(HubFailure::Absent),
        Some(lack) => return Err(HubFailure::Other(lack.to_string())),
    }
    repository.name(revision, &commit).map_err(HubFailure::Other)?;
    Ok(commit)
}

fn not_here(id: &str, revision: &str, settings: &Settings) -> String {
    format!(
        "{id}: not complete on this machine at revision {revision:?} (searched {}), and downloads \
         are disabled (--offline or HF_HUB_OFFLINE). Download it once with a network: \
         `regard models {id} --fetch`; or set HF_HOME to a folder that has it",
        settings.cache.display()
    )
}
