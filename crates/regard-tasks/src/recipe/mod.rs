//! Recipes of any task: one TOML file that reproduces a result.
//!
//! A recipe may name another as its `base` and then holds only the differences: tables are merged
//! into the base's, other values replace those of the base. `name`, `about` and `[result]` are
//! never inherited, since they describe one result.

pub(crate) mod about;
pub(crate) mod details;
pub mod evaluation;
pub mod keys;
mod model;
mod names;
pub mod own;
mod table;

use crate::{answer_story, classify_graph, classify_image, fill, generate, permute, point};
use crate::{reader, recognize, summarize, train, translate};
use evaluation::{EvaluationData, Report};
use regard_models::{Error, ModelFiles, Result, checkpoint, zoo};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::path::PathBuf;
use toml::Value;

pub(crate) use model::{ModelTable, in_model, known_text_keys, set_labels};
pub(crate) use names::rename;
pub(crate) use table::lay_over;
pub use table::{parse, read, read_with, with};
pub use toml::Table;

/// Published and reproduced results of a recipe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Metric and data set of the result.
    pub metric: String,
    /// Published results with their sources.
    #[serde(default)]
    pub published: String,
    /// Result that this recipe reached; `None` if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    /// Minutes of training for that result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Name of that run's `metrics.jsonl`, in the folder of the recipe.
    #[serde(default)]
    pub log: String,
}

/// Fields that the recipes of all tasks have, with the same meaning.
pub trait Fields {
    /// Returns the name: that of the file and of the run's folder.
    fn name(&self) -> &str;
    /// Returns the name of the task.
    fn task(&self) -> &str;
    /// Returns a description in a sentence.
    fn about(&self) -> &str;
    /// Returns the seed of all randomness.
    fn seed(&self) -> u64;
    /// Sets the seed.
    fn set_seed(&mut self, seed: u64);
    /// Returns published and reproduced results, if any.
    fn result(&self) -> Option<&Published>;
    /// Returns the name of the data set.
    fn data(&self) -> &str;
    /// Returns the options of the training loop.
    fn options(&self) -> &train::TrainOptions;
    /// Formats the recipe as TOML, with all defaults.
    fn to_toml(&self) -> String;
    /// Converts the recipe to JSON, with all defaults.
    fn to_json(&self) -> Json;
}

/// A recipe of any task, to train and evaluate.
pub trait Task: Fields {
    /// Returns the name of the model selection metric.
    fn decides(&self) -> &str;
    /// Returns the pretrained model to start from; `None` to train from scratch.
    fn origin(&self) -> Option<Origin<'_>> {
        None
    }
    /// Sets the folder of that model and its version, if it has versions: the name in the recipe
    /// need not be a folder.
    fn set_origin(&mut self, _folder: PathBuf, _version: Option<String>) {}
    /// Checks constraints that the types of the fields do not express.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
    /// Reads the data and creates the model.
    fn prepare(&self) -> Result<Prepared>;
    /// Evaluates a model of this task, given as a folder or a run's, on held-out data.
    fn evaluate(&self, model: &ModelFiles, on: &EvaluationData) -> Result<Report>;
    /// Returns, as TOML, the keys that a recipe for an already trained model must have, besides
    /// `data.set` and `model`; only those about the data are used.
    fn of_trained(_config: &Json) -> String
    where
        Self: Sized,
    {
        String::new()
    }
}

/// A pretrained model, as a recipe names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Folder, or a name that is resolved to one.
    pub model: &'a str,
    /// Version of the model; `None` for the default, or if it has no versions.
    pub revision: Option<&'a str>,
}

/// Defines the recipe of a task: the common fields and its own. A macro, since a generic struct
/// would need `#[serde(flatten)]`, which neither rejects unknown keys nor names the key of a wrong
/// value.
macro_rules! recipe {
    (for $($task:literal)*; $($(#[$about:meta])* $seen:vis $field:ident: $kind:ty,)*) => {
        /// A recipe: everything that determines a result.
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Recipe {
            /// Name of the recipe: that of its file and of the run's folder.
            pub name: String,
            /// Name of the task.
            pub task: String,
            /// Description in a sentence.
            #[serde(default)]
            pub about: String,
            /// Seed of all randomness.
            #[serde(default)]
            pub seed: u64,
            /// Published and reproduced results.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub result: Option<$crate::recipe::Published>,
            $($(#[$about])* $seen $field: $kind,)*
        }

        impl Recipe {
            /// Names of the tasks that use this type of recipe.
            pub const TASKS: &'static [&'static str] = &[$($task),*];

            /// Deserialises and checks a recipe.
            pub fn from_table(table: $crate::recipe::Table) -> Result<Recipe, String> {
                let recipe: Recipe = $crate::recipe::of_table(table, Recipe::TASKS)?;
                $crate::recipe::Task::check(&recipe)?;
                Ok(recipe)
            }
        }

        impl $crate::recipe::Fields for Recipe {
            fn name(&self) -> &str {
                &self.name
            }
            fn task(&self) -> &str {
                &self.task
            }
            fn about(&self) -> &str {
                &self.about
            }
            fn seed(&self) -> u64 {
                self.seed
            }
            fn set_seed(&mut self, seed: u64) {
                self.seed = seed;
            }
            fn result(&self) -> Option<&$crate::recipe::Published> {
                self.result.as_ref()
            }
            fn data(&self) -> &str {
                &self.data.set
            }
            fn options(&self) -> &$crate::train::TrainOptions {
                &self.train
            }
            fn to_toml(&self) -> String {
                toml::to_string_pretty(self).expect("recipes are plain data")
            }
            fn to_json(&self) -> serde_json::Value {
                serde_json::to_value(self).expect("recipes are plain data")
            }
        }
    };
}
pub(crate) use recipe;

/// Deserialises a table, if it is for one of these tasks.
pub(crate) fn of_table<R: DeserializeOwned>(mut table: Table, tasks: &[&str]) -> Result<R, String> {
    rename(&mut table);
    // First, so that a recipe of another task gets no message about its keys.
    let task = table.get("task").and_then(Value::as_str).unwrap_or_default();
    if !tasks.contains(&task) {
        return Err(format!("task: got {task:?}, need {} here", tasks.join(" or ")));
    }
    own::check(task, &table)?;
    table.try_into().map_err(|e: toml::de::Error| keys::told(&e))
}

/// A model with its training data, and a summary of both.
pub struct Prepared {
    /// Model in training.
    pub learner: Box<dyn train::Learner>,
    /// Summary of the data: a line for each file or part and one for labels, and the sizes of the
    /// model in the last line.
    pub about: String,
}

/// A type of recipe.
struct Kind {
    tasks: &'static [&'static str],
    make: fn(Table) -> Result<Box<dyn Task>, String>,
    of_trained: fn(&Json) -> String,
}

macro_rules! kinds {
    ($($room:ident)*) => {
        &[$(Kind {
            tasks: $room::Recipe::TASKS,
            make: |table| Ok(Box::new($room::Recipe::from_table(table)?)),
            of_trained: <$room::Recipe as Task>::of_trained,
        }),*]
    };
}

/// All types of recipes.
const KINDS: &[Kind] = kinds! {
    translate generate fill permute point summarize reader answer_story classify_graph
    classify_image recognize
};

/// Maximum length of a name in bytes, since it becomes the name of the run's folder.
const LONGEST_NAME: usize = 200;

/// Deserialises a recipe of the task that it names.
pub fn task(mut table: Table) -> Result<Box<dyn Task>, String> {
    rename(&mut table);
    let asked = table.get("task").and_then(Value::as_str).unwrap_or("");
    let known = kind_of(asked);
    for (key, value) in &table {
        check_finite(key, value)?;
    }
    let name = table.get("name").and_then(Value::as_str).unwrap_or("");
    if name.len() > LONGEST_NAME {
        let length = name.len();
        return Err(format!("name: got {length} bytes, need at most {LONGEST_NAME}"));
    }
    let kind = known.ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().flat_map(|kind| kind.tasks).copied().collect();
        format!("task: got {asked:?}, need one of {}", names.join(", "))
    })?;
    (kind.make)(table)
}

fn kind_of(task: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.tasks.contains(&task))
}

/// Rejects `inf` and `nan`, which TOML has but JSON (used for model configurations) has not.
fn check_finite(key: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Float(x) if !x.is_finite() => Err(format!("{key}: got {x}, need a finite number")),
        Value::Array(list) => list.iter().try_for_each(|value| check_finite(key, value)),
        Value::Table(table) => {
            table.iter().try_for_each(|(inner, v)| check_finite(&format!("{key}.{inner}"), v))
        }
        _ => Ok(()),
    }
}

/// Builds a recipe for a model that has none, with which it can be evaluated on files; the task
/// follows from the model's head.
pub fn of_model(model: impl Into<ModelFiles>) -> Result<Table> {
    let files = train::files(model)?;
    let (config, folder) = (files.config()?, files.place());
    let of_config = |e: Error| Error::file(files.path(checkpoint::CONFIG), e.to_string());
    let purpose = zoo::task_of(&config).map_err(of_config)?;
    let kind = kind_of(purpose).expect("every model is for a task that has recipes");
    let text = format!("task = '{purpose}'\n[data]\nset = 'files'\n[model]");
    let read = |text: &str| parse(text, &[], &|_| None).expect("it is a table");
    let mut table = read(&text);
    table::lay_over(&mut table, read(&(kind.of_trained)(&config)));
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    table.insert("name".into(), Value::String(name.into_owned()));
    // Where a recipe may start from a pretrained model, it starts from this one.
    if table.get("from").is_some() {
        table.insert("from".into(), Value::String(folder.display().to_string()));
    }
    Ok(table)
}
