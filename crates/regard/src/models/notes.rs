//! Notes about the folder that a value of `--model` stands for: it hides a built-in model, or its
//! training is not over.

use super::SHIPPED;
use crate::cli::note_once;
use regard_models::ModelFiles;
use regard_tasks::say::{count, quoted};
use regard_tasks::train::{self, RunStatus, RunSummary};
use std::path::Path;

/// Prefix of the name of a built-in model, for when a folder has the same name.
pub const BUILT_IN: &str = "builtin:";

/// Notes what is unexpected about a folder.
pub fn note_folder(asked: &str, folder: &Path) {
    if let Some(text) = hides_built_in(asked, folder) {
        note_once(&text);
    }
    note_unfinished(folder);
}

/// Note on a folder that has the name of a built-in model, unless it is a copy of it, as in the
/// repository of this program.
fn hides_built_in(asked: &str, folder: &Path) -> Option<String> {
    let hidden = SHIPPED.iter().find(|model| model.name == asked)?;
    let files = train::files(ModelFiles::from(folder)).ok()?;
    let is_copied = |(name, bytes): &(&str, &[u8])| {
        files.read(name, bytes.len() as u64).is_ok_and(|found| *found == **bytes)
    };
    let is_copy = hidden.files.files.iter().all(is_copied);
    (!is_copy).then(|| {
        format!(
            "{asked} is the folder {}; for the built-in model of this name: {BUILT_IN}{asked}",
            folder.display()
        )
    })
}

/// Notes that the training of a run is not over, with the command that continues it.
pub fn note_unfinished(folder: &Path) {
    let Some(RunSummary { status, .. }) = RunSummary::of(folder) else { return };
    let steps = |step: u64, steps: u64| {
        format!("at step {} of {}", count(step as usize), count(steps as usize))
    };
    let place = folder.display();
    match status {
        // Without a checkpoint, there is no model, and opening it says so.
        RunStatus::Interrupted { step, steps: all } if step > 0 => note_once(&format!(
            "{place} was interrupted {}; to continue: regard train --resume {}",
            steps(step, all),
            quoted(&place)
        )),
        RunStatus::Running { step, steps: Some(all) } if step > 0 => {
            note_once(&format!("{place} is still being trained, {}", steps(step, all)));
        }
        _ => {}
    }
}
