//! `data/import.json` of a run: where its data come from, and how they were read. This is its only
//! writer and its only reader, so that a damaged record is an error wherever it is needed.

use super::reading::Reading;
use regard_models::checkpoint::{read_text, write_file};
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Folder of a run that holds its data.
pub const DATA: &str = "data";
/// File beside written parts that says where they come from.
pub const RECORD: &str = "import.json";

/// Origin of imported data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ImportRecord {
    pub task: String,
    /// Folder that the parts were written to, as the recipe names it.
    pub folder: PathBuf,
    pub data: Vec<PathBuf>,
    pub valid: Vec<PathBuf>,
    pub test: Vec<PathBuf>,
    pub edges: Option<PathBuf>,
    pub seed: u64,
    pub parts: [usize; 3],
    pub summary: Vec<String>,
    /// Files or folders of the test part that was given, by a flag or by their names in a folder.
    pub held_out: Vec<PathBuf>,
    /// `None` in records of earlier versions.
    pub reading: Option<Reading>,
}

impl ImportRecord {
    /// Reads the record of a run and returns it with its folder; `None` if the run was not trained
    /// on imported data. The folder may also be that of the run's model, of a checkpoint, or of one
    /// of several runs with different seeds, which share their data.
    ///
    /// # Errors
    /// If the record is damaged.
    pub fn of_run(run: &Path) -> Result<Option<(PathBuf, ImportRecord)>> {
        let found = homes(run).map(|home| home.join(DATA)).find(|data| data.join(RECORD).exists());
        let Some(folder) = found else { return Ok(None) };
        let path = folder.join(RECORD);
        let record = serde_json::from_str(&read_text(&path)?).map_err(|error| {
            Error::file(
                &path,
                format!("is damaged, so how the files were read is unknown: {error}"),
            )
        })?;
        Ok(Some((folder, record)))
    }

    /// Writes the record to the folder of the parts.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("it is plain data");
        write_file(&folder.join(RECORD), (text + "\n").as_bytes())
    }
}

/// Folders that may hold the data of a run: its own and, for a part of a run, those above.
fn homes(run: &Path) -> impl Iterator<Item = &Path> {
    let is_inside = |folder: &&Path| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name == "model" || ["checkpoint-", "seed-"].iter().any(|begin| name.starts_with(begin))
    };
    std::iter::successors(Some(run), move |folder| {
        Some(*folder).filter(is_inside).and_then(Path::parent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_from_every_folder_of_a_run() {
        let home = std::env::temp_dir().join(format!("regard-record-{}", std::process::id()));
        let data = home.join("mine").join(DATA);
        std::fs::create_dir_all(&data).unwrap();
        ImportRecord { task: "tag".into(), ..ImportRecord::default() }.write(&data).unwrap();
        for inside in ["", "model", "checkpoint-30", "seed-2", "seed-2/model"] {
            let found = ImportRecord::of_run(&home.join("mine").join(inside)).unwrap();
            let (folder, record) = found.unwrap_or_else(|| panic!("{inside}"));
            assert_eq!((folder, record.task.as_str()), (data.clone(), "tag"), "{inside}");
        }
        for other in ["mine/other", "mine/other/model", "."] {
            assert!(ImportRecord::of_run(&home.join(other)).unwrap().is_none(), "{other}");
        }
        std::fs::write(data.join(RECORD), "[").unwrap();
        let error = ImportRecord::of_run(&home.join("mine/model")).unwrap_err().to_string();
        assert!(error.contains("import.json: is damaged"), "{error}");
        std::fs::remove_dir_all(&home).unwrap();
    }
}
