//! Recipes of any task: one TOML file from which a result can be made again.
//!
//! A recipe may name another as its `base` and then holds only where it differs: tables are laid
//! over the base's, everything else replaces what the base has. `name`, `about` and `[result]`
//! are never taken from a base, since they speak of one result.

pub(crate) mod about;
pub mod examine;
pub mod keys;
mod model;
mod names;
pub mod own;
mod table;

use crate::{answer_story, classify_graph, classify_image, fill, generate, permute, point};
use crate::{reader, recognize, summarize, train, translate};
use examine::{On, Report};
use regard_models::{Error, ModelFiles, Result, checkpoint, zoo};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::path::PathBuf;
use toml::Value;

pub(crate) use model::{ModelTable, known_text_keys, set_labels};
pub(crate) use names::rename;
pub use table::{parse, read, read_with, with};
pub use toml::Table;

/// Result of a recipe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// How it is measured.
    pub metric: String,
    /// Published results, and whose they are.
    #[serde(default)]
    pub published: String,
    /// Our result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    /// In so many minutes of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Its `metrics.jsonl`, beside the recipe.
    #[serde(default)]
    pub log: String,
}

/// The part of a recipe that every task's has, with the same meaning.
pub trait Fields {
    /// That of its file and of the run's folder.
    fn name(&self) -> &str;
    /// Name of the task.
    fn task(&self) -> &str;
    /// In a sentence.
    fn about(&self) -> &str;
    /// Where all randomness comes from.
    fn seed(&self) -> u64;
    /// Another place for it to come from.
    fn set_seed(&mut self, seed: u64);
    /// Our result, and published ones.
    fn result(&self) -> Option<&Published>;
    /// The name of its data set.
    fn data(&self) -> &str;
    /// How to train.
    fn options(&self) -> &train::Options;
    /// With all defaults.
    fn to_toml(&self) -> String;
    /// With all defaults.
    fn to_json(&self) -> Json;
}

/// A recipe of some task, as it is trained and examined.
pub trait Task: Fields {
    /// The measure by which the best model is chosen.
    fn decides(&self) -> &str;
    /// The model that it begins with, if it does not begin anew.
    fn origin(&self) -> Option<Origin<'_>> {
        None
    }
    /// Says where that model is, and which version of it that is, if it has versions: what the
    /// recipe calls it need not be a folder.
    fn set_origin(&mut self, _folder: PathBuf, _version: Option<String>) {}
    /// Checks what a type cannot say of a recipe that was read.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
    /// Reads the data and makes the model.
    fn prepare(&self) -> Result<Prepared>;
    /// Asks a model of this task, which is in a folder or a run's, what it has not learned from.
    fn examine(&self, model: &ModelFiles, on: &On) -> Result<Report>;
    /// The keys, as TOML, that a recipe must have for a model that is trained already, besides
    /// `data.set` and `model`; they are not used, unless they are about the data.
    fn of_trained(_config: &Json) -> String
    where
        Self: Sized,
    {
        String::new()
    }
}

/// A model that a recipe begins with, as the recipe calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// A folder, or a name.
    pub model: &'a str,
    /// Which version of it, where it has versions.
    pub revision: Option<&'a str>,
}

/// A kind of recipe: what all have, and the fields that this one has besides. A macro, since a
/// generic struct would need `#[serde(flatten)]`, which neither refuses unknown keys nor says which
/// key a wrong value has.
macro_rules! recipe {
    (for $($task:literal)*; $($(#[$about:meta])* $seen:vis $field:ident: $kind:ty,)*) => {
        /// A reproducible result.
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Recipe {
            /// Its name: that of its file and of the run's folder.
            pub name: String,
            /// Name of the task.
            pub task: String,
            /// In a sentence.
            #[serde(default)]
            pub about: String,
            /// Where all randomness comes from.
            #[serde(default)]
            pub seed: u64,
            /// Our result, and published ones.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub result: Option<$crate::recipe::Published>,
            $($(#[$about])* $seen $field: $kind,)*
        }

        impl Recipe {
            /// Names of its tasks.
            pub const TASKS: &'static [&'static str] = &[$($task),*];

            /// From what was read.
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
            fn options(&self) -> &$crate::train::Options {
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
    // First, so that a recipe of another task is not told of its keys.
    let task = table.get("task").and_then(Value::as_str).unwrap_or_default();
    if !tasks.contains(&task) {
        return Err(format!("task: got {task:?}, need {} here", tasks.join(" or ")));
    }
    own::check(task, &table)?;
    table.try_into().map_err(|e: toml::de::Error| keys::told(&e))
}

/// A model with something to learn from, and what there is to say of it.
pub struct Prepared {
    /// The model in training.
    pub learner: Box<dyn train::Learner>,
    /// Summary of the data: a line for each file or part and one for labels, and the sizes of the
    /// model in the last line.
    pub about: String,
}

/// A kind of recipe.
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

/// Every kind of recipe there is.
const KINDS: &[Kind] = kinds! {
    translate generate fill permute point summarize reader answer_story classify_graph
    classify_image recognize
};

/// A name becomes that of the run's folder.
const LONGEST_NAME: usize = 200;

/// The recipe, of whatever task it says it is.
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

/// Refuses `inf` and `nan`, which TOML has and JSON, which models are described in, has not.
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

/// A recipe for a model that came without one, by which it can be examined on files: its task is
/// what its head is for.
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
    // Where a recipe may begin with a model, it begins with this one.
    if table.get("from").is_some() {
        table.insert("from".into(), Value::String(folder.display().to_string()));
    }
    Ok(table)
}
