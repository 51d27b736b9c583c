//! `[model]` of a recipe: `config.json` without the values that follow from the data.

use crate::say;
use crate::train::trained::device;
use regard_models::text::{self, Head, TextModel};
use regard_models::{Capability, Error, Labels, Result, zoo};
use serde_json::{Map, Value};

/// Model configuration of a recipe, to be completed from the data.
pub(crate) struct ModelTable<'a> {
    asked: &'a Value,
    config: Value,
}

impl ModelTable<'_> {
    /// Takes the table `[model]` of a recipe.
    ///
    /// # Errors
    /// If it is not a table.
    pub fn new(asked: &Value) -> Result<ModelTable<'_>> {
        match asked {
            Value::Object(_) => Ok(ModelTable { asked, config: asked.clone() }),
            _ => Err(Error::invalid("model: need a table with at least model_type")),
        }
    }

    fn map(&mut self) -> &mut Map<String, Value> {
        self.config.as_object_mut().expect("it was checked when it was read")
    }

    /// Returns the value of a key; null if it is not set.
    pub fn get(&self, key: &str) -> &Value {
        &self.config[key]
    }

    /// Sets a key that follows from the data.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.map().insert(key.into(), value.into());
    }

    /// Sets a key unless the recipe sets it.
    pub fn set_default(&mut self, key: &str, value: impl Into<Value>) {
        self.map().entry(key).or_insert(value.into());
    }

    /// Sets the names of the labels.
    pub fn set_labels(&mut self, names: &[String]) {
        set_labels(&mut self.config, names);
    }

    /// Creates the model for training.
    ///
    /// # Errors
    /// If it cannot be created, or the recipe has a key that the model does not know.
    pub fn create<N: Capability + ?Sized>(&self, seed: u64) -> Result<Box<N>> {
        let model = zoo::create::<N>(&self.config, seed, &device()).map_err(in_model)?;
        known_keys(self.asked, &model.network().config())?;
        Ok(model)
    }

    /// Creates a text model for training.
    ///
    /// # Errors
    /// See [`ModelTable::create`].
    pub fn create_text(&self, head: Head, seed: u64) -> Result<Box<dyn TextModel>> {
        known_text_keys(self.asked, &self.config)?;
        text::create(&self.config, head, seed, &device()).map_err(in_model)
    }
}

/// Adds the table to an error about keys of a model: `model.hidden_size: got 0, need 1 to …`.
pub(crate) fn in_model(error: Error) -> Error {
    let Error::Invalid(message) = error else { return error };
    let Some((keys, rest)) = message.split_once(": ") else { return Error::Invalid(message) };
    let is_key = |key: &str| {
        let letter = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
        !key.is_empty() && key != "model" && key.chars().all(letter)
    };
    let keys: Vec<&str> = keys.split(" and ").collect();
    match keys.iter().all(|key| is_key(key)) {
        true => {
            let keys: Vec<String> = keys.iter().map(|key| format!("model.{key}")).collect();
            Error::Invalid(format!("{}: {rest}", keys.join(" and ")))
        }
        false => Error::Invalid(message),
    }
}

/// Sets the label names of a configuration.
pub(crate) fn set_labels(config: &mut Value, names: &[String]) {
    let Labels { id2label, label2id, .. } = Labels::new(names);
    config["id2label"] = Value::Object(id2label);
    config["label2id"] = Value::Object(label2id);
}

/// Rejects keys that the model does not know, as misspelt.
fn known_keys(asked: &Value, known: &Value) -> Result<()> {
    let Value::Object(known) = known else { return Ok(()) };
    known_names(asked, &known.keys().map(String::as_str).collect::<Vec<_>>())
}

/// Rejects keys that this family of text models does not have.
pub(crate) fn known_text_keys(asked: &Value, config: &Value) -> Result<()> {
    known_names(asked, &text::keys(config).map_err(in_model)?)
}

fn known_names(asked: &Value, known: &[&str]) -> Result<()> {
    let Value::Object(asked) = asked else { return Ok(()) };
    // Global attention is the default, and some configurations leave it out.
    let unsaid = serde_json::json!({ "kind": "global" });
    let unknown: Vec<&str> = asked
        .iter()
        .filter(|(key, value)| !known.contains(&key.as_str()) && **value != unsaid)
        .map(|(key, _)| key.as_str())
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "model: no such key: {}; {}the keys that have an effect here are {}",
        say::list(&unknown, 5),
        say::did_you_mean(unknown[0], known),
        say::list(known, 20)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::read;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn errors_of_a_model_name_the_table() {
        let told = |message: &str| in_model(Error::invalid(message)).to_string();
        assert_eq!(told("width: got 0, need 1"), "model.width: got 0, need 1");
        assert_eq!(told("a_b and c: got 1 and 2"), "model.a_b and model.c: got 1 and 2");
        for message in ["model: 7 parameters", "a word's vector and c: got 1", "no key", ": none"] {
            assert_eq!(told(message), message);
        }
    }

    #[test]
    fn values_of_the_wrong_kind_name_their_key() {
        for (mut model, wanted) in [
            (
                json!({ "model_type": "pointer-network" }),
                "model.hidden_size: got \"abc\", need a whole",
            ),
            (json!({ "model_type": "gat" }), "model.hidden_size: got \"abc\", need a whole number"),
            (
                json!({ "model_type": "bahdanau", "vocab_size": 9, "decoder_vocab_size": 9 }),
                "model.hidden_size: got \"abc\", need a whole number, 0 or more",
            ),
            (json!({ "model_type": "nothing" }), "model.model_type: got \"nothing\", need one of"),
        ] {
            model["hidden_size"] = "abc".into();
            let table = ModelTable::new(&model).unwrap();
            let error = table.create::<dyn regard_models::Network>(1).err().unwrap().to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
        for (kind, key) in [("bilstm", "hidden_size"), ("gpt2", "n_embd"), ("bert", "hidden_size")]
        {
            let mut model = json!({ "model_type": kind });
            model[key] = "abc".into();
            let error = ModelTable::new(&model).unwrap().create_text(Head::Bare, 1);
            let wanted = format!("model.{key}: got \"abc\", need a whole number, 0 or more");
            assert_eq!(error.err().unwrap().to_string(), wanted);
        }
    }

    #[test]
    fn a_misspelt_key_of_a_text_model_is_told() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
        let mut seen = std::collections::BTreeSet::new();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "toml") {
                continue;
            }
            let recipe = read(&path, &[]).unwrap();
            let Some(model) = recipe.get("model") else { continue };
            let mut model: Value = model.clone().try_into().unwrap();
            let kind = model["model_type"].as_str().unwrap_or_default().to_string();
            if !text::model_types().contains(&kind.as_str()) {
                continue;
            }
            known_text_keys(&model, &model).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            model["hiden_size"] = 3.into();
            let error = known_text_keys(&model, &model).unwrap_err().to_string();
            assert!(error.contains("no such key") && error.contains("hiden_size"), "{error}");
            seen.insert(kind);
        }
        let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
        assert_eq!(seen, ["bert", "bilstm", "gpt2", "llama", "xlnet"]);
    }
}
