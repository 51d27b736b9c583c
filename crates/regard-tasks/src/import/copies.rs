//! Copies of the user's data in the folder of a run, found wherever the run is.
//!
//! The recipe of a run names its data by a path that was relative to the working directory when it
//! began. After the run was moved, or in another directory, that path leads nowhere, or to the data
//! of another run.

use super::record::ImportRecord;
use crate::recipe::Table;
use regard_models::Result;
use std::path::{Path, PathBuf};
use toml::Value;

/// Copies of the data of a run.
pub(crate) struct Copies {
    /// Folder to which they were written, as the recipe has it.
    then: PathBuf,
    /// The folder in which they are.
    now: PathBuf,
}

impl Copies {
    /// Finds the copies of a run. `None` if the run reads other files.
    ///
    /// # Errors
    /// If the record of the import is damaged: the paths of the recipe may lead to the data of
    /// another run.
    pub fn of(run: &Path) -> Result<Option<Copies>> {
        let found = ImportRecord::of_run(run)?;
        let found = found.filter(|(_, record)| !record.folder.as_os_str().is_empty());
        Ok(found.map(|(now, record)| Copies { then: record.folder, now }))
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
///
/// # Errors
/// Those of [`Copies::of`].
pub(crate) fn set_places(recipe: &mut Table, run: &Path) -> Result<()> {
    if let Some(Value::Table(data)) = recipe.get_mut("data")
        && let Some(copies) = Copies::of(run)?
    {
        data.iter_mut().for_each(|(_, value)| copies.set(value));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::RECORD;
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
            set_places(&mut table, &run).unwrap();
            let at = |name: &str| home.join("moved/data").join(name).display().to_string();
            let data = &table["data"];
            assert_eq!(data["train"].as_str(), Some(&at("train.tsv")[..]));
            assert_eq!(data["folder"].as_str(), home.join("moved/data").to_str());
            assert_eq!(data["test"].as_str(), Some("runs/xy/data/a"), "another file");
            assert_eq!(data["files"][0].as_str(), Some(&at("b")[..]));
            assert_eq!(data["set"].as_str(), Some("files"));
        }
        assert!(Copies::of(&run.join("other")).unwrap().is_none());
        // Without its record, a run could read the data of another.
        std::fs::write(run.join("data").join(RECORD), "{\"folder\": ").unwrap();
        let error = set_places(&mut recipe.parse().unwrap(), &run).unwrap_err().to_string();
        assert!(error.contains("import.json: is damaged"), "{error}");
        std::fs::remove_dir_all(&home).unwrap();
    }
}
