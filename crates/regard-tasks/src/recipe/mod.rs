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

use crate::{answer_story, classify_graph, classify_image, fill, generate, permute, point};
use crate::{reader, recognize, say, summarize, train, translate};
use examine::{On, Report};
use regard_models::{Error, ModelFiles, Result, checkpoint, zoo};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use toml::Value;

pub(crate) use model::{ModelTable, known_text_keys, set_labels};
pub(crate) use names::rename;
pub use toml::Table;

/// What a recipe gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// How it is measured.
    pub metric: String,
    /// What others got, and who.
    #[serde(default)]
    pub published: String,
    /// What we got.
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
    /// What for.
    fn task(&self) -> &str;
    /// In a sentence.
    fn about(&self) -> &str;
    /// Where all randomness comes from.
    fn seed(&self) -> u64;
    /// Another place for it to come from.
    fn set_seed(&mut self, seed: u64);
    /// What came of it, and what others got.
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
            /// What for.
            pub task: String,
            /// In a sentence.
            #[serde(default)]
            pub about: String,
            /// Where all randomness comes from.
            #[serde(default)]
            pub seed: u64,
            /// What came of it, and what others got.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub result: Option<$crate::recipe::Published>,
            $($(#[$about])* $seen $field: $kind,)*
        }

        impl Recipe {
            /// What it can be for.
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

/// What a table says, if it is for one of these tasks.
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
    /// What is trained.
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
    lay_over(&mut table, read(&(kind.of_trained)(&config)));
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    table.insert("name".into(), Value::String(name.into_owned()));
    // Where a recipe may begin with a model, it begins with this one.
    if table.get("from").is_some() {
        table.insert("from".into(), Value::String(folder.display().to_string()));
    }
    Ok(table)
}

/// More bases than this are taken for a circle.
const DEEPEST: usize = 8;

/// Reads a recipe whose base, if it has one, is a file beside it, with values that stand in for
/// its own: `train.steps=100`.
pub fn read(path: &Path, overrides: &[String]) -> Result<Table> {
    read_with(path, overrides, &|_| None)
}

/// Reads a recipe as [`read`] does; a base that is no file beside it may be one of `others`.
pub fn read_with(
    path: &Path,
    overrides: &[String],
    others: &dyn Fn(&str) -> Option<String>,
) -> Result<Table> {
    let text = checkpoint::read_text(path)?;
    let beside = |name: &str| {
        let folder = path.parent().unwrap_or(Path::new(""));
        let beside = folder.join(format!("{name}.toml"));
        if beside.exists() { checkpoint::read_text(&beside).ok() } else { others(name) }
    };
    parse(&text, overrides, &beside).map_err(|message| Error::file(path, message))
}

/// The same from text, with the texts of bases by their names.
pub fn parse(
    text: &str,
    overrides: &[String],
    base: &dyn Fn(&str) -> Option<String>,
) -> Result<Table, String> {
    with(merged(text, base, DEEPEST)?, overrides)
}

/// A recipe with values that stand in for its own.
pub fn with(mut table: Table, overrides: &[String]) -> Result<Table, String> {
    let mut said = Table::new();
    for each in overrides {
        let (key, value) = each
            .split_once('=')
            .ok_or_else(|| format!("{each:?}: an override is KEY=VALUE, as train.lr=0.001"))?;
        set(&mut table, key.trim(), value.trim())?;
        set(&mut said, key.trim(), value.trim())?;
    }
    rename(&mut table);
    if let Some(Value::Table(data)) = said.get("data") {
        own::follow(&mut table, data)?;
    }
    Ok(table)
}

fn merged(text: &str, base: &dyn Fn(&str) -> Option<String>, deep: usize) -> Result<Table, String> {
    let mut table: Table = toml::from_str(text).map_err(|e| e.to_string())?;
    rename(&mut table);
    let Some(name) = table.remove("base") else { return Ok(table) };
    let name = name.as_str().ok_or("base: need the name of a recipe")?.to_string();
    if deep == 0 {
        return Err(format!("base: {name:?} is the base of its own base"));
    }
    let text = base(&name).ok_or_else(|| {
        format!("base: there is no recipe {name:?}, neither beside it nor built in")
    })?;
    let mut below = merged(&text, base, deep - 1).map_err(|e| format!("base {name:?}: {e}"))?;
    for own in ["name", "about", "result"] {
        below.remove(own);
    }
    let said = table.get("data").and_then(Value::as_table).cloned();
    lay_over(&mut below, table);
    if let Some(data) = said {
        own::follow(&mut below, &data)?;
    }
    Ok(below)
}

/// Lays tables over tables. A table with a `kind` is one value: what belongs to one kind does
/// not belong to another.
fn lay_over(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) if !over.contains_key("kind") => {
                lay_over(under, over);
            }
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// Puts a value at a dotted key; what does not read as TOML is a string.
fn set(table: &mut Table, key: &str, value: &str) -> Result<(), String> {
    let read: Result<Table, _> = toml::from_str(&format!("x = {value}"));
    let value = match read {
        Ok(mut table) => table.remove("x").expect("it was just read"),
        Err(_) => Value::String(value.to_string()),
    };
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().filter(|last| !last.is_empty());
    let last = last.ok_or_else(|| format!("{key:?} is not a key"))?;
    if parts.len() > DEEPEST {
        let deep = parts.len();
        return Err(format!(
            "{}: a key in {deep} tables; none is in more than {DEEPEST}",
            say::short(key, 60)
        ));
    }
    let mut inside = table;
    for part in parts {
        let entry = inside.entry(part).or_insert_with(|| Value::Table(Table::new()));
        inside = entry.as_table_mut().ok_or_else(|| format!("{key}: {part} is not a table"))?;
    }
    inside.insert(last.to_string(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str) -> Option<String> {
        let text = match name {
            "below" => {
                "name = 'below'\nseed = 3\n[result]\nours = 1\n[train]\nsteps = 5\nlr = 1\n\
                        [model]\nattention = { kind = 'window', left = 1, right = 2 }"
            }
            "middle" => "name = 'middle'\nbase = 'below'\n[train]\nlr = 2",
            "circle" => "base = 'circle'",
            _ => return None,
        };
        Some(text.to_string())
    }

    #[test]
    fn a_recipe_says_only_where_it_differs_from_its_base() {
        let text = "name = 'top'\nbase = 'middle'\n[model]\nattention = { kind = 'global' }";
        let table = parse(text, &["train.steps=9".into()], &library).unwrap();
        let wanted = "name = 'top'\nseed = 3\n[train]\nsteps = 9\nlr = 2\n[model]\n\
                      attention = { kind = 'global' }";
        assert_eq!(table, toml::from_str(wanted).unwrap());
    }

    #[test]
    fn numbers_are_finite() {
        for value in ["inf", "-inf", "nan"] {
            let text = format!("task = 'classify'\n[model]\nembedding_size = {value}");
            let error = task(parse(&text, &[], &library).unwrap()).err().unwrap();
            assert!(error.starts_with("model.embedding_size: got"), "{error}");
        }
    }

    #[test]
    fn bases_that_cannot_be() {
        let error = |text: &str| parse(text, &[], &library).unwrap_err();
        assert!(error("base = 'above'").contains("no recipe \"above\""));
        assert!(error("base = 'circle'").contains("of its own base"));
        assert!(error("base = 3").contains("need the name"));
    }
}
