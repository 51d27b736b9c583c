//! The record of a run's import.

use super::Reading;
use crate::import::record::{ImportRecord, RECORD};
use regard_models::checkpoint::read_text;
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};

/// Import of a run's data, as its folder records it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TrainedImport {
    /// Name of the task.
    pub task: String,
    /// Files that were read.
    pub data: Vec<PathBuf>,
    /// Files of the validation part that was given.
    pub valid: Vec<PathBuf>,
    /// Files or folders of the test part that was given.
    pub held_out: Vec<PathBuf>,
    /// Edges of a graph.
    pub edges: Option<PathBuf>,
    /// How they were read.
    pub reading: Reading,
    /// Folder of the record.
    pub folder: PathBuf,
}

impl TrainedImport {
    /// Reads the record of a run, which may be one of several with different seeds. `None` if the
    /// run was not trained on imported data.
    ///
    /// # Errors
    /// If the record cannot be read, or does not say how the files were read.
    pub fn of_run(run: &Path) -> Result<Option<TrainedImport>> {
        let Some((folder, record)) = ImportRecord::of_run(run)? else { return Ok(None) };
        let ImportRecord { task, data, valid, held_out, edges, reading, .. } = record;
        let Some(reading) = reading else {
            let message = "does not say how its files were read; an earlier version trained this \
                           run: train it again";
            return Err(Error::file(folder.join(RECORD), message));
        };
        Ok(Some(TrainedImport { task, data, valid, held_out, edges, reading, folder }))
    }

    /// Stands for the record of a model that was not trained on imported files: of its files, only
    /// the languages that it translates between are known, and not always.
    pub fn of_model(task: &str, languages: Option<[String; 2]>) -> TrainedImport {
        let reading = Reading { languages, ..Reading::default() };
        TrainedImport { task: task.into(), reading, ..TrainedImport::default() }
    }

    /// Returns a file of the user, an image or a recording, on which the model can be tried.
    pub fn example(&self) -> Option<PathBuf> {
        let lists = ["t10k-files.txt", "test.tsv", "valid.tsv", "train.tsv"];
        let list = lists.iter().find_map(|name| read_text(&self.folder.join(name)).ok())?;
        let path = PathBuf::from(list.lines().next()?.split('\t').next()?);
        path.is_file().then_some(path)
    }

    /// Returns the first of these files or folders whose examples the run was trained on, or chose
    /// its checkpoint by. Those of a test part that was given are not among them.
    pub fn has_read<'a>(&self, files: &'a [PathBuf]) -> Option<&'a Path> {
        let real = |path: &PathBuf| path.canonicalize().ok();
        let all = |paths: &[PathBuf]| paths.iter().filter_map(real).collect::<Vec<_>>();
        let (seen, held_out) = (all(&[&self.data[..], &self.valid].concat()), all(&self.held_out));
        // Folders stand for the files in them.
        let is_in = |path: &Path, all: &[PathBuf]| all.iter().any(|each| path.starts_with(each));
        let is_seen = |path: &&PathBuf| {
            real(path).is_some_and(|path| is_in(&path, &seen) && !is_in(&path, &held_out))
        };
        files.iter().find(is_seen).map(PathBuf::as_path)
    }
}
