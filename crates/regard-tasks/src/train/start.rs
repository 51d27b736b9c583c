//! From a recipe to a run.

use super::lock::check_unlocked;
use super::run::{Event, Outcome, Run};
use super::{record, state};
use crate::recipe::{Prepared, Task};
use regard_models::Result;
use std::path::Path;

/// Where a recipe is trained, and whether it goes on.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions<'a> {
    /// The run's folder.
    pub folder: &'a Path,
    /// Whether to go on from the folder's newest whole checkpoint.
    pub resume: bool,
    /// Bytes that the parameters may take; without it, the memory of the machine is the limit.
    pub memory: Option<u64>,
}

/// Trains by a recipe: reads its data, makes its model, and runs the loop. The folder then holds
/// all that a run of the program leaves: `recipe.toml` and `run.json`, checkpoints with their
/// checksums, logs, and the best model in `model`.
///
/// `watch` is told what happens, and says whether to go on.
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
/// If the folder is another run's, the data cannot be read, the model cannot be made, or a
/// resumed run would become another one.
pub fn start(
    recipe: &dyn Task,
    options: &RunOptions,
    watch: &mut dyn FnMut(Event) -> bool,
) -> Result<Outcome> {
    let RunOptions { folder, resume, memory } = *options;
    // First of all: what is there already must not be touched.
    check_unlocked(folder)?;
    state::check_folder(folder, resume)?;
    watch(Event::Reads { recipe: recipe.name(), data: recipe.data() });
    let (Prepared { mut learner, about }, record) = record::prepare(recipe, memory)?;
    watch(Event::Prepared { about: &about, counts: learner.counts() });
    let (options, seed, record) = (recipe.options(), recipe.seed(), &record);
    Run { folder, options, seed, resume, record, watch }.train(&mut *learner)
}
