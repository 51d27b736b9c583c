//! Download of model files from the Hub.
//!
//! A download is written to a `.part` file, compared with the checksum of the Hub, and renamed at
//! the end. An interrupted download is continued.

use super::ask::{Client, Facts};
use super::cache::Repository;
use super::failure::HubFailure;
use super::settings::Settings;
use super::words::{Commit, Etag, FileName, Sum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regard_models::checkpoint;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Number of attempts if a connection breaks; received bytes are kept.
const ATTEMPTS: usize = 3;
/// Seconds to wait for another process that downloads the same file.
const WAIT: usize = 5;
/// Maximum size of a file without weights, in bytes.
const SMALL: u64 = 1 << 28;

/// A model on the Hub, with its cache.
pub struct Remote<'a> {
    client: Client<'a>,
    repository: &'a Repository,
    /// Files downloaded by this process.
    arrived: RefCell<Vec<PathBuf>>,
}

impl Remote<'_> {
    pub fn new<'a>(settings: &'a Settings, repository: &'a Repository) -> Remote<'a> {
        Remote { client: Client::new(settings), repository, arrived: RefCell::default() }
    }

    /// Removes the files downloaded so far from the commit's folder: the earlier files were enough
    /// to load the model, an incomplete set of further ones may not be. Linked contents stay.
    pub fn forget(&self) {
        self.arrived.take().iter().for_each(|path| _ = fs::remove_file(path));
    }

    /// Requests the current commit of a revision.
    pub fn commit(&self, revision: &str) -> Result<Commit, HubFailure> {
        let config = FileName::new(checkpoint::CONFIG).map_err(HubFailure::Other)?;
        let address = self.client.address(&self.repository.id, revision, &config);
        Ok(self.client.facts(&address)?.commit)
    }

    /// Path of a file of a commit, downloaded if it is not cached; None if there is no such file.
    pub fn file(&self, commit: &Commit, name: &str) -> Result<Option<PathBuf>, HubFailure> {
        let name = FileName::new(name).map_err(HubFailure::Other)?;
        if let Some(file) = self.repository.file(commit, &name) {
            return Ok(Some(file));
        }
        if self.repository.is_absent(commit, &name) {
            return Ok(None);
        }
        let mut attempt = 1;
        loop {
            match self.download(commit, &name) {
                Ok(path) => {
                    self.arrived.borrow_mut().push(path.clone());
                    return Ok(Some(path));
                }
                Err(HubFailure::Absent) => {
                    self.repository.note_absent(commit, &name);
                    return Ok(None);
                }
                Err(HubFailure::Broken(_)) if attempt < ATTEMPTS => attempt += 1,
                Err(other) => return Err(other),
            }
        }
    }

    fn download(&self, commit: &Commit, name: &FileName) -> Result<PathBuf, HubFailure> {
        let address = self.client.address(&self.repository.id, commit.as_str(), name);
        let facts = self.client.facts(&address)?;
        check_size(name, facts.size)?;
        let blob = self.repository.blob(&facts.etag);
        if !blob.is_file() {
            let folder = blob.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder).map_err(HubFailure::disk(folder))?;
            let _lock = lock(&blob.with_extension("lock"))?;
            // The process that held the lock may have downloaded it.
            if !blob.is_file() {
                let part = blob.with_extension("part");
                self.fetch(&address, name, &facts, &part)?;
                fs::rename(&part, &blob).map_err(HubFailure::disk(&blob))?;
            }
        }
        self.repository.link(commit, name, &facts.etag).map_err(HubFailure::disk(&blob))
    }

    /// Completes a partial download, and compares it with its checksum.
    fn fetch(
        &self,
        address: &str,
        name: &FileName,
        facts: &Facts,
        part: &Path,
    ) -> Result<(), HubFailure> {
        let mut here = part_size(part)?;
        // Too long, or complete with a wrong checksum: start again.
        if here > facts.size || (here > 0 && here == facts.size && !is_same(part, &facts.etag)?) {
            fs::remove_file(part).map_err(HubFailure::disk(part))?;
            here = 0;
        }
        if here < facts.size || here == 0 {
            self.append(address, name, facts.size, part, here)?;
        }
        if is_same(part, &facts.etag)? {
            return Ok(());
        }
        fs::remove_file(part).map_err(HubFailure::disk(part))?;
        let name = name.as_str();
        match here {
            0 => Err(HubFailure::Changed(format!(
                "{name}: the checksum of the download is not the etag {}. The file was removed; \
                 the server or a proxy changed it",
                facts.etag.as_str()
            ))),
            // The earlier part may have been wrong: start again.
            _ => Err(HubFailure::Broken(format!(
                "{name}: the partial download belonged to another version and was removed"
            ))),
        }
    }

    /// Downloads the rest of a file, of which `here` bytes exist.
    fn append(
        &self,
        address: &str,
        name: &FileName,
        size: u64,
        part: &Path,
        here: u64,
    ) -> Result<(), HubFailure> {
        let (begins, body) = self.client.contents(address, here)?;
        let mut file = OpenOptions::new().create(true).append(true).open(part);
        let file =
            file.as_mut().map_err(|e| HubFailure::Other(format!("{}: {e}", part.display())))?;
        file.set_len(begins).map_err(HubFailure::disk(part))?;
        let bar = progress(name.as_str(), size, begins);
        let (mut came, mut buffer) = (begins, vec![0; 1 << 16]);
        let mut reader = body.into_reader();
        loop {
            let read = reader.read(&mut buffer);
            let read = read.map_err(|e| HubFailure::stopped(&e, self.client.patience()))?;
            came += read as u64;
            if came > size {
                let _ = fs::remove_file(part);
                return Err(HubFailure::Other(format!(
                    "{}: got more than the announced {size} bytes",
                    name.as_str()
                )));
            }
            if read == 0 {
                break;
            }
            file.write_all(&buffer[..read]).map_err(HubFailure::disk(part))?;
            bar.inc(read as u64);
        }
        bar.finish_and_clear();
        if came < size {
            return Err(HubFailure::Broken(format!("got {came} of {size} bytes")));
        }
        file.sync_all().map_err(HubFailure::disk(part))
    }
}

/// Refuses implausible sizes before anything is written.
fn check_size(name: &FileName, size: u64) -> Result<(), HubFailure> {
    let name = name.as_str();
    let weights = name.ends_with(".safetensors") || name.ends_with(".bin");
    match weights || size <= SMALL {
        true => Ok(()),
        false => Err(HubFailure::Other(format!(
            "{name}: got {size} bytes, need at most {SMALL} for a file without weights"
        ))),
    }
}

/// Size of a partial download in bytes. Anything but a regular file is refused.
fn part_size(part: &Path) -> Result<u64, HubFailure> {
    match fs::symlink_metadata(part) {
        Ok(part) if part.is_file() => Ok(part.len()),
        Ok(_) => Err(HubFailure::Other(format!("{}: is not a file; remove it", part.display()))),
        Err(_) => Ok(0),
    }
}

/// Locks contents against downloads by other processes, until it is dropped.
fn lock(path: &Path) -> Result<File, HubFailure> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.map_err(HubFailure::disk(path))?;
    for _ in 0..WAIT {
        if file.try_lock().is_ok() {
            return Ok(file);
        }
        thread::sleep(Duration::from_secs(1));
    }
    file.try_lock().map(|()| file).map_err(|_| {
        HubFailure::Other(format!(
            "another process is downloading it (it holds {}); try again later",
            path.display()
        ))
    })
}

/// Whether contents have the checksum of an etag; true if the etag is not a checksum.
fn is_same(path: &Path, etag: &Etag) -> Result<bool, HubFailure> {
    let sum = match etag.sum() {
        Sum::Unknown => return Ok(true),
        Sum::Sha256 => {
            let mut sum = Sha256::new();
            read(path, |bytes| sum.update(bytes))?;
            sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
        }
        Sum::GitSha1 => {
            let mut sum = sha1_smol::Sha1::new();
            let size = fs::metadata(path).map_err(HubFailure::disk(path))?.len();
            sum.update(format!("blob {size}\0").as_bytes());
            read(path, |bytes| sum.update(bytes))?;
            sum.digest().to_string()
        }
    };
    let sum: String = sum;
    Ok(sum.eq_ignore_ascii_case(etag.as_str()))
}

fn read(path: &Path, mut each: impl FnMut(&[u8])) -> Result<(), HubFailure> {
    let mut file = File::open(path).map_err(HubFailure::disk(path))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(HubFailure::disk(path))? {
            0 => return Ok(()),
            read => each(&buffer[..read]),
        }
    }
}

/// Progress bar of one file; hidden unless standard error is a terminal.
fn progress(name: &str, size: u64, here: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(
        "{msg} {bar:24} {bytes}/{total_bytes} · {bytes_per_sec} · {eta} left",
    );
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(name.to_string());
    bar.inc(here);
    bar
}
