//! Data of the user that were read: what an importer returns, and how it is written to a folder.

use super::places::Places;
use super::reading::Reading;
use super::record::{ImportRecord, RECORD};
use crate::data::Part;
use crate::evaluation::EvaluationData;
use crate::train::{LOCK, Lock};
use regard_models::{Error, Result, checkpoint};
use serde::Serialize;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The user's data, read and checked.
#[non_exhaustive]
pub struct Import {
    /// Name of the task; it can differ from the requested one, such as `classify-image` for a
    /// folder of images.
    pub task: &'static str,
    /// Lines that say what was read: columns, labels, counts, split.
    pub summary: Vec<String>,
    /// Number of examples of the training, validation and test part.
    pub parts: [usize; 3],
    /// Sizes from which a recipe is chosen.
    pub size: DataSize,
    /// Part that is evaluated, if the data have parts; `None` to train, or if all is evaluated.
    pub chosen: Option<Part>,
    /// Files that were read, as far as they are tables or texts.
    pub read: Vec<PathBuf>,
    /// Places of the examples of the validation and the test part, if they are lines of files.
    pub places: [Places; 2],
    pub(super) keys: Table,
    pub(super) files: Vec<(&'static str, &'static str)>,
    pub(super) write: WriteParts,
    pub(super) record: ImportRecord,
}

/// Writes the parts to a folder.
pub(super) type WriteParts = Box<dyn Fn(&Path) -> Result<()>>;

/// Parts of an [`Import`] that an importer makes.
pub(crate) struct Draft {
    pub task: &'static str,
    pub summary: Vec<String>,
    pub parts: [usize; 3],
    pub size: DataSize,
    /// Keys of the recipe that follow from the data, without names of files.
    pub keys: Table,
    /// Keys of `[data]` that name a written file, with its name in the folder; an empty name is
    /// the folder.
    pub files: Vec<(&'static str, &'static str)>,
    /// Writes the parts to a folder.
    pub write: WriteParts,
    /// How the files were read.
    pub reading: Reading,
    /// Part that is evaluated, if the data have parts.
    pub chosen: Option<Part>,
    /// Files or folders of the test part that was given.
    pub test: Vec<PathBuf>,
    /// Places of the examples of the validation and the test part.
    pub places: [Places; 2],
}

impl Draft {
    /// Examples that a model is evaluated on, as one part.
    pub fn to_evaluate(
        task: &'static str,
        summary: Vec<String>,
        count: usize,
        file: &'static str,
        write: WriteParts,
    ) -> Draft {
        let draft = Draft::new(task, summary, [0, 0, count], write);
        Draft { files: vec![(EVALUATED, file)], ..draft }
    }

    /// Parts with these numbers of examples, without anything else.
    pub fn new(
        task: &'static str,
        summary: Vec<String>,
        parts: [usize; 3],
        write: WriteParts,
    ) -> Draft {
        Draft {
            task,
            summary,
            parts,
            size: DataSize::default(),
            keys: Table::new(),
            files: vec![],
            write,
            reading: Reading::default(),
            chosen: None,
            test: vec![],
            places: Default::default(),
        }
    }
}

/// Key of the file that holds the examples to evaluate on.
const EVALUATED: &str = "test";

/// Sizes of the training part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataSize {
    /// Number of examples.
    pub examples: usize,
    /// Number of units that a training step processes: words (characters where words are not
    /// separated by spaces), images, tenths of a second of sound, nodes.
    pub units: usize,
    /// Units of the longest example.
    pub longest: usize,
    /// Number of labels; 0 if there are none.
    pub labels: usize,
    /// Whether words are not separated by spaces, as in Chinese.
    pub unspaced: bool,
}

impl Import {
    /// Returns the keys of the recipe that follow from the data, which are written to `folder`.
    pub fn recipe_keys(&self, folder: &Path) -> Table {
        let mut keys = self.keys.clone();
        let data = keys.entry("data").or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(data) = data {
            data.insert("set".into(), Value::String(crate::own::FILES.into()));
            for (key, name) in &self.files {
                let path = if name.is_empty() { folder.to_path_buf() } else { folder.join(name) };
                data.insert((*key).into(), Value::String(path.display().to_string()));
            }
        }
        keys
    }

    /// Returns the data to evaluate on, which are written to `folder`, and the keys of the recipe
    /// that name them.
    pub fn evaluation(&self, folder: &Path) -> (EvaluationData, Table) {
        match self.files.iter().find(|(key, _)| *key == EVALUATED) {
            Some((_, name)) => (EvaluationData::File(folder.join(name)), Table::new()),
            // A graph is several files.
            None => {
                let on = EvaluationData::Set { set: None, part: Some(Part::Test) };
                (on, self.recipe_keys(folder))
            }
        }
    }

    /// Returns the column that was read for a role, such as `source`: its name, or its number from 1
    /// if it has none. `None` if no single column was.
    pub fn column(&self, role: &str) -> Option<String> {
        match &self.record.reading.as_ref()?.columns.get(role)?[..] {
            [column] => column.name.clone().or_else(|| column.number.map(|n| n.to_string())),
            _ => None,
        }
    }

    /// Writes the parts to a folder, which is made, with [`RECORD`], which says where they come
    /// from.
    ///
    /// # Errors
    /// If the folder holds files that no import wrote: they are never replaced.
    pub fn write(&self, folder: &Path) -> Result<()> {
        self.write_locked(folder).map(drop)
    }

    /// Writes the parts as [`write`](Import::write) does. Until the lock is dropped, no other
    /// process replaces them.
    ///
    /// # Errors
    /// Those of [`write`](Import::write), or if another process holds the folder.
    pub fn write_locked(&self, folder: &Path) -> Result<Lock> {
        let record = folder.join(RECORD);
        let is_other = |entry: &std::fs::DirEntry| entry.file_name() != LOCK;
        let holds = folder.read_dir().is_ok_and(|files| files.flatten().any(|e| is_other(&e)));
        if holds && !record.is_file() {
            return Err(Error::file(folder, "holds files that no training wrote"));
        }
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let lock = Lock::acquire(folder)?;
        ImportRecord { folder: folder.to_path_buf(), ..self.record.clone() }.write(folder)?;
        (self.write)(folder)?;
        if self.places.iter().any(|part| *part != Places::default()) {
            Places::write(&self.places, folder)?;
        }
        Ok(lock)
    }
}

/// Writes JSON lines.
pub(crate) fn write_lines<T: Serialize>(path: &Path, rows: &[T]) -> Result<()> {
    checkpoint::write_file_with(path, |file| {
        let mut writer = std::io::BufWriter::new(file);
        for row in rows {
            serde_json::to_writer(&mut writer, row)?;
            std::io::Write::write_all(&mut writer, b"\n")?;
        }
        std::io::Write::flush(&mut writer)
    })
}
