//! The user's own data: read, checked, split, and written in the format that recipes read.
//!
//! Each task has a row in [`IMPORTERS`]. An importer reads everything, notes every problem with
//! its line ([`Findings`]), and returns an [`Import`]: a summary, the sizes from which
//! [`preset`] chooses a recipe, and a function that writes the parts to a folder. Data are copied
//! there, so that a run keeps its split and its data when the files change.

mod answer;
mod budget;
mod classify;
mod columns;
pub(crate) mod copies;
mod examples;
pub mod findings;
mod glimpse;
pub(crate) mod graph;
pub(crate) mod images;
mod imported;
mod importers;
mod label_values;
mod language;
mod media;
mod pairs;
#[cfg(feature = "parquet")]
mod parquet;
pub(crate) mod part_files;
mod parts;
mod places;
#[cfg(test)]
mod prepared;
pub mod preset;
pub mod reading;
pub(crate) mod record;
mod request;
mod rerank;
mod roles;
mod seen;
mod speech;
pub(crate) mod table;
mod tag;
#[cfg(test)]
mod tests;
pub mod texts;
mod units;
mod values;

use findings::Place;
pub use findings::{Finding, Findings, Severity};
pub use graph::{GraphTables, read_tables};
pub use imported::{DataSize, Import};
pub(crate) use imported::{Draft, write_lines};
pub use importers::{IMPORTERS, Importer};
pub(crate) use part_files::{PARTS, PartFiles, files_of, note_unread, part_of_name, stem};
pub(crate) use parts::split_line;
pub use places::Places;
pub use preset::Effort;
pub use reading::{Purpose, Reading, TrainedImport};
pub use record::{DATA, RECORD};
pub use request::{ColumnNames, Request};
pub use seen::SeenExamples;
pub use tag::{WordColumn, WordFormat, WordSentence, WordSentences, recorded_word_column};
pub(crate) use units::{is_unspaced, units};

use crate::data::ledger;
use crate::say;
use importers::importer;
use record::ImportRecord;
use regard_models::Result;
use std::path::PathBuf;

/// Reads and checks the user's data. `None` if the problems that were found leave nothing to
/// train on.
///
/// # Errors
/// If a file cannot be opened, or the request does not fit the task.
pub fn read(request: &Request) -> Result<(Option<Import>, Findings)> {
    let importer = importer(request)?;
    let task = importer.task;
    let mut findings = Findings::new(request.skip_bad);
    let (draft, files) = ledger::paths(|| (importer.read)(request, &mut findings));
    let mut draft = draft?;
    if let (None, Some(path), false) = (&draft, request.data.first(), findings.has_errors()) {
        findings.error("no examples", Place::whole(path), "has no example");
    }
    if let (Some(draft), true) = (&mut draft, request.data.iter().any(|path| path.is_dir())) {
        draft.summary.extend(files_line(&files));
    }
    if let (Some(draft), true) = (&mut draft, task != request.task) {
        draft.summary.insert(0, format!("the data are for the task {task}, which is trained"));
    }
    let import = draft.filter(|_| !findings.has_errors()).map(|draft| {
        let record = record_of(request, &draft);
        let Draft { task, summary, parts, size, keys, files: names, write, .. } = draft;
        Import {
            task,
            summary,
            parts,
            size,
            chosen: draft.chosen,
            read: files,
            places: draft.places,
            keys,
            files: names,
            write,
            record,
        }
    });
    Ok((import, findings))
}

/// Record of where the data come from.
fn record_of(request: &Request, draft: &Draft) -> ImportRecord {
    let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let all = |paths: &[PathBuf]| paths.iter().map(whole).collect();
    ImportRecord {
        task: draft.task.into(),
        folder: PathBuf::new(),
        data: all(&request.data),
        valid: all(&request.valid),
        test: all(&request.test),
        edges: request.edges.as_ref().map(whole),
        seed: request.seed,
        parts: draft.parts,
        summary: draft.summary.clone(),
        held_out: all(&draft.test),
        reading: Some(draft.reading.clone()),
    }
}

/// Sentence about the files of a folder that were read.
fn files_line(files: &[PathBuf]) -> Option<String> {
    let mut names: Vec<String> = vec![];
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| format!("files: {}", say::list(&names, 12)))
}
