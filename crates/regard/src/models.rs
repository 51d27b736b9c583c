//! Resolution of `--model`: a folder, a file of llama.cpp or llama2.c, a name in `runs/` or
//! `models/`, a built-in model, or an id of the Hugging Face Hub.

mod notes;
mod open;
mod shipped;
mod stored;
mod written;

pub use notes::note_unfinished;
pub use open::{Answering, answering, open, pointer};
pub use shipped::{BuiltInModel, SHIPPED};
pub use stored::{adapted, stored};
pub use written::{check_out, export, write};

use crate::cli::command_without;
use crate::hub::{self, Fetch, Hub, Snapshot};
use crate::recipe;
use anyhow::{Context, Result, anyhow, bail};
use regard_models::ModelFiles;
use regard_models::files::is_one_file;
use regard_tasks::import;
use regard_tasks::pipeline::{self, Pipeline, TaskRow};
use regard_tasks::{quantize, say, train};
use std::path::{Path, PathBuf};

/// Folders in which models are found by name.
const SHELVES: [&str; 2] = ["runs", "models"];

/// Meaning of a value of `--model`.
pub enum ModelRef {
    /// A built-in model.
    Shipped(&'static BuiltInModel),
    /// A folder on this machine.
    Folder(PathBuf),
    /// An id of the Hugging Face Hub.
    Id(String),
}

/// A model that was found on this machine or downloaded.
pub enum ResolvedModel {
    /// A built-in model.
    Shipped(&'static BuiltInModel),
    /// A folder, with the commit if it is of the Hub.
    Folder(Folder),
}

impl ResolvedModel {
    /// Wraps a folder of this machine, which has no commit.
    pub fn folder(path: PathBuf) -> ResolvedModel {
        ResolvedModel::Folder(Folder { path, commit: None })
    }

    /// Returns the files of the model.
    pub fn files(&self) -> ModelFiles {
        match self {
            ResolvedModel::Folder(folder) => folder.path.as_path().into(),
            ResolvedModel::Shipped(model) => model.files.into(),
        }
    }
}

/// Whether a name can only be an id of the Hub.
fn is_id(name: &str) -> bool {
    matches!(called(name), Ok(ModelRef::Id(_)))
}

/// Folder of a model.
pub struct Folder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Commit of a Hub model; None for a folder of the user.
    pub commit: Option<String>,
}

/// Resolves a value of `--model`, in this order: a folder, a name in `runs/` or `models/`, a
/// built-in model, an id of the Hub. A built-in model also has a name that no folder can hide.
pub fn called(asked: &str) -> Result<ModelRef> {
    if let Some(name) = asked.strip_prefix(notes::BUILT_IN) {
        let found = SHIPPED.iter().find(|model| model.name == name);
        return found.map(ModelRef::Shipped).with_context(|| {
            let (mean, all) = (say::did_you_mean(name, &shipped()), shipped().join(", "));
            format!("{asked}: there is no built-in model {name:?}; {mean}they are {all}")
        });
    }
    let direct = PathBuf::from(asked);
    if is_one_file(&direct) {
        return Ok(ModelRef::Folder(direct));
    }
    // A name has no slash; anything else is a path.
    let is_name = direct.components().count() == 1;
    let named = SHELVES.iter().map(|shelf| Path::new(shelf).join(asked));
    let named = named.filter(|_| is_name).find(|folder| folder.is_dir());
    // A folder without a model that happens to have the name of a run does not hide it.
    if direct.is_dir() && (named.is_none() || train::find(&direct).is_ok()) {
        return Ok(ModelRef::Folder(direct));
    }
    if let Some(folder) = named {
        return Ok(ModelRef::Folder(folder));
    }
    if let Some(model) = SHIPPED.iter().find(|model| model.name == asked) {
        return Ok(ModelRef::Shipped(model));
    }
    if recipe::is_built_in(asked) {
        let made = SHIPPED.iter().find(|model| model.recipe == asked);
        let ships =
            made.map_or(String::new(), |m| format!(". It is built in as --model {}", m.name));
        bail!("{asked} is a recipe, and runs/ has no run of it: regard train {asked}{ships}");
    }
    let owner = asked.split_once('/').map(|(owner, _)| owner);
    let in_a_folder = owner.is_some_and(|o| SHELVES.contains(&o) || Path::new(o).is_dir());
    match hub::check(asked) {
        Ok(()) if owner.is_none() && !hub::is_id_alone(asked) => bail!(no_such(asked)),
        Ok(()) if !in_a_folder => Ok(ModelRef::Id(asked.to_string())),
        Ok(()) => bail!("there is no folder {asked}; {}", known()),
        Err(why) => {
            bail!("there is no folder {asked:?}, and it is not a Hub id: {why}; {}", known())
        }
    }
}

/// Message for a name that no model has.
fn no_such(asked: &str) -> String {
    let all = names();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let runs: Vec<&str> = all.iter().copied().filter(|name| !shipped().contains(name)).collect();
    let runs = match runs[..] {
        [] => "there are no runs in runs/".to_string(),
        _ => format!("runs: {}", say::list(&runs, 20)),
    };
    format!(
        "there is no model {asked:?}; {}built-in models: {}; {runs}. A model of the Hugging Face \
         Hub has the form owner/name",
        say::did_you_mean(asked, &all),
        shipped().join(", ")
    )
}

/// Lists the accepted values of `--model`.
fn known() -> String {
    format!(
        "need a folder, a name ({}), or a Hugging Face Hub id, such as gpt2 or \
         sentence-transformers/all-MiniLM-L6-v2",
        say::list(&names(), 12)
    )
}

/// Finds the model of a name, folder or Hub id.
pub fn resolve(asked: &str, hub: &Hub) -> Result<ResolvedModel> {
    resolve_as("--model", asked, hub)
}

/// Finds the model that a flag names.
pub fn resolve_as(flag: &'static str, asked: &str, hub: &Hub) -> Result<ResolvedModel> {
    found(asked, hub).context(flag)
}

/// Returns the row of a task.
fn row(task: &str) -> &'static TaskRow {
    pipeline::task(task).expect("every pipeline and every model that ships is of a task")
}

/// The built-in model that a task uses without `--model`.
fn default_model(row: &TaskRow) -> Option<&'static BuiltInModel> {
    let first = SHIPPED.iter().find(|model| model.task == row.models);
    first.filter(|_| !row.is_trained_elsewhere)
}

/// Name of the built-in model that a task uses without `--model`.
pub fn default_name<P: Pipeline>() -> Option<&'static str> {
    Some(default_model(row(P::TASK))?.name)
}

/// Finds a model for a task: without a name, the first built-in one for it. A built-in model of
/// another task is refused.
fn resolve_for(row: &TaskRow, asked: Option<&str>, hub: &Hub) -> Result<ResolvedModel> {
    let found = match asked {
        Some(asked) => resolve(asked, hub)?,
        None if hub.revision.is_some() => {
            bail!("--revision: only models of the Hub have revisions; add --model ID")
        }
        None => ResolvedModel::Shipped(default_model(row).with_context(|| lacks(row))?),
    };
    match found {
        ResolvedModel::Shipped(model) if model.task != row.models => {
            let of = self::row(model.task);
            bail!(
                "--model: the built-in model {} {} ({}); this command needs a model that {}. \
                 `regard models` lists all; to train one: {}",
                model.name,
                of.does,
                verbs(of),
                row.does,
                trains(row)
            )
        }
        found => Ok(found),
    }
}

/// Note on the built-in model that a task uses without `--model`, if it needs one.
pub fn default_note<P: Pipeline>() -> Option<String> {
    let first = default_model(row(P::TASK))?;
    let note = first.default_note?;
    Some(format!("without --model, the built-in `{}` is used: {note}", first.name))
}

/// Says what to type for a task that no model is built in for: the command of the user with a model
/// of the Hub, or else the one that trains a model and the one that uses it.
fn lacks(row: &TaskRow) -> String {
    let (command, download) = (command_without(&[]), download(row));
    let need = format!("--model is required: need a model that {}, and none is built in", row.does);
    let own = import::preset::command(row.models, None);
    let recipe = row.recipe;
    match (row.hub, own) {
        // No recipe trains one.
        (id, _) if !id.is_empty() && row.is_trained_elsewhere => format!("{need}. {download}"),
        ("", Some(own)) => format!(
            "{need}. Type: {own} --out runs/mine, and then: {command} --model runs/mine; or train \
             by a recipe: `regard train {recipe}`"
        ),
        ("", None) => format!("{need}. Type: regard train {recipe}, and then: {command}"),
        (_, own) => {
            let own = own.map_or(String::new(), |own| format!("`{own}`, or by a recipe: "));
            format!("{need}. {download}. Or train one: {own}`regard train {recipe}`")
        }
    }
}

/// The command of the user with a model of the Hub.
fn download(row: &TaskRow) -> String {
    let (command, id) = (command_without(&[]), row.hub);
    format!("Type: {command} --model {id} (downloads it from the Hugging Face Hub)")
}

/// What to type for a task if the built-in model is one of another kind.
pub fn downloaded<P: Pipeline>() -> String {
    download(row(P::TASK))
}

/// Value of `--model` for a task that no model is built in for.
///
/// # Errors
/// Without one, with what to type.
pub fn required<P: Pipeline>(asked: Option<&str>) -> Result<&str> {
    asked.with_context(|| lacks(row(P::TASK)))
}

/// Command that trains a model of a task.
fn trains(row: &TaskRow) -> String {
    let own = import::preset::command(row.models, None);
    own.unwrap_or_else(|| format!("regard train {}", row.recipe))
}

/// Names of the verbs that use the models of a task.
fn verbs(of: &TaskRow) -> String {
    let is_one = |row: &&TaskRow| row.models == of.name || row.name == of.name;
    let verbs: Vec<&str> = pipeline::TASKS.iter().filter(is_one).map(|row| row.verb).collect();
    match verbs.split_last() {
        Some((last, others @ [_, _, ..])) => format!("{} and {last}", others.join(", ")),
        _ => verbs.join(" and "),
    }
}

fn found(asked: &str, hub: &Hub) -> Result<ResolvedModel> {
    let found = match called(asked)? {
        ModelRef::Shipped(model) => ResolvedModel::Shipped(model),
        ModelRef::Folder(path) => {
            notes::note_folder(asked, &path);
            ResolvedModel::folder(path)
        }
        ModelRef::Id(id) => {
            let Snapshot { folder: path, commit } = from_hub(&id, hub, hub.fetch())?;
            return Ok(ResolvedModel::Folder(Folder { path, commit: Some(commit) }));
        }
    };
    match &hub.revision {
        Some(_) => bail!("{asked} is on this machine; --revision is only for models of the Hub"),
        None => Ok(found),
    }
}

/// Finds the folder of a pretrained model to start training from.
pub fn origin(asked: &str, hub: &Hub) -> Result<Folder> {
    match found(asked, hub)? {
        ResolvedModel::Folder(folder) => {
            let files = train::files(&folder.path)?;
            let export = format!("regard models export {} --out FLOATS", say::quoted(asked));
            if files.file().is_some() {
                bail!("{asked} is a model in one file; to train it, convert it first: {export}");
            }
            if quantize::is_quantized(&files.config()?).map_err(|e| anyhow!("{asked}: {e}"))? {
                bail!(
                    "{asked} is quantised, and only floating-point weights can be trained. To \
                     convert it: {export}"
                );
            }
            Ok(folder)
        }
        ResolvedModel::Shipped(model) => bail!(
            "{} is a built-in model; training can only start from a folder or a Hub id",
            model.name
        ),
    }
}

/// Finds a model of the Hub. If an id without an owner fails, similar local names are suggested.
pub fn from_hub(id: &str, hub: &Hub, fetch: Fetch) -> Result<Snapshot> {
    let found = hub::find(id, hub, fetch);
    match id.contains('/') {
        true => found,
        false => found.map_err(|e| {
            let all = names();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            anyhow!(
                "{e}\n{}(built-in models: {})",
                say::did_you_mean(id, &all),
                shipped().join(", ")
            )
        }),
    }
}

/// Folders in `runs/` and `models/` that hold a model, sorted.
pub fn on_shelves() -> Vec<PathBuf> {
    let folders = SHELVES.iter().filter_map(|shelf| std::fs::read_dir(shelf).ok()).flatten();
    let mut models: Vec<PathBuf> = folders
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| train::find(path).is_ok())
        .collect();
    models.sort();
    models
}

fn shipped() -> Vec<&'static str> {
    SHIPPED.iter().map(|model| model.name).collect()
}

/// Names of all built-in models and of those in `runs/` and `models/`.
fn names() -> Vec<String> {
    let shipped = shipped().into_iter().map(str::to_string);
    let shelved = on_shelves();
    let shelved = shelved.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_string()));
    let mut names: Vec<String> = shipped.chain(shelved).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::open::{OF_TEXTS, of_other_task};
    use super::*;

    #[test]
    fn what_ships_can_be_loaded_and_is_small() {
        let mut bytes = 0;
        for model in SHIPPED {
            (row(model.task).open)(model.files.into())
                .unwrap_or_else(|e| panic!("{}: {e}", model.name));
            bytes += model.files.files.iter().map(|(_, file)| file.len()).sum::<usize>();
        }
        assert!(bytes < 40 << 20, "models of {bytes} bytes ship; 40 MB are the limit");
    }

    /// The models of a clone are folders, and are found before the built-in ones.
    #[test]
    fn a_folder_of_another_task_is_told_as_a_built_in_model_is() {
        let folder = |name: &str| {
            let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
            ResolvedModel::folder(models.join(name))
        };
        for model in SHIPPED {
            for row in pipeline::TASKS {
                let told = of_other_task(row, &folder(model.name), Some(model.name));
                let Err(error) = (row.open)(folder(model.name).files()) else { continue };
                let text = [model.task, row.models].iter().all(|task| OF_TEXTS.contains(task));
                let told = match told {
                    Some(told) => told.to_string(),
                    // The error of the loader says which head the model has.
                    None if text => {
                        let error = error.to_string();
                        assert!(!error.contains("model_type: got"), "{}: {error}", model.name);
                        continue;
                    }
                    None => panic!("{} for {}: {error}", model.name, row.name),
                };
                assert!(told.contains(self::row(model.task).does), "{told}");
                assert!(told.contains(row.does), "{told}");
            }
        }
        // A model of the right task that fails has another error.
        let row = row("translate");
        assert!(of_other_task(row, &folder("en-fr"), Some("en-fr")).is_none());
        assert!(of_other_task(row, &folder("nothing"), Some("nothing")).is_none());
    }

    #[test]
    fn what_can_be_no_model_is_told_what_there_is() {
        for name in ["kling on", "/no/such/folder", "runs/none", "./none", "a/b/c", ""] {
            let error = called(name).err().unwrap().to_string();
            for part in ["no folder", "en-fr", "sentence-transformers/all-MiniLM-L6-v2"] {
                assert!(error.contains(part), "{name}: {error}");
            }
        }
    }

    #[test]
    fn a_folder_comes_first_and_an_id_last() {
        assert!(matches!(called("src"), Ok(ModelRef::Folder(_))));
        assert!(matches!(called("en-fr"), Ok(ModelRef::Shipped(_))));
        for id in ["gpt2", "google-bert/bert-base-uncased"] {
            assert!(matches!(called(id), Ok(ModelRef::Id(found)) if found == id));
        }
        // A name that no model has is told at once, without asking the Hub.
        let error = called("en-rf").err().unwrap().to_string();
        for part in ["no model \"en-rf\"", "did you mean 'en-fr'?", "en-fr-bahdanau", "owner/name"]
        {
            assert!(error.contains(part), "{error}");
        }
        // A built-in model can be named whatever folders there are.
        assert!(
            matches!(called("builtin:digits"), Ok(ModelRef::Shipped(found)) if found.name == "digits")
        );
        let error = called("builtin:digit").err().unwrap().to_string();
        assert!(error.contains("did you mean 'digits'?") && error.contains("en-fr"), "{error}");
        // In a folder that is here, a path was meant.
        assert!(called("src/nothing").is_err());
    }
}
