//! Files of the user that are read as one part, to evaluate or measure a model on them.

use super::say::say;
use anyhow::{Context, Result, bail};
use regard_tasks::import::{self, Import, Request, Severity};
use regard_tasks::say::many;
use std::path::{Path, PathBuf};

/// Reads and checks the files of a request, and says what was read. `done` is what is done with the
/// examples, such as "evaluated".
///
/// # Errors
/// If a problem was found, or there is no example.
pub fn read(request: &Request, done: &str) -> Result<Import> {
    let (import, findings) = import::read(request).context("--data")?;
    if let Some(import) = &import {
        import.summary.iter().for_each(say);
    }
    let told = findings.text();
    if !told.is_empty() {
        say(told.trim_end());
    }
    if !findings.has_errors() && import.as_ref().is_none_or(|import| import.parts[2] == 0) {
        let files: Vec<String> =
            request.data.iter().map(|path| path.display().to_string()).collect();
        bail!("--data {}: no example is left to be {done}", files.join(", "));
    }
    let Some(import) = import else {
        let mut errors = findings.list().iter().filter(|each| each.severity == Severity::Error);
        let skip = match errors.all(|each| each.is_row) {
            true => "; --skip-bad leaves such rows out",
            false => "",
        };
        let count = many(findings.count(Severity::Error), "problem");
        bail!("{count} in the data, nothing was {done}{skip}");
    };
    Ok(import)
}

/// A folder that is removed at the end.
pub struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Makes a folder that only the user can read.
    pub fn new() -> Result<ScratchFolder> {
        let mut builder = std::fs::DirBuilder::new();
        // The examples are the user's.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let place = std::env::temp_dir();
        for number in 0..1000 {
            let folder = place.join(format!("regard-{}-{number}", std::process::id()));
            match builder.create(&folder) {
                Ok(()) => return Ok(ScratchFolder(folder)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| folder.display().to_string()),
            }
        }
        bail!("{}: holds too many folders regard-…; remove them", place.display())
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
