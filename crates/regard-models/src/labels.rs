//! The labels of a model, by the keys that Hugging Face has for them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The labels that a model can give, as `config.json` has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// The name of each.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub id2label: Map<String, Value>,
    /// The number of each.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub label2id: Map<String, Value>,
    /// How many there are, if they have no names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_labels: Option<usize>,
}

impl Labels {
    /// Labels of these names, numbered in their order.
    pub fn new<S: AsRef<str>>(names: &[S]) -> Labels {
        let numbered = || names.iter().map(S::as_ref).enumerate();
        Labels {
            id2label: numbered().map(|(i, name)| (i.to_string(), name.into())).collect(),
            label2id: numbered().map(|(i, name)| (name.to_string(), i.into())).collect(),
            num_labels: None,
        }
    }

    /// The names of the labels of a configuration, by their numbers from 0 on, as far as all have
    /// one.
    pub fn names(config: &Value) -> Vec<String> {
        let names = &config["id2label"];
        let name = |i: usize| names[i.to_string()].as_str().map(str::to_string);
        (0..).map_while(name).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> Result<usize, String> {
        label_count(&serde_json::to_value(self).expect("it is plain data"))
    }
}

/// The number of labels that a configuration names: two if it names none.
pub(crate) fn label_count(config: &Value) -> Result<usize, String> {
    let named = config["id2label"].as_object().map(|names| names.len() as u64);
    match named.or(config["num_labels"].as_u64()).unwrap_or(2) {
        n @ 1..=1_000_000 => Ok(n as usize),
        n => Err(format!("num_labels: got {n}, need 1 to 1000000")),
    }
}
