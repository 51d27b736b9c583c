//! Data sets that recipes and tests use: description, authors, licence, source, and the local
//! directory. None is bundled.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::say;
use regard_models::{Error, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Meaning of a checksum mismatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// The published files do not change: a different checksum means a different file.
    Exact,
    /// The published files change, or the checksums are of a part or of a converted copy: a
    /// mismatch is not an error, but results are not comparable to the last digit.
    Informative,
}

/// A data set.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Set {
    /// Name of the set and of its directory.
    pub name: &'static str,
    /// Short description.
    pub what: &'static str,
    /// Licence or terms of use.
    pub licence: &'static str,
    /// Authors to credit.
    pub attribution: &'static str,
    /// URLs where it is published.
    pub sources: &'static [&'static str],
    /// Files to put in its directory, described for a person.
    pub place: &'static str,
    /// Meaning of a checksum mismatch for this set.
    #[serde(skip)]
    pub checksums: Checksums,
}

/// A file of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KnownFile {
    /// Path relative to the directory of the set.
    pub path: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub sha256: &'static str,
}

/// A folder of many files, which are counted and not hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFolder {
    /// Path relative to the directory of the set.
    pub path: &'static str,
    /// Number of files in it.
    pub files: usize,
}

/// Folders of many files, with the name of their set.
const FOLDERS: &[(&str, KnownFolder)] =
    &[("fsdd", KnownFolder { path: "recordings", files: 3000 })];

/// Result of comparing a file with the known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetState {
    /// Size and checksum match.
    Same,
    /// Size or checksum differs.
    Differs,
    /// The file does not exist.
    Missing,
}

pub use super::catalogue::SETS;

/// The environment variable that names the directory of data sets.
pub const VARIABLE: &str = "REGARD_DATA";

/// Returns the set with this name.
pub fn set(name: &str) -> Result<&'static Set> {
    SETS.iter().find(|set| set.name == name).ok_or_else(|| {
        let names: Vec<_> = SETS.iter().map(|set| set.name).collect();
        Error::invalid(format!(
            "no data set is called {:?}; {}`regard data` lists all {}",
            say::short(name, 100),
            say::did_you_mean(name, &names),
            names.len()
        ))
    })
}

/// Returns the directory of a set: in `$REGARD_DATA`, in `./data`, or in the user's data directory.
/// The error says what to download, from where, where to put it and under which licence.
pub fn find(name: &str) -> Result<PathBuf> {
    set(name)?.find_in(&roots())
}

/// Returns the directories that [`find`] searches.
pub fn roots() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = variable(VARIABLE).map(PathBuf::from).into_iter().collect();
    roots.push(PathBuf::from("data"));
    roots.extend(users());
    roots
}

/// Returns the download directory: `$REGARD_DATA`, or the user's data directory.
pub fn home() -> PathBuf {
    let asked = variable(VARIABLE).map(PathBuf::from);
    asked.or_else(users).unwrap_or_else(|| PathBuf::from("data"))
}

fn users() -> Option<PathBuf> {
    let user = variable("XDG_DATA_HOME").or_else(|| variable("LOCALAPPDATA")).map(PathBuf::from);
    let user = user.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/share")));
    user.map(|user| user.join("regard").join("data"))
}

fn variable(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

impl Set {
    /// Iterates over the known files; of a set with thousands of files, not all are listed.
    pub fn files(&self) -> impl Iterator<Item = KnownFile> + '_ {
        include_str!("files.txt").lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let mut parts = line.splitn(3, ' ');
            let (sha256, bytes, path) = (parts.next()?, parts.next()?, parts.next()?);
            let path = path.strip_prefix(self.name)?.strip_prefix('/')?;
            Some(KnownFile { path, bytes: bytes.parse().ok()?, sha256 })
        })
    }

    /// Returns the directory of the set below one of the roots.
    pub fn find_in(&self, roots: &[PathBuf]) -> Result<PathBuf> {
        let directories = roots.iter().map(|root| root.join(self.name));
        match directories.into_iter().find(|directory| directory.is_dir()) {
            Some(directory) => Ok(directory),
            None => Err(Error::invalid(self.how_to_get(roots))),
        }
    }

    /// Describes what to download, from where, where to put it and under which licence.
    pub fn how_to_get(&self, roots: &[PathBuf]) -> String {
        let mut text = format!("the data set {} is not on this machine.\n", self.name);
        let _ = writeln!(text, "  what:    {}", self.what);
        let _ = writeln!(text, "  licence: {} ({})", self.licence, self.attribution);
        for source in self.sources {
            let _ = writeln!(text, "  from:    {source}");
        }
        let _ = writeln!(text, "  put:     {}", self.place);
        let first = roots.first().cloned().unwrap_or_default();
        let _ = writeln!(text, "  into:    {}", first.join(self.name).display());
        for root in roots.iter().skip(1) {
            let _ = writeln!(text, "  or:      {}", root.join(self.name).display());
        }
        text += "Without a network, copy the directory from a machine that has one, and set \
                 REGARD_DATA to its parent directory.";
        text
    }

    /// Compares the files in a directory with the known ones.
    ///
    /// # Errors
    /// If an existing file cannot be read.
    pub fn verify(&self, directory: &Path) -> Result<Vec<(KnownFile, SetState)>> {
        self.files().map(|file| Ok((file, file.state(&directory.join(file.path))?))).collect()
    }

    /// Returns its folders of many files, and the number of files each has in `directory`.
    pub fn count(&self, directory: Option<&Path>) -> Vec<(KnownFolder, usize)> {
        let own = FOLDERS.iter().filter(|(name, _)| *name == self.name);
        let files = |folder: &KnownFolder| {
            let entries = fs::read_dir(directory?.join(folder.path)).ok()?;
            Some(entries.flatten().filter(|entry| entry.path().is_file()).count())
        };
        own.map(|(_, folder)| (*folder, files(folder).unwrap_or(0))).collect()
    }
}

impl KnownFile {
    /// Compares a file with the known one.
    pub fn state(&self, path: &Path) -> Result<SetState> {
        Ok(match fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => SetState::Missing,
            Err(e) => return Err(Error::io(path)(e)),
            Ok(found) if found.len() != self.bytes => SetState::Differs,
            Ok(_) if sha256(path)? != self.sha256 => SetState::Differs,
            Ok(_) => SetState::Same,
        })
    }
}

/// The SHA-256 of a file's bytes, in hexadecimal digits.
pub(crate) fn sha256(path: &Path) -> Result<String> {
    let mut file = fs::File::open(path).map_err(Error::io(path))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = std::io::Read::read(&mut file, &mut buffer).map_err(Error::io(path))?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
    }
    Ok(hex(&digest.finalize()))
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_complete_and_every_file_has_its_set() {
        let mut known = 0;
        for set in SETS {
            assert!(!set.sources.is_empty() && set.sources.iter().all(|s| s.starts_with("http")));
            for text in [set.what, set.licence, set.attribution, set.place] {
                assert!(!text.is_empty(), "{}", set.name);
            }
            let files: Vec<_> = set.files().collect();
            assert!(!files.is_empty(), "{} has no files", set.name);
            for file in &files {
                assert!(file.sha256.len() == 64 && file.bytes > 0, "{file:?}");
            }
            known += files.len();
        }
        let lines = include_str!("files.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(known, lines.count(), "a line of files.txt belongs to no set");
        let mut names: Vec<_> = SETS.iter().map(|set| set.name).collect();
        names.dedup();
        assert!(names.is_sorted() && names.len() == SETS.len(), "sorted, and each name once");
    }

    #[test]
    fn a_set_that_is_missing_says_all_that_is_needed() {
        let roots = [PathBuf::from("/nowhere/one"), PathBuf::from("/nowhere/two")];
        let message = set("multi30k").unwrap().find_in(&roots).unwrap_err().to_string();
        for needed in ["github.com/multi30k", "research", "/nowhere/one/multi30k", "REGARD_DATA"] {
            assert!(message.contains(needed), "{needed} is not in {message}");
        }
        assert!(set("multi31k").unwrap_err().to_string().contains("multi30k"));
    }

    #[test]
    fn a_file_is_same_or_different_or_missing() {
        let root = env::temp_dir().join(format!("regard-sets-{}", std::process::id()));
        let directory = root.join("squad");
        fs::create_dir_all(&directory).unwrap();
        assert_eq!(set("squad").unwrap().find_in(std::slice::from_ref(&root)).unwrap(), directory);
        // The hash of "abc" is an example of the standard, FIPS 180-2.
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let known = KnownFile { path: "abc", bytes: 3, sha256 };
        let path = directory.join(known.path);
        assert_eq!(known.state(&path).unwrap(), SetState::Missing);
        for (text, state) in
            [("abc", SetState::Same), ("abd", SetState::Differs), ("abcd", SetState::Differs)]
        {
            fs::write(&path, text).unwrap();
            assert_eq!(known.state(&path).unwrap(), state, "{text}");
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_is_on_this_machine_is_what_is_known() {
        let Some(root) = env::var_os(VARIABLE).map(PathBuf::from) else {
            return regard_fuzz::skip(&format!("{VARIABLE} is not set"));
        };
        for set in SETS {
            let Ok(directory) = set.find_in(std::slice::from_ref(&root)) else { continue };
            for (file, state) in set.verify(&directory).unwrap() {
                let fine = state == SetState::Same || set.checksums == Checksums::Informative;
                assert!(fine, "{}/{}: {state:?}", set.name, file.path);
            }
        }
    }
}
