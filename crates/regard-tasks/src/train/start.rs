//! Starts or resumes a run of a recipe.

use super::lock::check_unlocked;
use super::run::{Event, Run, TrainOutcome};
use super::{record, state};
use crate::recipe::{Prepared, Task};
use regard_models::Result;
use std::path::Path;

/// Options of [`start`].
#[derive(Clone, Copy, Debug)]
pub struct RunOptions<'a> {
    /// Folder of the run.
    pub folder: &'a Path,
    /// Whether to resume from the folder's newest undamaged checkpoint.
    pub resume: bool,
    /// Limit of the parameters' size in bytes; `None` for the memory of the machine.
    pub memory: Option<u64>,
}

/// Trains a recipe: reads its data, creates its model, and runs the loop. The folder then holds the
/// same files as a run of the program: `recipe.toml` and `run.json`, checkpoints with their
/// checksums, logs, and the best model in `model`.
///
/// `watch` is called with each event and returns whether to continue.
///
/// ```
/// use regard_tasks::train::{Event, RunOptions, start};
/// use regard_tasks::{Error, recipe};
/// use std::path::Path;
///
/// // Numbers to sort are drawn, so that no data set is needed.
/// let small = ["data.train=64", "data.valid=16", "train.steps=2", "train.eval_every=2"];
/// let table = recipe::read(Path::new("../../recipes/sort-10.toml"), &small.map(String::from))?;
/// let recipe = recipe::task(table).map_err(Error::invalid)?;
/// let folder = std::env::temp_dir().join(format!("regard-start-{}", std::process::id()));
/// let run = RunOptions { folder: &folder, resume: false, memory: None };
/// let outcome = start(&*recipe, &run, &mut |event| {
///     if let Event::Evaluated { step, evaluation, .. } = event {
///         println!("{step}: {:?}", evaluation.measures);
///     }
///     true
/// })?;
/// assert!(folder.join("model/model.safetensors").is_file());
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// If the folder holds another run, the data cannot be read, the model cannot be created, or a
/// resumed run has other settings or data.
pub fn start(
    recipe: &dyn Task,
    options: &RunOptions,
    watch: &mut dyn FnMut(Event) -> bool,
) -> Result<TrainOutcome> {
    let RunOptions { folder, resume, memory } = *options;
    // First: existing runs must not be touched.
    check_unlocked(folder)?;
    state::check_folder(folder, resume)?;
    watch(Event::Reads { recipe: recipe.name(), data: recipe.data() });
    let (Prepared { mut learner, about }, record) = record::prepare(recipe, memory)?;
    watch(Event::Prepared { about: &about, counts: learner.counts() });
    let (options, seed, record) = (recipe.options(), recipe.seed(), &record);
    Run { folder, options, seed, resume, record, watch }.train(&mut *learner)
}
