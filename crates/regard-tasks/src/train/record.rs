//! `recipe.toml` and `run.json`: recipe and data of a run, so that it is resumed with the same.
//!
//! `recipe.toml` is written once, before the first step. `run.json` holds the hashes of the data
//! files, and the settings that were changed when the run was resumed.

use super::state::checkpoints;
use crate::data::ledger::{self, DataFile};
use crate::data::sets::{hex, sha256};
use crate::import::copies::{Copies, set_places};
use crate::recipe::{Prepared, Table, Task, rename};
use crate::say;
use regard_models::checkpoint::{read_text, write_file};
use regard_models::{Error, Result, memory};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use toml::Value;

/// Name of the recipe file in a run's folder.
pub const RECIPE: &str = "recipe.toml";
pub(super) const RUN: &str = "run.json";
/// Format version of the files in a run's folder.
const FORMAT: u32 = 1;

/// Settings that may differ when a run is resumed: none affects steps already taken.
const MAY_CHANGE: [&str; 7] = [
    "train.steps",
    "train.log_every",
    "train.eval_every",
    "train.save_every",
    "train.keep",
    "train.patience",
    "train.average",
];
/// Keys that only describe a recipe and have no effect.
const DESCRIBE: [&str; 2] = ["about", "result"];
/// Maximum number of differences that a message lists.
const LISTED: usize = 6;

/// Recipe and data files of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The recipe with all defaults.
    pub recipe: Table,
    /// Data files that were read, with their hashes.
    pub files: Vec<DataFile>,
}

/// A setting that differs from the one the run was started with.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingDifference {
    /// Dotted key in the recipe.
    pub key: String,
    /// Value in the run; `None` if it is not set.
    pub then: Option<Value>,
    /// Value now; `None` if it is not set.
    pub now: Option<Value>,
}

impl fmt::Display for SettingDifference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let show = |value: &Option<Value>| match value {
            Some(value) => say::short(&value.to_string(), 60),
            None => "nothing".to_string(),
        };
        write!(f, "{}: the run has {}, not {}", self.key, show(&self.then), show(&self.now))
    }
}

impl SettingDifference {
    /// Whether a run may be resumed with this difference.
    pub fn is_allowed(&self) -> bool {
        match (self.key.as_str(), &self.then, &self.now) {
            // Fewer steps would cut off a schedule that was planned for more.
            ("train.steps", Some(Value::Integer(then)), Some(Value::Integer(now))) => now > then,
            (key, ..) => MAY_CHANGE.contains(&key),
        }
    }
}

/// Returns the settings in which two recipes differ.
pub fn differences(then: &Table, now: &Table) -> Vec<SettingDifference> {
    let (mut found, mut prefix) = (vec![], String::new());
    compare(&mut prefix, then, now, &mut found);
    // Top-level keys come before those of sections.
    found.sort_by_key(|difference| difference.key.contains('.'));
    found.retain(|difference| !DESCRIBE.contains(&difference.key.split('.').next().unwrap_or("")));
    found
}

fn compare(prefix: &mut String, then: &Table, now: &Table, found: &mut Vec<SettingDifference>) {
    let new = now.keys().filter(|key| !then.contains_key(*key));
    for key in then.keys().chain(new) {
        let length = prefix.len();
        prefix.push_str(key);
        match (then.get(key), now.get(key)) {
            (Some(Value::Table(then)), Some(Value::Table(now))) => {
                prefix.push('.');
                compare(prefix, then, now, found);
            }
            (then, now) if then != now => {
                let (then, now) = (then.cloned(), now.cloned());
                found.push(SettingDifference { key: prefix.clone(), then, now });
            }
            _ => {}
        }
        prefix.truncate(length);
    }
}

/// Builds the error that lists settings of a run which cannot change.
pub fn refuse<'a>(run: &Path, all: impl IntoIterator<Item = &'a SettingDifference>) -> Error {
    let all: Vec<String> = all.into_iter().map(ToString::to_string).collect();
    let more = all.len().saturating_sub(LISTED);
    let listed = all.iter().take(LISTED).fold(String::new(), |text, each| text + "\n  " + each);
    let more = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
    let message = format!("the run was started with other settings:{listed}{more}");
    Error::file(run, message)
}

/// Reads a recipe's data and creates its model; also returns a record of the files read.
///
/// `memory` is the limit of the parameters' size in bytes; `None` for the memory of the machine.
pub fn prepare(recipe: &dyn Task, memory: Option<u64>) -> Result<(Prepared, Record)> {
    let memory = memory.or_else(memory::of_machine);
    let work = || memory::within(memory, || recipe.prepare());
    let (prepared, files) = ledger::record(work)?;
    Ok((prepared, Record { recipe: table(recipe), files }))
}

/// Returns a recipe with all defaults, as a run records it.
pub fn table(recipe: &dyn Task) -> Table {
    recipe.to_toml().parse().expect("a recipe writes TOML")
}

/// Contents of `run.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Notes {
    format: u32,
    /// Version of the program that started the run.
    version: String,
    files: Vec<DataFile>,
    /// SHA-256 of `recipe.toml`: an edited recipe would not be that of the steps already taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recipe: Option<String>,
    #[serde(default)]
    changes: Vec<Change>,
}

/// A setting that was changed when the run was resumed.
#[derive(Debug, Serialize, Deserialize)]
struct Change {
    step: u64,
    key: String,
    from: Option<Value>,
    to: Option<Value>,
}

/// Whether this folder holds a run. The recipe is written first, so a killed run may have nothing
/// else.
pub fn is_run(run: &Path) -> bool {
    run.join(RECIPE).exists()
}

/// Returns the recipe of a run, with the settings changed since it was started.
pub fn recorded(run: &Path) -> Result<Table> {
    let path = run.join(RECIPE);
    let text = read_text(&path)?;
    let mut recipe: Table = text
        .parse()
        .map_err(|e: toml::de::Error| Error::file(&path, format!("not TOML: {}", e.message())))?;
    // Tasks that have been renamed since get their current name.
    rename(&mut recipe);
    set_places(&mut recipe, run)?;
    let changes = match run.join(RUN).exists() || !checkpoints(run).is_empty() {
        true => {
            let notes = notes(run)?;
            if notes.recipe.is_some_and(|hash| hash != hex(&Sha256::digest(text.as_bytes()))) {
                let message = "was changed after the run began. A run cannot change its recipe: \
                               restore it, or start a new run; train.steps and a few others can \
                               be changed with --set";
                return Err(Error::file(&path, message));
            }
            notes.changes
        }
        false => vec![],
    };
    for change in changes {
        let (table, key) = change.key.rsplit_once('.').unwrap_or(("", &change.key));
        let inside = table.split('.').filter(|part| !part.is_empty()).try_fold(
            &mut recipe,
            |inside, part| match inside.get_mut(part) {
                Some(Value::Table(table)) => Ok(table),
                _ => {
                    Err(Error::file(run.join(RUN), format!("changes {}: no such key", change.key)))
                }
            },
        )?;
        match change.to {
            Some(value) => inside.insert(key.to_string(), value),
            None => inside.remove(key),
        };
    }
    Ok(recipe)
}

fn notes(run: &Path) -> Result<Notes> {
    let path = run.join(RUN);
    let text = match read_text(&path) {
        Ok(text) => text,
        Err(_) if !path.exists() => {
            return Err(Error::file(
                run,
                format!(
                    "has no {RUN}: an older version of the program started this run without \
                     checksums. Its model can be used; to train, start again in another folder"
                ),
            ));
        }
        Err(e) => return Err(e),
    };
    let notes: Notes =
        serde_json::from_str(&text).map_err(|e| Error::file(&path, e.to_string()))?;
    match notes.format {
        FORMAT => Ok(notes),
        other => Err(Error::file(
            &path,
            format!("format: got {other}, need {FORMAT}: another version of the program wrote it"),
        )),
    }
}

/// Returns the data files that a run read, with their hashes; empty if it has not recorded them.
pub(super) fn data_files(run: &Path) -> Result<Vec<DataFile>> {
    if !run.join(RUN).exists() {
        return Ok(vec![]);
    }
    let mut files = notes(run)?.files;
    if let Some(copies) = Copies::of(run)? {
        files.iter_mut().for_each(|file| file.path = copies.place(&file.path));
    }
    Ok(files)
}

fn write_notes(run: &Path, notes: &Notes) -> Result<()> {
    let text = serde_json::to_string_pretty(notes).expect("it is plain data");
    write_file(&run.join(RUN), (text + "\n").as_bytes())
}

/// Writes `recipe.toml` and `run.json` of a new run.
pub(super) fn begin(run: &Path, record: &Record) -> Result<()> {
    let recipe = toml::to_string_pretty(&record.recipe).expect("a table is TOML");
    write_file(&run.join(RECIPE), recipe.as_bytes())?;
    let version = env!("CARGO_PKG_VERSION").to_string();
    let (files, hash) = (record.files.clone(), hex(&Sha256::digest(recipe.as_bytes())));
    let recipe = Some(hash);
    write_notes(run, &Notes { format: FORMAT, version, files, recipe, changes: vec![] })
}

/// Compares a run with the recipe and data it is resumed with. Returns the allowed differences.
pub(super) fn resume(run: &Path, record: &Record) -> Result<Vec<SettingDifference>> {
    if !run.join(RUN).exists() && checkpoints(run).is_empty() {
        // The run was killed before `run.json` was written.
        begin(run, record)?;
    }
    let found = differences(&recorded(run)?, &record.recipe);
    if found.iter().any(|difference| !difference.is_allowed()) {
        return Err(refuse(run, found.iter().filter(|difference| !difference.is_allowed())));
    }
    same_files(&notes(run)?.files, &record.files)?;
    Ok(found)
}

/// Records settings that change from this step on.
pub(super) fn change(run: &Path, step: u64, changed: &[SettingDifference]) -> Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let mut notes = notes(run)?;
    notes.changes.extend(changed.iter().map(|difference| Change {
        step,
        key: difference.key.clone(),
        from: difference.then.clone(),
        to: difference.now.clone(),
    }));
    write_notes(run, &notes)
}

/// Lists the files among `read` that a run also read and that have changed since it was started.
/// The folder may be that of a run, of its model or of a checkpoint; otherwise the list is empty.
///
/// # Errors
/// If `run.json` is damaged.
pub fn changed_data(folder: &Path, read: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let run = [Some(folder), folder.parent()].into_iter().flatten().find(|run| is_run(run));
    let Some(run) = run.filter(|run| run.join(RUN).exists()) else { return Ok(vec![]) };
    let known = data_files(run)?.into_iter().filter(|file| read.contains(&file.path));
    Ok(known.filter(has_changed).map(|file| file.path).collect())
}

/// Whether a file has other contents than when it was read; false if it no longer exists.
fn has_changed(file: &DataFile) -> bool {
    let now = fs::metadata(&file.path).ok().filter(|now| now.is_file());
    now.is_some_and(|now| {
        now.len() != file.bytes || sha256(&file.path).ok().as_ref() != Some(&file.sha256)
    })
}

/// Checks that the data files of a run are those that it was trained on.
///
/// # Errors
/// If one has changed, or `run.json` is damaged.
pub fn check_data(run: &Path) -> Result<()> {
    match data_files(run)?.into_iter().find(has_changed) {
        None => Ok(()),
        Some(DataFile { path, .. }) => {
            let message = format!(
                "{} changed after the run was trained on it; restore it, or train in another folder",
                path.display()
            );
            Err(Error::file(run, message))
        }
    }
}

/// Compares files by content only: a data folder may have moved.
fn same_files(then: &[DataFile], now: &[DataFile]) -> Result<()> {
    for (then, now) in then.iter().zip(now) {
        if then.sha256 != now.sha256 {
            let place = match then.path == now.path {
                true => String::new(),
                false => format!(" (it was {})", then.path.display()),
            };
            return Err(Error::file(
                &now.path,
                format!(
                    "the run was started with other data: this file{place} had {} bytes, SHA-256 \
                     {}…, now {} bytes and {}…",
                    then.bytes,
                    &then.sha256[..12.min(then.sha256.len())],
                    now.bytes,
                    &now.sha256[..12.min(now.sha256.len())]
                ),
            ));
        }
    }
    if then.len() != now.len() {
        let longer = if then.len() > now.len() { then } else { now };
        let first = longer[then.len().min(now.len())].path.display();
        let change = if then.len() > now.len() { "no longer read" } else { "new" };
        return Err(Error::invalid(format!(
            "data: the run began with {} data files, now there are {}: {first} is {change}",
            then.len(),
            now.len(),
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_keys() {
        let table = |text: &str| text.parse::<Table>().unwrap();
        let then = table("seed = 1\nabout = 'x'\n[train]\nsteps = 4\nlr = 0.1\n[data]\nset = 'a'");
        let now = table("seed = 2\nabout = 'y'\n[train]\nsteps = 8\nlr = 0.1\n[data]\ntrain = 'b'");
        let found = differences(&then, &now);
        let mut keys: Vec<_> =
            found.iter().map(|each| (each.key.as_str(), each.is_allowed())).collect();
        keys.sort();
        let wanted =
            [("data.set", false), ("data.train", false), ("seed", false), ("train.steps", true)];
        assert_eq!(keys, wanted);
        assert!(!differences(&now, &then).iter().any(SettingDifference::is_allowed), "fewer steps");
        let said = refuse(Path::new("runs/x"), &found).to_string();
        assert!(said.contains("seed: the run has 1, not 2"), "{said}");
        assert!(said.contains("data.train: the run has nothing, not \"b\""), "{said}");
    }

    #[test]
    fn data_that_changed_after_training_are_found() {
        let run = std::env::temp_dir().join(format!("regard-changed-{}", std::process::id()));
        fs::create_dir_all(&run).unwrap();
        let path = run.join("train.csv");
        fs::write(&path, "one").unwrap();
        let file = DataFile { path: path.clone(), bytes: 3, sha256: sha256(&path).unwrap() };
        check_data(&run).unwrap();
        begin(&run, &Record { recipe: Table::new(), files: vec![file] }).unwrap();
        check_data(&run).unwrap();
        fs::write(&path, "two").unwrap();
        let error = check_data(&run).unwrap_err().to_string();
        assert!(error.contains("train.csv changed after the run was trained"), "{error}");
        fs::remove_dir_all(&run).unwrap();
    }

    #[test]
    fn files_are_known_by_their_contents() {
        let file = |path: &str, sha256: &str| DataFile {
            path: path.into(),
            bytes: 3,
            sha256: sha256.repeat(32),
        };
        let then = [file("a/x", "01"), file("a/y", "02")];
        same_files(&then, &[file("b/x", "01"), file("b/y", "02")]).unwrap();
        let error = same_files(&then, &[file("b/x", "01"), file("b/y", "03")]).unwrap_err();
        let error = error.to_string();
        for part in ["b/y", "it was a/y", "020202020202…", "030303030303…"] {
            assert!(error.contains(part), "{error}");
        }
        let error = same_files(&then, &then[..1]).unwrap_err().to_string();
        assert!(
            error.contains("a/y") && error.contains("2 data files, now there are 1"),
            "{error}"
        );
    }
}
