//! Folders with a sub-folder for each label, perhaps below `train`, `valid` and `test`.

use super::{Item, Media};
use crate::import::findings::{Findings, Place};
use crate::import::{files_of, part_of_name};
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};

/// Sub-folders, sorted by name; hidden ones are left out.
fn folders_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = vec![];
    for entry in std::fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        if path.is_dir() && !name(&path).starts_with('.') && name(&path) != "__MACOSX" {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the number of sub-folders that hold files of this kind.
pub(super) fn labels(folder: &Path, media: &Media) -> Result<usize> {
    let mut count = 0;
    for each in folders_of(folder)? {
        count += usize::from(!files_of(&each, &|path| media.is_one(path))?.is_empty());
    }
    Ok(count)
}

/// Returns the folders of the three parts, if the folder has one for training that has a
/// sub-folder for each label.
pub(super) fn parts(
    folder: &Path,
    media: &Media,
    findings: &mut Findings,
) -> Result<Option<[Vec<PathBuf>; 3]>> {
    let (mut parts, mut others) = ([vec![], vec![], vec![]], vec![]);
    for each in folders_of(folder)? {
        let name = name(&each).to_lowercase();
        match part_of_name(&name) {
            Some(part) => parts[part].push(each),
            None => others.push(each),
        }
    }
    let is_train = match parts[0].first() {
        Some(train) => labels(train, media)? > 0,
        None => false,
    };
    if !is_train {
        // Otherwise `train` and `test` would be taken for labels.
        let both = parts.iter().filter(|part| !part.is_empty()).count() >= 2;
        if let Some(train) = parts[0].first().filter(|_| both && others.is_empty()) {
            let message = format!(
                "has no sub-folders: need one for each label in it, such as {}/LABEL/FILE",
                name(train)
            );
            findings.row("folder without labels", Place::whole(train), message);
        }
        return Ok(None);
    }
    for other in others {
        let message = "is not read: beside train, only valid and test are parts";
        findings.warn("folder not read", Place::whole(&other), message);
    }
    Ok(Some(parts))
}

/// Returns the files of a folder with a sub-folder for each label. An empty sub-folder is an error
/// in the training part.
pub(super) fn items(
    folder: &Path,
    media: &Media,
    training: bool,
    findings: &mut Findings,
) -> Result<Vec<Item>> {
    let mut all = vec![];
    let is_one = |path: &Path| media.is_one(path);
    for loose in files_of(folder, &is_one)? {
        let message =
            format!("has no label: it is in no sub-folder; this {} is not read", media.thing);
        findings.warn("file without a label", Place::whole(&loose), message);
    }
    for each in folders_of(folder)? {
        let Some(label) = each.file_name().and_then(|name| name.to_str()) else {
            findings.row("encoding", Place::whole(&each), "its name, the label, is not UTF-8");
            continue;
        };
        let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
        if label.is_empty() || label.starts_with('_') {
            let message = "is not read: its name begins with _, so it is no label";
            findings.warn("folder not read", Place::whole(&each), message);
            continue;
        }
        for inner in folders_of(&each)? {
            let message = "is not read: only the files of a label's folder itself are";
            findings.warn("folder not read", Place::whole(&inner), message);
        }
        let (wanted, others): (Vec<_>, Vec<_>) =
            files_of(&each, &|_| true)?.into_iter().partition(|path| is_one(path));
        for other in &others {
            let message =
                format!("is not read: its name does not end in .{}", media.ends.join(", ."));
            findings.warn(media.other, Place::whole(other), message);
        }
        if wanted.is_empty() {
            let message = format!("has no {} files", media.formats);
            match training {
                true => findings.row("empty folder", Place::whole(&each), message),
                false => findings.warn("empty folder", Place::whole(&each), message),
            }
        }
        let item = |path| Item { path, text: label.clone(), listed: None };
        all.extend(wanted.into_iter().map(item));
    }
    if all.is_empty() {
        let message = format!("has no sub-folder with {} files", media.formats);
        findings.error("empty folder", Place::whole(folder), message);
    }
    Ok(all)
}
