//! From what a person calls a model to the model: one that ships with the program, one on a shelf
//! of this folder, or a folder.

use anyhow::{Context, Result, bail};
use regard_models::text::Head;
use regard_tasks::language::Writer;
use regard_tasks::reading::Reader;
use regard_tasks::train;
use regard_tasks::translate::{Embedded, Translator};
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
    /// On which terms.
    pub licence: &'static str,
    /// Its files.
    pub embedded: Embedded,
}

macro_rules! files {
    ($folder:literal: $($file:literal)*) => {
        Embedded {
            files: &[$((
                $file,
                include_bytes!(concat!("../../../models/", $folder, "/", $file)),
            )),*],
        }
    };
}

/// Every model that ships; the first is taken where none is named.
pub const SHIPPED: &[Shipped] = &[
    Shipped {
        name: "en-fr",
        about: "English to French, a Transformer",
        recipe: "tatoeba-en-fr-transformer",
        licence: TATOEBA,
        embedded: files!("en-fr": "config.json" "generation_config.json" "model.safetensors"
            "tokenizer.json" "tokenizer_config.json"),
    },
    Shipped {
        name: "en-fr-bahdanau",
        about: "English to French, additive attention over a bidirectional GRU",
        recipe: "tatoeba-en-fr-bahdanau",
        licence: TATOEBA,
        embedded: files!("en-fr-bahdanau": "config.json" "generation_config.json"
            "model.safetensors" "tokenizer.json" "tokenizer_config.json"),
    },
    Shipped {
        name: "zh-en",
        about: "Chinese to English, additive attention over a bidirectional GRU, by characters",
        recipe: "tatoeba-zh-en-bahdanau",
        licence: TATOEBA,
        embedded: files!("zh-en": "config.json" "generation_config.json" "model.safetensors" "source.tokenizer.json" "source.tokenizer_config.json" "target.tokenizer.json" "target.tokenizer_config.json"),
    },
];

const TATOEBA: &str =
    "CC BY 2.0 FR; trained on sentences of tatoeba.org, by way of manythings.org/anki";

/// A model that was found.
pub enum Found {
    /// It ships.
    Shipped(&'static Shipped),
    /// It is a folder.
    Folder(PathBuf),
}

/// What a name or path stands for. A folder comes before a name on a shelf, and that before a
/// model that ships.
pub fn resolve(asked: Option<&str>) -> Result<Found> {
    let Some(asked) = asked else { return Ok(Found::Shipped(&SHIPPED[0])) };
    let direct = PathBuf::from(asked);
    if direct.is_dir() {
        return Ok(Found::Folder(direct));
    }
    // A name is one word; anything else was meant as a path.
    let is_name = direct.components().count() == 1;
    let named = SHELVES.iter().map(|shelf| Path::new(shelf).join(asked));
    if let Some(folder) = named.filter(|_| is_name).find(|folder| folder.is_dir()) {
        return Ok(Found::Folder(folder));
    }
    match SHIPPED.iter().find(|model| model.name == asked) {
        Some(model) => Ok(Found::Shipped(model)),
        None => {
            let names = names().join(", ");
            bail!("--model: no model is called {asked:?}, and no folder; there are {names}")
        }
    }
}

/// The translator of a name or folder.
pub fn translator(asked: Option<&str>) -> Result<Translator> {
    match resolve(asked)? {
        Found::Folder(folder) => Ok(Translator::load(&folder)?),
        Found::Shipped(model) => {
            Translator::embedded(&model.embedded).with_context(|| model.name.to_string())
        }
    }
}

/// The folder of a name or folder, for a model that is not one of those that ship.
pub fn folder(asked: &str) -> Result<PathBuf> {
    match resolve(Some(asked))? {
        Found::Folder(folder) => Ok(folder),
        Found::Shipped(model) => bail!("--model: {} translates, and does no more", model.name),
    }
}

/// The language model of a name or folder.
pub fn writer(asked: &str) -> Result<Writer> {
    match resolve(Some(asked))? {
        Found::Folder(folder) => Ok(Writer::load(&folder)?),
        Found::Shipped(model) => bail!("--model: {} translates, and does not go on", model.name),
    }
}

/// The model of a name or folder that reads texts, for what it is asked.
pub fn reader(asked: &str, head: Head) -> Result<Reader> {
    Ok(Reader::load(&folder(asked)?, head)?)
}

/// The folders on the shelves that hold a model.
pub fn on_shelves() -> Vec<PathBuf> {
    let folders = SHELVES.iter().filter_map(|shelf| std::fs::read_dir(shelf).ok()).flatten();
    let mut models: Vec<PathBuf> = folders
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| train::resolve(path).is_ok())
        .collect();
    models.sort();
    models
}

/// The names of all models that can be had by name.
fn names() -> Vec<String> {
    let shipped = SHIPPED.iter().map(|model| model.name.to_string());
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
            let translator = Translator::embedded(&model.embedded).unwrap();
            assert!(translator.parameters() > 100_000, "{}", model.name);
            bytes += model.embedded.files.iter().map(|(_, file)| file.len()).sum::<usize>();
        }
        assert!(bytes < 24 << 20, "models of {bytes} bytes ship; 24 MB are the limit");
    }

    #[test]
    fn an_unknown_name_is_told_what_there_is() {
        let error = resolve(Some("klingon")).err().unwrap().to_string();
        assert!(error.contains("klingon") && error.contains("en-fr"), "{error}");
    }
}
