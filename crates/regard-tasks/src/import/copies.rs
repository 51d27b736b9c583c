//! Copies of the user's data in the folder of a run, found wherever the run is.
//!
//! The recipe of a run names its data by a path that was relative to the working directory when it
//! began. After the run was moved, or in another directory, that path leads nowhere, or to the data
//! of another run.

use super::RECORD;
use crate::recipe::Table;
use regard_models::checkpoint::read_text;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::Value;

/// Folder of a run that holds its data.
pub const DATA: &str = "data";

/// Copies of the data of a run.
pub(crate) struct Copies {
    /// Folder to which they were written, as the recipe has it.
    then: PathBuf,
    /// The folder in which they are.
    now: PathBuf,
}

/// The part of [`RECORD`] that is read here.
#[derive(Deserialize)]
struct Written {
    folder: PathBuf,
}

impl Copies {
    /// Finds the copies of a run; runs with several seeds have them in the folder above. `None` if
    /// the run reads other files.
    pub fn of(run: &Path) -> Option<Copies> {
        let name = run.file_name().unwrap_or_default().to_string_lossy();
        let above = run.parent().filter(|_| name.starts_with("seed-"));
        [Some(run), above].into_iter().flatten().find_map(|folder| {
            let now = folder.join(DATA);
            let text = read_text(&now.join(RECORD)).ok()?;
            let Written { folder: then } = serde_json::from_str(&text).ok()?;
            Some(Copies { then, now })
        })
    }

    /// Returns the place of a file: that of the copy, if it is one.
    pub fn place(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.then) {
            Ok(rest) if rest.as_os_str().is_empty() => self.now.clone(),
            Ok(rest) => self.now.join(rest),
            Err(_) => path.to_path_buf(),
        }
    }

    /// Sets the paths of a recipe's data.
    fn set(&self, value: &mut Value) {
        match value {
            Value::String(path) => {
                *path = self.place(Path::new(path)).to_string_lossy().into_owned();
            }
            Value::Array(all) => all.iter_mut().for_each(|each| self.set(each)),
            _ => {}
        }
    }
}

/// Sets the data of a run's recipe to the copies in the run's folder.
pub(crate) fn set_places(recipe: &mut Table, run: &Path) {
    if let (Some(Value::Table(data)), Some(copies)) = (recipe.get_mut("data"), Copies::of(run)) {
        data.iter_mut().for_each(|(_, value)| copies.set(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_moved_reads_its_own_data() {
        let home = std::env::temp_dir().join(format!("regard-copies-{}", std::process::id()));
        let (run, text) = (home.join("moved"), "{\"folder\": \"runs/x/data\", \"task\": \"tag\"}");
        std::fs::create_dir_all(run.join("data")).unwrap();
        std::fs::write(run.join("data").join(RECORD), text).unwrap();
        let recipe = "[data]\nset = 'files'\ntrain = 'runs/x/data/train.tsv'\nfolder = \
                      'runs/x/data'\ntest = 'runs/xy/data/a'\nfiles = ['runs/x/data/b']";
        for run in [run.clone(), run.join("seed-3")] {
            let mut table: Table = recipe.parse().unwrap();
            set_places(&mut table, &run);
            let at = |name: &str| home.join("moved/data").join(name).display().to_string();
            let data = &table["data"];
            assert_eq!(data["train"].as_str(), Some(&at("train.tsv")[..]));
            assert_eq!(data["folder"].as_str(), home.join("moved/data").to_str());
            assert_eq!(data["test"].as_str(), Some("runs/xy/data/a"), "another file");
            assert_eq!(data["files"][0].as_str(), Some(&at("b")[..]));
            assert_eq!(data["set"].as_str(), Some("files"));
        }
        assert!(Copies::of(&run.join("model")).is_none());
        std::fs::remove_dir_all(&home).unwrap();
    }
}
