//! What a file's header says, compared with the configuration that it was made of.
//!
//! A GGUF file has no key for much of what a configuration can ask for. So the header is read back
//! as any file is, and both configurations are read by the model's family, which fills in its own
//! defaults: they must agree in all that is computed.

use super::super::Gguf;
use crate::sizes::short;
use crate::text::{Body, Head, Sizes, activation};
use crate::{bert, decoder, gpt2};
use serde_json::{Value, json};

/// Keys that change no prediction: initial values, dropout, and the padding that is not trained.
const TRAINING: [&str; 10] = [
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "classifier_dropout",
    "embd_pdrop",
    "hidden_dropout_prob",
    "initializer_range",
    "pad_token_id",
    "resid_pdrop",
    "use_cache",
];
/// Keys with the name of an activation; some have several names.
const ACTIVATIONS: [&str; 3] = ["activation_function", "hidden_act", "hidden_activation"];
/// Longest value in a message.
const SHOWN: usize = 60;

/// Settings of a configuration, each in words, and what the heads need.
pub fn settings(of: &str, config: &Value) -> Result<(String, Sizes), String> {
    fn read<B: Body>(config: &Value) -> Result<(String, Sizes), String>
    where
        B::Config: std::fmt::Debug,
    {
        let settings = B::configure(config, Head::Words)?;
        Ok((format!("{settings:?}"), B::sizes(&settings)))
    }
    match of {
        "gpt2" => read::<gpt2::Gpt2>(config),
        "bert" => read::<bert::Bert>(config),
        _ => read::<decoder::Decoder>(config),
    }
}

/// Compares a file with the configuration that it was made of.
///
/// # Errors
/// Names the keys that would be read as another value.
pub fn same(of: &str, config: &Value, file: &Gguf) -> Result<(), String> {
    let config = complete(of, config);
    let again = like(of, &config, file.config()?);
    let read = |config: &Value| settings(of, config).map(|(settings, _)| settings).ok();
    let (wanted, got) = (settings(of, &config)?.0, settings(of, &again)?.0);
    if wanted == got {
        return Ok(());
    }
    let keys = |config: &Value| -> Vec<String> {
        config.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let mut names = keys(&config);
    names.extend(keys(&again).into_iter().filter(|key| config.get(key).is_none()));
    let with = |config: &Value, key: &str, value: Option<&Value>| {
        let mut config = config.clone();
        match value {
            Some(value) => config[key] = value.clone(),
            None => _ = config.as_object_mut().map(|keys| keys.remove(key)),
        }
        read(&config)
    };
    // One key that explains all, or else all that matter.
    let alone = |key: &&String| with(&config, key, again.get(key)) == Some(got.clone());
    let matters = |key: &&String| with(&config, key, again.get(key)) != Some(wanted.clone());
    let found: Vec<&String> = match names.iter().find(alone) {
        Some(key) => vec![key],
        None => names.iter().filter(matters).collect(),
    };
    let value = |key: &str, config: &Value| match config.get(key) {
        Some(value) => short(&value.to_string(), SHOWN),
        None => "no such key".into(),
    };
    let said = found.iter().map(|key| {
        format!("{key}: got {}, read back as {}", value(key, &config), value(key, &again))
    });
    let said: Vec<String> = said.collect();
    Err(format!("a GGUF file of the architecture {of} cannot have this model: {}", said.join("; ")))
}

/// A configuration with what its family computes of other keys.
fn complete(of: &str, config: &Value) -> Value {
    let mut config = config.clone();
    if of == "gpt2" && config["n_inner"].is_null() {
        config["n_inner"] = json!(config["n_embd"].as_u64().map(|width| width.saturating_mul(4)));
    }
    config
}

/// The configuration of a file as one of the family of `config`, with its keys of training.
fn like(of: &str, config: &Value, mut again: Value) -> Value {
    if config["model_type"] == "mistral" {
        again["sliding_window"] = Value::Null;
    }
    let mut copied = vec!["model_type"];
    copied.extend(TRAINING);
    if of == "bert" {
        // Files have no output layer.
        copied.push("tie_word_embeddings");
    }
    let function = |config: &Value, key: &str| activation(key, config[key].as_str()?).ok();
    copied.extend(ACTIVATIONS.iter().filter(|key| {
        let [a, b] = [config, &again].map(|config| function(config, key));
        a.is_some() && a == b
    }));
    for key in copied {
        match config.get(key) {
            Some(value) => again[key] = value.clone(),
            None => _ = again.as_object_mut().map(|keys| keys.remove(key)),
        }
    }
    again
}
