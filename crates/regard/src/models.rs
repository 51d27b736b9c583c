//! From what a person calls a model to the model: a folder, one on a shelf of this folder, one
//! that ships with the program, or one of the Hugging Face Hub.

use crate::hub::{self, Fetch, Hub, Snapshot};
use crate::recipe;
use anyhow::{Context, Result, anyhow, bail};
use regard_models::checkpoint::{self, Precision};
use regard_models::story::StoryModel;
use regard_models::{BuiltIn, ModelFiles, zoo};
use regard_tasks::answer::Answerer;
use regard_tasks::answer_story::Listener;
use regard_tasks::pipeline::{self, Pipeline, Row};
use regard_tasks::point::Pointer;
use regard_tasks::{say, train};
use std::path::{Path, PathBuf};

/// Where models are looked for by name: what was trained here, and what was put here.
const SHELVES: [&str; 2] = ["runs", "models"];

/// A model that is part of the program.
pub struct Shipped {
    /// Its folder in `models/`, and what `--model` takes.
    pub name: &'static str,
    /// In a sentence.
    pub about: &'static str,
    /// The recipe that made it.
    pub recipe: &'static str,
    /// The task that it was trained for.
    pub task: &'static str,
    /// On which terms.
    pub licence: &'static str,
    /// Its files.
    pub files: BuiltIn,
}

macro_rules! files {
    ($folder:literal: $($file:literal)*) => {
        BuiltIn {
            name: $folder,
            files: &[$((
                $file,
                include_bytes!(concat!("../../../models/", $folder, "/", $file)),
            )),*],
        }
    };
}

/// Every model that ships; of those for what is asked, the first is taken where none is named.
pub const SHIPPED: &[Shipped] = &[
    Shipped {
        name: "en-fr",
        about: "English to French, a Transformer",
        recipe: "tatoeba-en-fr-transformer",
        task: "translate",
        licence: TATOEBA,
        files: files!("en-fr": "config.json" "generation_config.json" "model.safetensors"
            "tokenizer.json" "tokenizer_config.json"),
    },
    Shipped {
        name: "en-fr-bahdanau",
        about: "English to French, additive attention over a bidirectional GRU",
        recipe: "tatoeba-en-fr-bahdanau",
        task: "translate",
        licence: TATOEBA,
        files: files!("en-fr-bahdanau": "config.json" "generation_config.json"
            "model.safetensors" "tokenizer.json" "tokenizer_config.json"),
    },
    Shipped {
        name: "zh-en",
        about: "Chinese to English, additive attention over a bidirectional GRU, by characters",
        recipe: "tatoeba-zh-en-bahdanau",
        task: "translate",
        licence: TATOEBA,
        files: files!("zh-en": "config.json" "generation_config.json" "model.safetensors" "source.tokenizer.json" "source.tokenizer_config.json" "target.tokenizer.json" "target.tokenizer_config.json"),
    },
    Shipped {
        name: "shakespeare",
        about: "Goes on in Shakespeare's manner, letter by letter, a GPT",
        recipe: "shakespeare-gpt",
        task: "generate",
        licence: "trained on Shakespeare's plays (tinyshakespeare), which are in the public domain",
        files: files!("shakespeare": "config.json" "generation_config.json" "model.safetensors"
            "tokenizer.json" "tokenizer_config.json"),
    },
    Shipped {
        name: "en-pos",
        about: "Parts of speech of English words, an LSTM both ways over words and their letters",
        recipe: "ewt-words",
        task: "tag",
        licence: "CC BY-SA 4.0; trained on Universal Dependencies, English Web Treebank",
        files: files!("en-pos": "config.json" "model.safetensors" "tokenizer.json"
            "tokenizer_config.json"),
    },
    Shipped {
        name: "stories",
        about: "Answers questions about short stories, and says which sentences it looked at",
        recipe: "babi",
        task: "answer-story",
        licence: "CC BY 3.0; trained on the bAbI tasks of Facebook AI Research",
        files: files!("stories": "config.json" "model.safetensors" "tokenizer.json"
            "tokenizer_config.json"),
    },
    Shipped {
        name: "digits",
        about: "Writes the English digits that are said, truncated self-attention and CTC",
        recipe: "fsdd-ctc",
        task: "recognize",
        licence: "CC BY-SA 4.0; trained on the Free Spoken Digit Dataset of Zohar Jackson and others",
        files: files!("digits": "config.json" "model.safetensors" "preprocessor_config.json"),
    },
    Shipped {
        name: "hull",
        about: "Points at the corners of a convex hull, a pointer network",
        recipe: "hull-10",
        task: "point",
        licence: GENERATED,
        files: files!("hull": "config.json" "generation_config.json" "model.safetensors"),
    },
    Shipped {
        name: "tsp",
        about: "Points at the next place of a short tour, a pointer network",
        recipe: "tsp-10",
        task: "point",
        licence: GENERATED,
        files: files!("tsp": "config.json" "generation_config.json" "model.safetensors"),
    },
    Shipped {
        name: "clothes",
        about: "Says which of ten kinds of clothes is on a grey image, a vision Transformer",
        recipe: "fashion-mnist-vit",
        task: "classify-image",
        licence: "MIT; trained on Fashion-MNIST of Zalando SE",
        files: files!("clothes": "config.json" "model.safetensors" "preprocessor_config.json"),
    },
];

/// Of models whose data are drawn by the program itself.
const GENERATED: &str = "that of the program; trained on points that it draws itself";

const TATOEBA: &str =
    "CC BY 2.0 FR; trained on sentences of tatoeba.org, by way of manythings.org/anki";

/// What a person means by a model.
pub enum Called {
    /// One that ships.
    Shipped(&'static Shipped),
    /// A folder.
    Folder(PathBuf),
    /// One of the Hugging Face Hub, by its id.
    Id(String),
}

/// A model that was found.
pub enum Found {
    /// It ships.
    Shipped(&'static Shipped),
    /// It is a folder, and of a model of the Hub a commit.
    Folder(Folder),
}

impl Found {
    /// A folder of this machine.
    pub fn folder(path: PathBuf) -> Found {
        Found::Folder(Folder { path, commit: None })
    }

    /// Its files.
    pub fn files(&self) -> ModelFiles {
        match self {
            Found::Folder(folder) => ModelFiles::Folder(folder.path.clone()),
            Found::Shipped(model) => model.files.into(),
        }
    }
}

/// The folder of a model.
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// Of a model of the Hub, which version it is.
    pub commit: Option<String>,
}

/// What a name or path stands for. A folder comes before a name on a shelf, that before a model
/// that ships, and that before one of the Hub.
pub fn called(asked: &str) -> Result<Called> {
    let direct = PathBuf::from(asked);
    if direct.is_dir() {
        return Ok(Called::Folder(direct));
    }
    // A name is one word; anything else was meant as a path.
    let is_name = direct.components().count() == 1;
    let named = SHELVES.iter().map(|shelf| Path::new(shelf).join(asked));
    if let Some(folder) = named.filter(|_| is_name).find(|folder| folder.is_dir()) {
        return Ok(Called::Folder(folder));
    }
    if let Some(model) = SHIPPED.iter().find(|model| model.name == asked) {
        return Ok(Called::Shipped(model));
    }
    if recipe::is_built_in(asked) {
        let made = SHIPPED.iter().find(|model| model.recipe == asked);
        let ships =
            made.map_or(String::new(), |m| format!(". A model of it ships: --model {}", m.name));
        bail!("{asked} is a recipe, and runs/ has no run of it: regard train {asked}{ships}");
    }
    let owner = asked.split_once('/').map(|(owner, _)| owner);
    let in_a_folder = owner.is_some_and(|o| SHELVES.contains(&o) || Path::new(o).is_dir());
    match hub::check(asked) {
        Ok(()) if !in_a_folder => Ok(Called::Id(asked.to_string())),
        Ok(()) => bail!("there is no folder {asked}; {}", known()),
        Err(why) => {
            bail!("there is no folder {asked:?}, and as the id of a model {why}; {}", known())
        }
    }
}

/// What can be asked for, in a sentence.
fn known() -> String {
    format!(
        "need a folder, a name ({}), or the id of a model of the Hugging Face Hub, such as gpt2 or \
         sentence-transformers/all-MiniLM-L6-v2",
        say::list(&names(), 12)
    )
}

/// The model of a name, folder or id.
pub fn resolve(asked: &str, hub: &Hub) -> Result<Found> {
    found(asked, hub).context("--model")
}

/// The row of a task.
fn row(task: &str) -> &'static Row {
    pipeline::task(task).expect("every pipeline and every model that ships is of a task")
}

/// Finds a model for a task: without a name, the first that ships for it; one that ships for
/// another is turned down.
fn resolve_for(row: &Row, asked: Option<&str>, hub: &Hub) -> Result<Found> {
    let found = match asked {
        Some(asked) => resolve(asked, hub)?,
        None if hub.revision.is_some() => {
            bail!("--revision: only models of the Hub have revisions; --model names one")
        }
        None => {
            let first = SHIPPED.iter().find(|model| model.task == row.models);
            let lacks = || {
                format!(
                    "--model: need a model that {}; none ships. Train one, for example with \
                     `regard train {}`, or name a folder or an id of the Hugging Face Hub: --model \
                     MODEL",
                    row.does, row.recipe
                )
            };
            Found::Shipped(first.with_context(lacks)?)
        }
    };
    match found {
        Found::Shipped(model) if model.task != row.models => {
            let of = self::row(model.task);
            bail!(
                "--model: {} {}: it is for {}, and cannot be used here; `regard models` lists the \
                 others",
                model.name,
                of.does,
                verbs(of)
            )
        }
        found => Ok(found),
    }
}

/// The verbs that use the models of a task.
fn verbs(of: &Row) -> String {
    let verbs: Vec<&str> =
        pipeline::TASKS.iter().filter(|row| row.models == of.name).map(|row| row.verb).collect();
    verbs.join(" and ")
}

fn found(asked: &str, hub: &Hub) -> Result<Found> {
    let found = match called(asked)? {
        Called::Shipped(model) => Found::Shipped(model),
        Called::Folder(path) => Found::folder(path),
        Called::Id(id) => {
            let Snapshot { folder: path, commit } = from_hub(&id, hub, hub.fetch())?;
            return Ok(Found::Folder(Folder { path, commit: Some(commit) }));
        }
    };
    match &hub.revision {
        Some(_) => bail!("{asked} is on this machine; only models of the Hub have revisions"),
        None => Ok(found),
    }
}

/// The folder of a model that another one begins with.
pub fn origin(asked: &str, hub: &Hub) -> Result<Folder> {
    match found(asked, hub)? {
        Found::Folder(folder) => Ok(folder),
        Found::Shipped(model) => bail!("{} ships, and no other can begin with it", model.name),
    }
}

/// The model of an id. One without an owner may have been meant for a name.
pub fn from_hub(id: &str, hub: &Hub, fetch: Fetch) -> Result<Snapshot> {
    let found = hub::find(id, hub, fetch);
    match id.contains('/') {
        true => found,
        false => found.map_err(|e| {
            let all = names();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            anyhow!(
                "{e}\n{}(models that ship: {})",
                say::did_you_mean(id, &all),
                shipped().join(", ")
            )
        }),
    }
}

/// Opens the model of a name, folder or id for a task.
pub fn open<P: Pipeline>(asked: Option<&str>, hub: &Hub) -> Result<P> {
    Ok(P::open(resolve_for(row(P::TASK), asked, hub)?.files())?)
}

/// A model that answers questions.
pub enum Answering {
    /// About a text in which the answer stands.
    Text(Answerer),
    /// About a story.
    Story(Listener),
}

/// Opens the model of a name, folder or id that answers questions.
pub fn answering(asked: Option<&str>, hub: &Hub) -> Result<Answering> {
    let files = train::files(resolve_for(row(Listener::TASK), asked, hub)?.files())?;
    Ok(match zoo::is::<dyn StoryModel>(&files.config()?) {
        true => Answering::Story(Listener::open(files)?),
        false => Answering::Text(Answerer::open(files)?),
    })
}

/// The model of a name or folder that points at points; without one, the one that ships for a
/// problem.
pub fn pointer(asked: Option<&str>, problem: Option<&str>, hub: &Hub) -> Result<Pointer> {
    let ships = |model: &&Shipped| model.task == Pointer::TASK && Some(model.name) == problem;
    let shipped = SHIPPED.iter().find(ships).filter(|_| asked.is_none() && hub.revision.is_none());
    let found = match (shipped, asked, problem) {
        (Some(model), ..) => Found::Shipped(model),
        (None, None, Some(problem)) => {
            bail!("--model: need one; none that ships knows {problem}: regard train {problem}-10")
        }
        _ => resolve_for(row(Pointer::TASK), asked, hub)?,
    };
    Ok(Pointer::open(found.files())?)
}

/// Writes the folder of a model of any kind: configuration and weights as they are loaded, and the
/// files of its vocabulary and of how it writes as they are.
pub fn export(asked: &str, hub: &Hub, to: &Path, precision: Precision) -> Result<()> {
    let files = train::files(resolve(asked, hub)?.files())?;
    let (config, weights, rest) = (files.config()?, files.weights()?, beside(&files)?);
    std::fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    checkpoint::write(to, &config, &weights, precision)?;
    for (name, bytes) in rest {
        let place = to.join(name);
        let folder = place.parent().unwrap_or(to);
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        checkpoint::write_file(&place, &bytes)?;
    }
    Ok(())
}

/// Reads the files of a model besides its configuration and weights.
fn beside(files: &ModelFiles) -> Result<Vec<(String, Vec<u8>)>> {
    let there = hub::small_files().into_iter().filter(|name| files.has(name));
    let read = |name: &str| Ok((name.to_string(), files.read(name, u64::MAX)?.into_owned()));
    there.map(read).collect()
}

/// The folders on the shelves that hold a model.
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

/// The names of all models that can be had by name.
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
        assert!(matches!(called("src"), Ok(Called::Folder(_))));
        assert!(matches!(called("en-fr"), Ok(Called::Shipped(_))));
        for id in ["gpt2", "google-bert/bert-base-uncased"] {
            assert!(matches!(called(id), Ok(Called::Id(found)) if found == id));
        }
        // In a folder that is here, a path was meant.
        assert!(called("src/nothing").is_err());
    }
}
