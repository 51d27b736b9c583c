//! The labels of a model, with Hugging Face's keys.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Labels of a classifier, as in `config.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// Name of each label, by its id as a decimal string.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub id2label: Map<String, Value>,
    /// Id of each label, by its name.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub label2id: Map<String, Value>,
    /// Number of labels, if they have no names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_labels: Option<usize>,
}

impl Labels {
    /// Makes labels of these names, with ids in their order.
    pub fn new<S: AsRef<str>>(names: &[S]) -> Labels {
        let numbered = || names.iter().map(S::as_ref).enumerate();
        Labels {
            id2label: numbered().map(|(i, name)| (i.to_string(), name.into())).collect(),
            label2id: numbered().map(|(i, name)| (name.to_string(), i.into())).collect(),
            num_labels: None,
        }
    }

    /// Returns the names of a configuration's labels, by id from 0 up to the first without a
    /// name.
    pub fn names(config: &Value) -> Vec<String> {
        let names = &config["id2label"];
        let name = |i: usize| names[i.to_string()].as_str().map(str::to_string);
        (0..).map_while(name).collect()
    }

    /// Number of labels.
    pub(crate) fn count(&self) -> Result<usize, String> {
        label_count(&serde_json::to_value(self).expect("it is plain data"))
    }
}

/// Number of labels of a configuration: two if it does not say.
pub(crate) fn label_count(config: &Value) -> Result<usize, String> {
    let named = config["id2label"].as_object().map(|names| names.len() as u64);
    match named.or(config["num_labels"].as_u64()).unwrap_or(2) {
        n @ 1..=1_000_000 => Ok(n as usize),
        n => Err(format!("num_labels: got {n}, need 1 to 1000000")),
    }
}
