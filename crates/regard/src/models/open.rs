//! Opens models for tasks.

use super::{
    BuiltInModel, Folder, ResolvedModel, SHIPPED, resolve_for, row, stored, trains, verbs,
};
use crate::hub::Hub;
use anyhow::{Result, anyhow, bail};
use regard_models::story::StoryModel;
use regard_models::text::{self, Head, TextModel};
use regard_models::zoo;
use regard_tasks::answer::Answerer;
use regard_tasks::answer_story::StoryAnswerer;
use regard_tasks::pipeline::{self, Pipeline, TaskRow};
use regard_tasks::point::Pointer;
use regard_tasks::train;

/// Opens the model of a name, folder or Hub id for a task.
pub fn open<P: Pipeline>(asked: Option<&str>, hub: &Hub) -> Result<P> {
    let row = row(P::TASK);
    let found = resolve_for(row, asked, hub)?;
    P::open(stored(&found, hub)?)
        .map_err(|error| of_other_task(row, &found, asked).unwrap_or(error.into()))
}

/// Tasks whose models encode or continue texts, with different heads.
pub(super) const OF_TEXTS: [&str; 6] = ["generate", "fill", "rerank", "classify", "tag", "answer"];

/// The error of a model that cannot be opened because it is for another task; `None` if it failed
/// for another reason. A built-in model of another task is refused before it is opened.
pub(super) fn of_other_task(
    row: &TaskRow,
    found: &ResolvedModel,
    asked: Option<&str>,
) -> Option<anyhow::Error> {
    let config = train::files(found.files()).ok()?.config().ok()?;
    // A text model without a head embeds texts.
    let is_bare = text::head_of(&config).is_ok_and(|head| head == Head::Bare);
    let of = if is_bare { "embed" } else { zoo::task_of(&config).ok()? };
    let of = pipeline::task(of)?;
    // Any text model can embed; one with another head is told how to be trained for the task, but a
    // causal one is no good start for labels.
    let other_head = OF_TEXTS.contains(&row.models) && zoo::is::<dyn TextModel>(&config);
    let for_labels = ["classify", "tag", "answer"].contains(&row.models);
    if of.name == row.models || other_head && !(for_labels && of.name == "generate") {
        return None;
    }
    let place = match (found, asked) {
        (ResolvedModel::Folder(Folder { commit: Some(_), .. }), Some(id)) => id.to_string(),
        (ResolvedModel::Folder(folder), _) => folder.path.display().to_string(),
        (ResolvedModel::Shipped(model), _) => model.name.to_string(),
    };
    Some(anyhow!(
        "--model: {place} is a model that {} ({}); this command needs a model that {}. `regard \
         models` lists all; to train one: {}",
        of.does,
        verbs(of),
        row.does,
        trains(row)
    ))
}

/// A model that answers questions.
pub enum Answering {
    /// Extractive: answers are spans of a text.
    Text(Answerer),
    /// Answers about a story, from a list of answers.
    Story(StoryAnswerer),
}

/// Opens a question-answering model by name, folder or Hub id.
pub fn answering(asked: Option<&str>, hub: &Hub) -> Result<Answering> {
    let found = resolve_for(row(StoryAnswerer::TASK), asked, hub)?;
    let files = stored(&found, hub)?;
    if zoo::is::<dyn StoryModel>(&files.config()?) {
        return Ok(Answering::Story(StoryAnswerer::open(files)?));
    }
    let row = row(Answerer::TASK);
    let opened = Answerer::open(files).map(Answering::Text);
    opened.map_err(|error| of_other_task(row, &found, asked).unwrap_or(error.into()))
}

/// Opens a pointer network by name or folder; without one, the built-in one for a problem.
pub fn pointer(asked: Option<&str>, problem: Option<&str>, hub: &Hub) -> Result<Pointer> {
    let ships = |model: &&BuiltInModel| model.task == Pointer::TASK && Some(model.name) == problem;
    let shipped = SHIPPED.iter().find(ships).filter(|_| asked.is_none() && hub.revision.is_none());
    let found = match (shipped, asked, problem) {
        (Some(model), ..) => ResolvedModel::Shipped(model),
        (None, None, Some(problem)) => {
            bail!(
                "--model is required: no built-in model solves {problem}. To train one: regard \
                 train {problem}-10"
            )
        }
        _ => resolve_for(row(Pointer::TASK), asked, hub)?,
    };
    let row = row(Pointer::TASK);
    let opened = Pointer::open(stored(&found, hub)?);
    opened.map_err(|error| of_other_task(row, &found, asked).unwrap_or(error.into()))
}
