//! Loading of the tokenizer of a folder, from whichever files are there.

use std::path::Path;

use regard_models::checkpoint::read_file;
use regard_models::{Error, ModelFiles, Result};
use serde_json::{Map, Value, json};

use super::chat_template::CHAT_TEMPLATE_FILE;
use super::family::TokenizerFamily;
use super::tokenizer::of_file;
use super::{Tokenizer, byte_level, one_file, spiece, wordpiece};

/// The file that defines a tokenizer completely.
pub const TOKENIZER: &str = "tokenizer.json";

/// Largest file that is read, in bytes. Vocabularies of a quarter of a million pieces have some
/// thirty million bytes.
const LARGEST: u64 = 256 << 20;

/// Configuration of a folder, read before its vocabulary.
pub struct Known {
    /// `tokenizer_config.json`, with the names of special tokens from elsewhere.
    pub config: Map<String, Value>,
    /// Added tokens with their ids.
    pub added: Vec<(u32, String)>,
    /// Family of the model's tokenizer, if the folder names one.
    pub family: Option<&'static TokenizerFamily>,
}

/// Optional configuration files beside a vocabulary.
pub const CONFIGURATION_FILES: [&str; 4] =
    ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", CHAT_TEMPLATE_FILE];

/// Returns the sets of files that a tokenizer can be made of, best first: the first set of which a
/// folder has all files is read.
pub fn vocabulary_files() -> [&'static [&'static str]; 5] {
    SOURCES.map(|(files, _)| files)
}

/// Makes a tokenizer of the contents of files.
type Make = fn(&[Vec<u8>], Known) -> Result<Tokenizer>;

/// Sets of files that make a tokenizer, best first.
const SOURCES: [(&[&str], Make); 5] = [
    (&[TOKENIZER], |files, known| Tokenizer::new(&files[0], known.completed(""))),
    (&["vocab.txt"], wordpiece::make),
    (&["vocab.json", "merges.txt"], byte_level::make),
    // As OpenAI published them.
    (&["encoder.json", "vocab.bpe"], byte_level::make),
    (&["spiece.model"], spiece::make),
];

/// Loads the tokenizer of a model.
pub fn load(model: &ModelFiles) -> Result<Tokenizer> {
    if let Some(file) = model.file() {
        crate::data::ledger::note(file);
    }
    if let Some(vocabulary) = model.vocabulary()? {
        return one_file::make(&vocabulary).map_err(|e| of_file(model.place(), e));
    }
    let complete = |files: &[&str]| files.iter().all(|name| model.has(name));
    let Some((files, make)) = SOURCES.iter().find(|(files, _)| complete(files)) else {
        let names = vocabulary_files().map(|files| files.join(" with "));
        let message = format!("has no tokenizer: need one of {}", names.join(", "));
        return Err(Error::file(model.place(), message));
    };
    let first = model.path(files[0]);
    let contents: Vec<Vec<u8>> =
        files.iter().map(|name| read_of(model, name)).collect::<Result<_>>()?;
    make(&contents, Known::of(model)?).map_err(|e| of_file(&first, e))
}

/// Loads a file in the format of `tokenizer.json`. One of that name is completed by the other
/// files; any other, by the configuration beside it.
pub fn load_file(model: &ModelFiles, name: &str) -> Result<Tokenizer> {
    let config = match name == TOKENIZER {
        true => Known::of(model)?.completed(""),
        false => object_of(model, &beside(name))?.unwrap_or_default(),
    };
    let made = Tokenizer::new(&read_of(model, name)?, config);
    made.map_err(|e| of_file(&model.path(name), e))
}

/// Name of the configuration beside a file: `tokenizer.json` has `tokenizer_config.json`, and
/// `source.json` has `source_config.json`.
pub fn beside(name: &str) -> String {
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}_config.json")
}

/// Reads a file of a model; one in a folder is recorded in the ledger.
pub fn read_of(model: &ModelFiles, name: &str) -> Result<Vec<u8>> {
    match model.folder() {
        Some(folder) => read(&folder.join(name)),
        None => Ok(model.read(name, LARGEST)?.into_owned()),
    }
}

/// Reads a file with a JSON object; `None` if it does not exist.
fn object_of(model: &ModelFiles, name: &str) -> Result<Option<Map<String, Value>>> {
    if !model.has(name) {
        return Ok(None);
    }
    let object = serde_json::from_slice(&read_of(model, name)?);
    object.map(Some).map_err(|e| Error::file(model.path(name), format!("not a JSON object: {e}")))
}

impl Known {
    fn of(model: &ModelFiles) -> Result<Known> {
        let object = |name: &str| Ok(object_of(model, name)?.unwrap_or_default());
        let [configuration, special, added_tokens, _] = CONFIGURATION_FILES;
        let mut config = object(configuration)?;
        for (key, value) in object(special)? {
            config.entry(key).or_insert(value);
        }
        // Two generations: token objects by id, or ids by token.
        let rows = config.get("added_tokens_decoder").and_then(Value::as_object);
        let rows = rows.into_iter().flatten().filter_map(|(id, token)| {
            Some((id.parse().ok()?, token.get("content")?.as_str()?.to_owned()))
        });
        let mut added: Vec<(u32, String)> = rows.collect();
        added.extend(
            object(added_tokens)?
                .into_iter()
                .filter_map(|(token, id)| Some((u32::try_from(id.as_u64()?).ok()?, token))),
        );
        added.sort();
        added.dedup();
        let family = TokenizerFamily::of(&config, &object("config.json")?);
        Ok(Known { config, added, family })
    }

    /// Returns the configuration completed by the defaults of the family; `otherwise` is the name
    /// of the family where the folder names none.
    pub fn completed(mut self, otherwise: &str) -> Map<String, Value> {
        if let Some(family) = self.family.or_else(|| TokenizerFamily::named(otherwise)) {
            family.complete(&mut self.config);
        }
        self.config
    }
}

/// Returns the `added_tokens` of a `tokenizer.json`: the special tokens that the configuration
/// names, and others that are not in the vocabulary. With `space_in_mask` the space before a mask
/// is a part of it, so that `a <mask>` is as in training: a mask instead of a word with its space.
pub fn added_tokens(
    config: &Map<String, Value>,
    added: &[(u32, String)],
    id: impl Fn(&str) -> Option<u32>,
    space_in_mask: bool,
) -> Vec<Value> {
    let mut rows: Vec<(u32, String, bool)> = Vec::new();
    for key in super::special::KEYS {
        let Some(name) = token_name(config, key) else { continue };
        let elsewhere = || added.iter().find(|(_, token)| token == name).map(|(id, _)| *id);
        let Some(id) = id(name).or_else(elsewhere) else { continue };
        if rows.iter().all(|(_, seen, _)| seen != name) {
            rows.push((id, name.to_owned(), space_in_mask && key == "mask_token"));
        }
    }
    for (id, token) in added {
        if rows.iter().all(|(_, seen, _)| seen != token) {
            rows.push((*id, token.clone(), false));
        }
    }
    rows.sort();
    let object = |(id, name, space): &(u32, String, bool)| {
        json!({"id": id, "content": name, "single_word": false, "lstrip": space,
               "rstrip": false, "normalized": false, "special": true})
    };
    rows.iter().map(object).collect()
}

/// Returns the name of a special token in a configuration, where it is a string or an object.
pub fn token_name<'a>(config: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    let value = config.get(key)?;
    value.as_str().or_else(|| value.get("content")?.as_str())
}

/// Returns a boolean of a configuration.
pub fn flag(config: &Map<String, Value>, key: &str, otherwise: bool) -> bool {
    config.get(key).and_then(Value::as_bool).unwrap_or(otherwise)
}

/// Returns a template of the special tokens around a text and around a pair, with token types;
/// `$A` and `$B` are the texts. `None` if a special token has no id.
pub fn template(
    single: &[(&str, u32)],
    pair: &[(&str, u32)],
    id: impl Fn(&str) -> Option<u32>,
) -> Option<Value> {
    let pieces = |pieces: &[(&str, u32)]| -> Vec<Value> {
        let piece = |(name, of_type): &(&str, u32)| match name.strip_prefix('$') {
            Some(text) => json!({"Sequence": {"id": text, "type_id": of_type}}),
            None => json!({"SpecialToken": {"id": name, "type_id": of_type}}),
        };
        pieces.iter().map(piece).collect()
    };
    let mut special = Map::new();
    for (name, _) in single.iter().chain(pair).filter(|(name, _)| !name.starts_with('$')) {
        let token = json!({"id": name, "ids": [id(name)?], "tokens": [name]});
        special.insert((*name).to_owned(), token);
    }
    Some(json!({"type": "TemplateProcessing", "single": pieces(single), "pair": pieces(pair),
                "special_tokens": special}))
}

/// Reads a regular file of at most `LARGEST` bytes.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    crate::data::ledger::note(path);
    read_file(path, LARGEST)
}
