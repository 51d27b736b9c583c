//! The record of a run's import.

use super::Reading;
use crate::import::copies::DATA;
use crate::import::imported::RECORD;
use regard_models::checkpoint::read_text;
use regard_models::{Error, Result};
use serde::Deserialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Import of a run's data, as its folder records it.
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct TrainedImport {
    /// Name of the task.
    pub task: String,
    /// Files that were read.
    #[serde(default)]
    pub data: Vec<PathBuf>,
    /// Edges of a graph.
    #[serde(default)]
    pub edges: Option<PathBuf>,
    /// How they were read.
    pub reading: Reading,
    /// Folder of the record.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl TrainedImport {
    /// Reads the record of a run, which may be one of several with different seeds. `None` if the
    /// run was not trained on imported data.
    ///
    /// # Errors
    /// If the record cannot be read, or does not say how the files were read.
    pub fn of_run(run: &Path) -> Result<Option<TrainedImport>> {
        let inside = Some(run.join(DATA));
        let above = run.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seed-"));
        let above = run.parent().filter(|_| above).map(|parent| parent.join(DATA));
        let mut folders = [inside, above].into_iter().flatten();
        let Some(folder) = folders.find(|folder| folder.join(RECORD).is_file()) else {
            return Ok(None);
        };
        let path = folder.join(RECORD);
        let text = read_text(&path)?;
        let read = serde_json::from_str::<TrainedImport>(&text).map_err(|error| {
            let again = match error.to_string().contains("missing field `reading`") {
                true => "; an earlier version trained this run: train it again",
                false => "",
            };
            Error::file(&path, format!("does not say how its files were read: {error}{again}"))
        })?;
        Ok(Some(TrainedImport { folder, ..read }))
    }

    /// Returns a file of the user, an image or a recording, on which the model can be tried.
    pub fn example(&self) -> Option<PathBuf> {
        let lists = ["t10k-files.txt", "test.tsv", "valid.tsv", "train.tsv"];
        let list = lists.iter().find_map(|name| read_text(&self.folder.join(name)).ok())?;
        let path = PathBuf::from(list.lines().next()?.split('\t').next()?);
        path.is_file().then_some(path)
    }

    /// Whether the run was trained on one of these files.
    pub fn has_read<'a>(&self, files: &'a [PathBuf]) -> Option<&'a Path> {
        let real = |path: &PathBuf| path.canonicalize().ok();
        let mine: HashSet<PathBuf> = self.data.iter().filter_map(real).collect();
        // Also a file of the folder that was read.
        let is_mine = |path: &&PathBuf| {
            real(path).is_some_and(|path| path.ancestors().any(|part| mine.contains(part)))
        };
        files.iter().find(is_mine).map(PathBuf::as_path)
    }
}
