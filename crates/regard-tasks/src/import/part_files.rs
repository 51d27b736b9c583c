//! Which files are which part: by the names of a folder's files, or by flags.

use super::findings::{Findings, Place};
use super::{Request, parts};
use crate::data::Part;
use crate::say;
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};

/// Names of the files of a folder, for each part.
pub(crate) const PARTS: [&[&str]; 3] =
    [&["train", "training"], &["valid", "val", "dev", "validation"], &["test", "testing"]];

/// Part that a name says.
pub(crate) fn part_of_name(name: &str) -> Option<usize> {
    PARTS.iter().position(|names| names.contains(&name))
}

/// Part that the last or the first word of a name says, as in `en_ewt-ud-dev` and `train-v1`.
fn longer_name(stem: &str) -> Option<usize> {
    let words: Vec<&str> = stem.split(['-', '_']).collect();
    let part = |word: &&str| part_of_name(word);
    words.last().and_then(part).or_else(|| words.first().and_then(part))
}

/// Files of the three parts: those that were named, or those of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartFiles {
    pub train: Vec<PathBuf>,
    pub valid: Vec<PathBuf>,
    pub test: Vec<PathBuf>,
    /// Part that is evaluated, if the data have parts.
    pub chosen: Option<Part>,
}

impl PartFiles {
    /// Returns the files of a part.
    pub fn of(&self, part: Part) -> &[PathBuf] {
        part.of([&self.train, &self.valid, &self.test])
    }

    /// Resolves the files of a request. A folder stands for its files named `train.*`, `valid.*`
    /// (or `val`, `dev`, `validation`) and `test.*`, with ends for which `is_wanted` is true; a
    /// folder with none of these names for all such files. Longer names, such as `train-v1.1.json`
    /// and `en_ewt-ud-dev.conllu`, are understood too.
    /// Files of the folder that are in no part are noted.
    pub fn find(
        request: &Request,
        is_wanted: &dyn Fn(&Path) -> bool,
        findings: &mut Findings,
    ) -> Result<PartFiles> {
        let mut found = PartFiles {
            valid: request.valid.clone(),
            test: request.test.clone(),
            ..PartFiles::default()
        };
        for path in &request.data {
            if !path.is_dir() {
                found.train.push(path.clone());
                continue;
            }
            let [train, valid, test] = PartFiles::in_folder(path, request, is_wanted, findings)?;
            for (part, own, given) in
                [("valid", &valid, &request.valid), ("test", &test, &request.test)]
            {
                if !own.is_empty() && !given.is_empty() {
                    return Err(Error::invalid(format!(
                        "--{part} names a file, and {} has {}: leave one of them out",
                        path.display(),
                        own[0].display()
                    )));
                }
            }
            found.train.extend(train);
            found.valid.extend(valid);
            found.test.extend(test);
        }
        if request.like().is_some() {
            request.check_mixed(&found.valid, &found.test)?;
            let PartFiles { train, valid, test, .. } = found;
            let (train, chosen) = request.one_part([train, valid, test])?;
            return Ok(PartFiles { train, chosen, ..PartFiles::default() });
        }
        Ok(found)
    }

    /// Files of the parts of a folder; without names of parts, all are for training.
    pub fn in_folder(
        path: &Path,
        request: &Request,
        is_wanted: &dyn Fn(&Path) -> bool,
        findings: &mut Findings,
    ) -> Result<[Vec<PathBuf>; 3]> {
        let files = files_of(path, is_wanted)?;
        check_compressed(&files)?;
        let by = |part_of: fn(&str) -> Option<usize>| {
            [0, 1, 2].map(|part: usize| -> Vec<PathBuf> {
                let of = |file: &&PathBuf| part_of(&stem(file)) == Some(part);
                files.iter().filter(of).cloned().collect()
            })
        };
        let exact = by(part_of_name);
        // Longer names, such as train-v1.1.json, count if they name more than one part.
        let longer = by(longer_name);
        let is_longer = exact[0].is_empty() && longer.iter().filter(|l| !l.is_empty()).count() > 1;
        let parts = if is_longer && !longer[0].is_empty() { longer } else { exact };
        let [train, valid, test] = &parts;
        let evaluates = request.like().is_some();
        let is_held_out = !(valid.is_empty() && test.is_empty());
        if train.is_empty() && !(evaluates && is_held_out) {
            if files.is_empty() || is_held_out {
                return Err(Error::file(path, no_training(path, &files)?));
            }
            return Ok([files, vec![], vec![]]);
        }
        note_unread(&files, [train, valid, test], evaluates, findings);
        Ok(parts)
    }

    /// The parts that must be split off the training files.
    pub fn held_out(&self) -> parts::HeldOut {
        parts::HeldOut { valid: self.valid.is_empty(), test: self.test.is_empty() }
    }
}

/// Message for a folder without files to train on. `files` are those that the task reads.
fn no_training(folder: &Path, files: &[PathBuf]) -> Result<String> {
    let name = |file: &PathBuf| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !files.is_empty() {
        let names: Vec<String> = files.iter().map(name).collect();
        let found = say::list(&names, 8);
        return Ok(format!("need a file named train.* beside those of other parts; found {found}"));
    }
    let all: Vec<String> = files_of(folder, &|_| true)?.iter().map(name).collect();
    let found = if all.is_empty() { "no files".into() } else { say::list(&all, 8) };
    Ok(format!("has no file that this task reads; it holds {found}"))
}

/// Notes the files of a folder that are in no part. `evaluates` is whether a model is evaluated:
/// then no flag names a part.
pub(crate) fn note_unread(
    files: &[PathBuf],
    parts: [&Vec<PathBuf>; 3],
    evaluates: bool,
    findings: &mut Findings,
) {
    let instead = match evaluates {
        true => "name it by --data to evaluate it",
        false => "rename it, or name the files of a part by --data, --valid and --test",
    };
    for file in files.iter().filter(|file| !parts.iter().any(|part| part.contains(file))) {
        let message = format!(
            "is not read: only train.*, valid.* and test.* are parts of a folder that has such \
             files; {instead}"
        );
        findings.warn("file not read", Place::whole(file), message);
    }
}

/// Refuses a file beside its own compressed copy: its examples would be read twice.
fn check_compressed(files: &[PathBuf]) -> Result<()> {
    let plain = |file: &&PathBuf| file.extension().is_some_and(|end| end == "gz");
    for file in files.iter().filter(plain) {
        if files.contains(&file.with_extension("")) {
            let message = "is there with and without .gz: remove one of them";
            return Err(Error::file(file, message));
        }
    }
    Ok(())
}

/// Files of a folder, sorted by name.
pub(crate) fn files_of(folder: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut files = vec![];
    for entry in std::fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_file() && !hidden && is_wanted(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Name of a file up to its first dot, in lower case.
pub(crate) fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name.split('.').next().unwrap_or_default().to_string()
}
