//! Checkpoints of a run: `checkpoint-<step>/` with everything that resuming needs.
//!
//! A checkpoint is written under a temporary name, synced, and then renamed; a killed run leaves at
//! most an `.unfinished` folder, which the next run removes.

use super::checksums::{CHECKSUMS, verify_checksums, write_checksums};
use super::{Evaluation, Learner, lock, record};
use crate::data::Position;
use regard_attention::AdamWState;
use regard_attention::optim::Moments;
use regard_models::adapter;
use regard_models::checkpoint::{self, Array, Arrays, Precision, read_text, write_file};
use regard_models::{Error, ModelFiles, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const OPTIMIZER: &str = "optimizer.safetensors";
const PLACE: &str = "trainer.json";
pub(super) const BEST: &str = "best.json";
pub(super) const MODEL: &str = "model";
const UNFINISHED: &str = ".unfinished";

/// State of a run in a checkpoint, besides model and optimiser.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunState {
    /// Number of steps completed.
    pub step: u64,
    /// Number of steps that changed the parameters (those with finite gradients).
    pub updates: u64,
    /// Position of the next batch in the data.
    pub position: Position,
    /// Sum of losses since the last line of the log, as the bits of a double, so that none is lost
    /// in decimal.
    pub loss_bits: u64,
    /// Number of tokens in that sum.
    pub tokens: u64,
    /// Number of tokens trained on since the start.
    pub all_tokens: u64,
    /// Best model selection metric so far, as the bits of a double; `None` before the first
    /// evaluation.
    pub best_bits: Option<u64>,
    /// Step of the best evaluation.
    pub best_step: Option<u64>,
    /// Best value of each of two selection metrics so far; they may come from different
    /// checkpoints.
    pub extremes_bits: Option<[u64; 2]>,
    /// Number of evaluations since the last improvement.
    pub stale: usize,
    /// Number of consecutive steps, up to now, skipped because gradients were not finite.
    pub lost: usize,
    /// Seconds of training, without evaluations.
    pub seconds: f64,
}

impl RunState {
    /// Records an evaluation and returns whether the model is the best so far, or as good. With two model
    /// selection metrics it is the best only if it is at least as good as all before in both.
    pub(super) fn judge(&mut self, evaluation: &Evaluation) -> bool {
        let (best, hope) = match evaluation.also {
            None => {
                let known = self.best_bits.map(f64::from_bits);
                let beats = evaluation.beats(known);
                // Of equal ones the last is kept: where few examples decide, many steps tie, and the
                // first of them has seen the least. It does not count as progress.
                (beats || known == Some(evaluation.decides), beats)
            }
            Some(second) => {
                let known = self.extremes_bits.map(|bits| bits.map(f64::from_bits));
                let [first, least] = known.unwrap_or([evaluation.decides, second]);
                let (one, two) = (!evaluation.is_worse(first), second <= least);
                let first = if one { evaluation.decides } else { first };
                self.extremes_bits = Some([first, least.min(second)].map(f64::to_bits));
                (one && two, one || two)
            }
        };
        if best {
            self.best_bits = Some(evaluation.decides.to_bits());
            self.best_step = Some(self.step);
        }
        self.stale = if hope { 0 } else { self.stale + 1 };
        best
    }

    /// Forgets the best evaluation if its checkpoint was deleted: a better one, now damaged, had
    /// replaced it.
    pub(super) fn forget_best_unless(&mut self, exists: impl FnOnce(u64) -> bool) {
        if self.best_step.is_some_and(|step| !exists(step)) {
            (self.best_bits, self.best_step, self.extremes_bits) = (None, None, None);
        }
    }
}

/// Whether a run has a checkpoint of this step.
pub(super) fn exists(run: &Path, step: u64) -> bool {
    run.join(name_of(step)).is_dir()
}

/// Writes a checkpoint of a run.
pub fn save(run: &Path, learner: &dyn Learner, adamw: &AdamWState, place: &RunState) -> Result<()> {
    whole(run, &name_of(place.step), |folder| {
        learner.save(folder)?;
        checkpoint::write_arrays(&folder.join(OPTIMIZER), &moments(adamw), Precision::Single)?;
        let place = RunState { updates: adamw.step, ..place.clone() };
        let text = serde_json::to_string_pretty(&place).expect("it is plain data");
        write_file(&folder.join(PLACE), text.as_bytes())?;
        write_checksums(folder)
    })
}

/// Writes the final model. Files that users added to an earlier one stay.
pub fn save_model(run: &Path, learner: &dyn Learner) -> Result<()> {
    whole(run, MODEL, |folder| {
        learner.save(folder)?;
        match run.join(MODEL) {
            earlier if earlier.is_dir() => keep_others(&earlier, folder),
            _ => Ok(()),
        }
    })
}

/// Links files that are only in one folder into another. Nothing is moved, so a kill loses nothing.
fn keep_others(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).map_err(Error::io(from))? {
        let (path, kept) = match entry {
            Ok(entry) => (entry.path(), to.join(entry.file_name())),
            Err(e) => return Err(Error::io(from)(e)),
        };
        if fs::symlink_metadata(&kept).is_ok() {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            fs::create_dir(&kept).map_err(Error::io(&kept))?;
            keep_others(&path, &kept)?;
        } else if fs::hard_link(&path, &kept).is_err() {
            // Some file systems have no links.
            fs::copy(&path, &kept).map_err(Error::io(&path))?;
        }
    }
    Ok(())
}

/// Writes a folder of a run atomically: complete or not at all.
fn whole(run: &Path, name: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let (folder, unfinished) = (run.join(name), run.join(format!("{name}{UNFINISHED}")));
    delete(&unfinished)?;
    let written = (|| {
        fs::create_dir_all(&unfinished).map_err(Error::io(&unfinished))?;
        write(&unfinished)?;
        remove(&folder)?;
        fs::rename(&unfinished, &folder).map_err(Error::io(&folder))?;
        File::open(run).and_then(|run| run.sync_all()).map_err(Error::io(run))
    })();
    if written.is_err() {
        // Frees the space of an incomplete folder, for the case of a full disk.
        let _ = delete(&unfinished);
    }
    written
}

/// Records which checkpoint is best.
pub fn save_best(run: &Path, step: u64, measure: f64) -> Result<()> {
    let text = serde_json::json!({ "step": step, "measure": measure }).to_string();
    write_file(&run.join(BEST), text.as_bytes())
}

/// Best checkpoint of a run, as `best.json` records it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(super) struct BestCheckpoint {
    /// Step of the checkpoint.
    pub step: u64,
    /// Model selection metric; `None` if it was not finite.
    pub measure: Option<f64>,
}

/// Reads which checkpoint is best; `None` if none was recorded.
pub(super) fn read_best(run: &Path) -> Result<Option<BestCheckpoint>> {
    let path = run.join(BEST);
    // A link to nothing is there too.
    if fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    let best = serde_json::from_str(&read_text(&path)?);
    best.map(Some).map_err(|e| Error::file(&path, e.to_string()))
}

/// Returns the step of the best checkpoint, if there is one.
pub fn best(run: &Path) -> Option<u64> {
    let text = read_text(&run.join(BEST)).ok()?;
    serde_json::from_str::<serde_json::Value>(&text).ok()?["step"].as_u64()
}

/// Returns the steps of all complete checkpoints, in ascending order.
pub fn checkpoints(run: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(run) else { return vec![] };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut steps: Vec<u64> =
        names.filter_map(|name| name.strip_prefix("checkpoint-")?.parse().ok()).collect();
    steps.sort_unstable();
    steps
}

/// Removes all checkpoints but the last `keep` and the best.
pub fn prune(run: &Path, keep: usize) -> Result<()> {
    let (steps, best) = (checkpoints(run), best(run));
    let old = steps.len().saturating_sub(keep);
    for step in &steps[..old] {
        if best != Some(*step) {
            remove(&run.join(name_of(*step)))?;
        }
    }
    Ok(())
}

/// Returns an error if another process trains in this folder, or if it holds a run and `resume` is
/// false.
///
/// # Errors
/// If there is a checkpoint, a started run, or the model of a finished one.
pub fn check_folder(run: &Path, resume: bool) -> Result<()> {
    lock::check_unlocked(run)?;
    check_run(run, resume)
}

/// Returns an error if the folder holds a run and `resume` is false.
pub(super) fn check_run(run: &Path, resume: bool) -> Result<()> {
    let within = run.parent().filter(|above| record::is_run(above) && is_own(run));
    let held = match checkpoints(run).last() {
        _ if resume => None,
        _ if within.is_some() => Some("is a part of a run".to_string()),
        Some(step) => Some(format!("holds a run at step {step}")),
        None if is_done(run) => Some("holds a model".into()),
        None if record::is_run(run) => Some("holds an unfinished run without a checkpoint".into()),
        None if run.join(checkpoint::CONFIG).exists() => Some("holds a model".into()),
        None => {
            let files = fs::read_dir(run.join(MODEL)).is_ok_and(|mut files| files.next().is_some());
            files.then(|| format!("has a folder {MODEL} that no run wrote"))
        }
    };
    match held {
        None => Ok(()),
        Some(held) if record::is_run(run) || !checkpoints(run).is_empty() => {
            Err(Error::file(run, format!("{held}; resume it, or choose another folder")))
        }
        Some(held) => Err(Error::file(run, format!("{held}; choose another folder"))),
    }
}

/// Whether a folder has the name of a subfolder of a run.
fn is_own(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name == MODEL || name.starts_with("checkpoint-")
}

/// Whether a run has written its model.
pub fn is_done(run: &Path) -> bool {
    run.join(MODEL).join(checkpoint::CONFIG).exists()
}

/// Removes unfinished folders and files of a killed run.
pub fn clean(run: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(run) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(UNFINISHED) {
            delete(&entry.path())?;
        } else if name.starts_with('.') && name.ends_with(".tmp") {
            // A temporary file that was not renamed.
            fs::remove_file(entry.path()).map_err(Error::io(entry.path()))?;
        }
    }
    Ok(())
}

/// A damaged checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Step of the checkpoint.
    pub step: u64,
    /// Message with the damaged file and the reason.
    pub why: String,
}

/// Returns the newest undamaged checkpoint of a run, if any, and all damaged ones, newest first.
pub fn newest_whole(run: &Path) -> (Option<u64>, Vec<Damage>) {
    let (mut newest, mut damaged) = (None, vec![]);
    for step in checkpoints(run).into_iter().rev() {
        match verify_checksums(&run.join(name_of(step))) {
            Ok(()) => newest = newest.or(Some(step)),
            Err(why) => damaged.push(Damage { step, why }),
        }
    }
    (newest, damaged)
}

/// Renames damaged checkpoints, so that they are not used. Their files are kept.
pub fn set_aside(run: &Path, damaged: &[Damage]) -> Result<()> {
    for Damage { step, .. } in damaged {
        let folder = run.join(name_of(*step));
        let aside = (0..)
            .map(|n| run.join(format!("checkpoint-{step}.damaged{}", ".".repeat(n))))
            .find(|path| !path.exists())
            .expect("some name is free");
        fs::rename(&folder, aside).map_err(Error::io(&folder))?;
    }
    Ok(())
}

/// Returns the folder of a checkpoint.
pub(super) fn folder_of(run: &Path, step: u64) -> PathBuf {
    run.join(name_of(step))
}

/// Reads the state of a run in a checkpoint.
pub(super) fn read_state(run: &Path, step: u64) -> Result<RunState> {
    let path = folder_of(run, step).join(PLACE);
    let text = read_text(&path)?;
    let place: RunState =
        serde_json::from_str(&text).map_err(|e| Error::file(&path, e.to_string()))?;
    match place.step == step {
        true => Ok(place),
        false => {
            let message =
                format!("step: got {}, but the folder is named checkpoint-{step}", place.step);
            Err(Error::file(&path, message))
        }
    }
}

/// Reads a checkpoint into a learner.
pub fn load(run: &Path, step: u64, learner: &mut dyn Learner) -> Result<(AdamWState, RunState)> {
    let (folder, place) = (folder_of(run, step), read_state(run, step)?);
    let path = folder.join(OPTIMIZER);
    let state = from_arrays(checkpoint::read_arrays(&path)?, place.updates)
        .map_err(|message| Error::file(&path, message))?;
    let trained = learner.read(&folder)?;
    let file = match adapter::is_adapter(&folder) {
        true => adapter::weights_file(&folder),
        false => checkpoint::weights_file(&folder),
    };
    learner.restore(trained).map_err(|e| Error::file(file, e.to_string()))?;
    same_model(run, &folder, learner)?;
    Ok((state, place))
}

/// Compares a checkpoint with what the learner would save now: configuration, tokenizer and all
/// other files of the model must be identical.
fn same_model(run: &Path, folder: &Path, learner: &dyn Learner) -> Result<()> {
    let now = run.join(format!("resume{UNFINISHED}"));
    delete(&now)?;
    fs::create_dir_all(&now).map_err(Error::io(&now))?;
    learner.save(&now)?;
    write_checksums(&now)?;
    let read = |folder: &Path| -> Result<Vec<String>> {
        let path = folder.join(CHECKSUMS);
        Ok(read_text(&path)?
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(str::to_string)
            .collect())
    };
    let (then, now_sums) = (read(folder)?, read(&now)?);
    delete(&now)?;
    match now_sums.iter().find(|line| !then.contains(line)) {
        None => Ok(()),
        Some(line) => Err(Error::file(
            folder.join(line.split_once("  ").map_or("", |(_, name)| name)),
            "differs from what recipe and data give now: the run was started with other \
             data, another tokenizer or another version of the program",
        )),
    }
}

/// Returns the files of a model: for a folder, those that [`resolve`] finds there.
pub fn files(model: impl Into<ModelFiles>) -> Result<ModelFiles> {
    model.into().in_folder(resolve)
}

/// Returns the folder that [`find`] returns, or an error if it is a damaged checkpoint.
pub fn resolve(folder: &Path) -> Result<PathBuf> {
    let found = find(folder)?;
    whole_or_refused(&found)?;
    Ok(found)
}

/// Returns the folder that holds a model: the folder itself, a run's final model, its best
/// checkpoint or its last one.
pub fn find(folder: &Path) -> Result<PathBuf> {
    let is_model = |folder: &Path| folder.join(checkpoint::CONFIG).is_file();
    let last = checkpoints(folder).last().copied();
    let candidates = [
        Some(folder.to_path_buf()),
        Some(folder.join(MODEL)),
        best(folder).map(|step| folder.join(name_of(step))),
        last.map(|step| folder.join(name_of(step))),
    ];
    candidates.into_iter().flatten().find(|folder| is_model(folder)).ok_or_else(|| {
        let need = format!("need one with {}", checkpoint::CONFIG);
        let seed = folder.join("seed-0");
        Error::file(
            folder,
            match (folder.is_dir(), seed.is_dir()) {
                (true, true) => format!("holds runs from several seeds; {} is one", seed.display()),
                (true, false) if adapter::is_adapter(folder) => format!(
                    "holds a LoRA adapter and no model: need --model BASE --adapter {}",
                    crate::say::quoted(folder.display())
                ),
                (true, false) => format!("holds no model: {need}"),
                (false, _) => format!("is not a folder: {need}"),
            },
        )
    })
}

/// Returns an error for a damaged checkpoint, naming one that is undamaged.
fn whole_or_refused(folder: &Path) -> Result<()> {
    // Other programs may write a file of this name too, in another format.
    if !(folder.join(CHECKSUMS).exists() && folder.join(PLACE).exists()) {
        return Ok(());
    }
    let Err(why) = verify_checksums(folder) else { return Ok(()) };
    let whole = folder.parent().and_then(|run| Some(run.join(name_of(newest_whole(run).0?))));
    let offer = match whole {
        Some(whole) => format!("; {} is undamaged", whole.display()),
        None => String::new(),
    };
    Err(Error::file(folder, format!("{why}{offer}")))
}

fn name_of(step: u64) -> String {
    format!("checkpoint-{step}")
}

/// Removes a complete folder. It is renamed first, so that a kill cannot leave an incomplete folder
/// under its name.
fn remove(folder: &Path) -> Result<()> {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".old");
    name.push(UNFINISHED);
    let old = folder.with_file_name(name);
    delete(&old)?;
    match fs::rename(folder, &old) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io(folder)(e)),
        Ok(()) => delete(&old),
    }
}

fn delete(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io(folder)(e)),
        _ => Ok(()),
    }
}

fn moments(state: &AdamWState) -> Arrays {
    let mut arrays = Arrays::new();
    for (path, Moments { first, second }) in &state.moments {
        for (which, data) in [("first", first), ("second", second)] {
            let array = Array::new(vec![data.len()], data.clone());
            arrays.insert(format!("{path}#{which}"), array);
        }
    }
    arrays
}

fn from_arrays(mut arrays: Arrays, step: u64) -> Result<AdamWState, String> {
    let mut state = AdamWState { step, ..AdamWState::default() };
    let paths: Vec<String> =
        arrays.keys().filter_map(|name| Some(name.strip_suffix("#first")?.to_string())).collect();
    for path in paths {
        let mut take =
            |which: &str| arrays.remove(&format!("{path}#{which}")).and_then(Array::into_floats);
        match (take("first"), take("second")) {
            (Some(first), Some(second)) if first.len() == second.len() => {
                state.moments.insert(path, Moments { first, second });
            }
            _ => return Err(format!("the moments of {path} are incomplete")),
        }
    }
    match arrays.keys().next() {
        Some(other) => Err(format!("{other} is not an optimiser moment, or lacks its pair")),
        None => Ok(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Direction;

    #[test]
    fn two_measures_decide_together() {
        let mut place = RunState::default();
        let mut seen = vec![];
        // Accuracy and loss after each step.
        for (step, (decides, loss)) in
            [(70.0, 1.0), (72.0, 1.1), (71.0, 0.9), (72.0, 0.9), (71.9, 0.91), (72.0, 0.95)]
                .into_iter()
                .enumerate()
        {
            place.step = step as u64;
            let (measures, better) = (vec![], Direction::Higher);
            let evaluation =
                Evaluation { measures, decides, better, also: Some(loss), sample: None };
            seen.push((place.judge(&evaluation), place.stale));
        }
        let wanted = [(true, 0), (false, 0), (false, 0), (true, 0), (false, 1), (false, 0)];
        assert_eq!(seen, wanted);
        assert_eq!((place.best_step, place.best_bits.map(f64::from_bits)), (Some(3), Some(72.0)));
        let nothing = Evaluation {
            measures: vec![],
            decides: f64::NAN,
            better: Direction::Higher,
            also: Some(f64::NAN),
            sample: None,
        };
        assert!(!place.judge(&nothing) && place.stale == 1);
    }
}
