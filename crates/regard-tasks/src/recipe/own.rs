//! Custom data in a recipe: the keys of `[data]` that name files, and the effect of setting one.
//!
//! A recipe names a data set, and often another for its held-out parts. A file that is set takes
//! precedence: `data.set` becomes `files`, and `held_out` of the recipe is removed. A
//! contradiction is an error that names both keys.

use crate::data::known;
use crate::say;
use regard_models::{Error, Result};
use std::path::Path;
use toml::{Table, Value};

/// Value of `data.set` for custom files.
pub const FILES: &str = "files";
/// Value of `data.set` for custom files of pairs, of the task `permute`.
pub(crate) const PAIRS: &str = "pairs";

/// Keys of `[data]` that only apply to custom files, by task.
const KEYS: &[(&[&str], &[&str])] = &[
    (&["classify"], &["train", "valid", "test", "text", "label", "header"]),
    (&["tag", "answer", "rerank", "generate", "recognize"], &["train", "valid", "test"]),
    (&["fill", "permute"], &["files"]),
    (&["translate", "point", "summarize", "answer-story"], &["folder"]),
    (&["classify-image"], &["folder", "labels"]),
    (&["classify-graph"], &["nodes", "edges", "graphs"]),
];

/// Returns the values of `data.set` that stand for custom files in a task's recipes.
pub fn sets(task: &str) -> &'static [&'static str] {
    if task == "permute" { &[FILES, PAIRS] } else { &[FILES] }
}

/// Returns the keys of a task's `[data]` that need `data.set = "files"`.
pub fn keys(task: &str) -> &'static [&'static str] {
    KEYS.iter().find(|(tasks, _)| tasks.contains(&task)).map_or(&[], |(_, keys)| keys)
}

/// Whether a set is one of a task's known ones; misspelt names are reported elsewhere.
fn is_known(task: &str, set: &str) -> bool {
    known::set(task, set).is_some()
}

fn is_own(set: &str) -> bool {
    [FILES, PAIRS].contains(&set)
}

/// Returns the string at a key; empty if there is none.
fn text<'a>(table: &'a Table, key: &str) -> &'a str {
    table.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the keys of this table that need `files`.
fn named(task: &str, data: &Table) -> Vec<&'static str> {
    keys(task).iter().copied().filter(|key| data.contains_key(*key)).collect()
}

/// Whether only the held-out parts are files, by `held_out = "files"`.
fn held_out_only(keys: &[&str], data: &Table) -> bool {
    text(data, "held_out") == FILES && !keys.contains(&"train")
}

/// Adjusts `[data]` of a recipe to the keys that `said` has just set.
///
/// # Errors
/// If `said` itself sets a known data set and files.
pub(crate) fn follow(recipe: &mut Table, said: &Table) -> Result<(), String> {
    let task = text(recipe, "task").to_string();
    let Some(Value::Table(data)) = recipe.get_mut("data") else { return Ok(()) };
    let given = named(&task, said);
    let set = text(data, "set").to_string();
    if !given.is_empty() && !is_own(&set) && !held_out_only(&given, data) {
        match said.contains_key("set") {
            true if is_known(&task, &set) => return Err(contradiction(given[0], &set)),
            true => {}
            false => drop(data.insert("set".into(), Value::String(FILES.into()))),
        }
    }
    let own = is_own(text(data, "set")) && (said.contains_key("set") || !given.is_empty());
    // The recipe's own held-out set does not apply to custom files.
    let theirs = data.get("held_out").is_some_and(Value::is_str) && !said.contains_key("held_out");
    if own && theirs && !held_out_only(&given, data) {
        data.remove("held_out");
    }
    // Nor does the fraction of it that is held out.
    if own && !said.contains_key("test_per_mille") {
        data.remove("test_per_mille");
    }
    Ok(())
}

fn contradiction(key: &str, set: &str) -> String {
    format!(
        "data.{key} is for files of your own, but data.set is {set:?}: set data.set=files, or \
         leave data.{key} out"
    )
}

/// Checks `[data]` for contradictions.
pub(crate) fn check(task: &str, recipe: &Table) -> Result<(), String> {
    let Some(Value::Table(data)) = recipe.get("data") else { return Ok(()) };
    let (set, given) = (text(data, "set"), named(task, data));
    if !given.is_empty() && is_known(task, set) && !held_out_only(&given, data) {
        return Err(contradiction(given[0], set));
    }
    let held_out = text(data, "held_out");
    let parts = given.iter().find(|key| ["valid", "test"].contains(*key));
    match parts {
        Some(key) if is_own(set) && !held_out.is_empty() && held_out != FILES => Err(format!(
            "data.held_out is {held_out:?} and data.{key} names a file: both set the held-out \
             data; leave one of them out"
        )),
        _ => Ok(()),
    }
}

/// Checks that a file or folder named by a key exists.
pub(crate) fn there(key: &str, path: &Path) -> Result<()> {
    match path.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => {
            let path = say::short(&path.display().to_string(), 300);
            Err(Error::invalid(format!("data.{key}: there is no file {path}")))
        }
        Err(why) => Err(Error::invalid(format!("data.{key}: {}: {why}", path.display()))),
    }
}

/// Returns the file that a key names, or an error if it is not set or does not exist.
pub(crate) fn file<'a>(
    key: &str,
    path: &'a Option<std::path::PathBuf>,
    what: &str,
) -> Result<&'a Path> {
    match path {
        Some(path) => there(key, path).map(|()| path.as_path()),
        None => Err(missing(key, what)),
    }
}

/// Builds the error for a key that `files` needs and that is not set.
pub(crate) fn missing(key: &str, what: &str) -> Error {
    Error::invalid(format!("data.{key}: data.set=files needs it; set data.{key} to {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(recipe: &str, said: &str) -> Result<Table, String> {
        let mut recipe: Table = toml::from_str(recipe).unwrap();
        let said: Table = toml::from_str(said).unwrap();
        let data = recipe["data"].as_table_mut().unwrap();
        said.iter().for_each(|(key, value)| drop(data.insert(key.clone(), value.clone())));
        follow(&mut recipe, &said)?;
        check(text(&recipe, "task"), &recipe)?;
        Ok(recipe["data"].as_table().unwrap().clone())
    }

    const PHRASES: &str =
        "task = 'classify'\n[data]\nset = 'sst2-phrases'\nheld_out = 'sst2-sentences'";

    #[test]
    fn files_of_ones_own_win_over_the_sets_of_a_recipe() {
        for said in [
            "train = 'a.csv'\nvalid = 'b.csv'",
            "set = 'files'\ntrain = 'a.csv'",
            "set = 'files'\ntrain = 'a.csv'\nvalid = 'b.csv'\ntest = 'c.csv'",
        ] {
            let data = followed(PHRASES, said).unwrap();
            assert_eq!(text(&data, "set"), FILES, "{said}");
            assert!(!data.contains_key("held_out"), "{said}");
        }
    }

    #[test]
    fn what_was_said_is_kept() {
        let data = followed(PHRASES, "held_out = 'files'\nvalid = 'b.csv'").unwrap();
        assert_eq!((text(&data, "set"), text(&data, "held_out")), ("sst2-phrases", FILES));
        let said = "set = 'files'\ntrain = 'a.csv'\nheld_out = 'sst2-sentences'";
        assert_eq!(text(&followed(PHRASES, said).unwrap(), "held_out"), "sst2-sentences");
        let data = followed(PHRASES, "max_tokens = 9").unwrap();
        assert_eq!(text(&data, "held_out"), "sst2-sentences");
        // For points these keys are numbers of sets to draw, and name no files.
        let points = "task = 'point'\n[data]\nset = 'drawn'\nheld_out = [10, 10]";
        let data = followed(points, "train = 50\nvalid = 9").unwrap();
        assert!(text(&data, "set") == "drawn" && data.contains_key("held_out"));
    }

    #[test]
    fn contradictions_name_both_keys() {
        let error = |said: &str| followed(PHRASES, said).unwrap_err();
        let told = error("set = 'sst2-phrases'\ntrain = 'a.csv'");
        assert!(told.contains("data.train") && told.contains("data.set"), "{told}");
        let told = error("set = 'files'\nvalid = 'b.csv'\nheld_out = 'sst2-sentences'");
        assert!(told.contains("data.held_out") && told.contains("data.valid"), "{told}");
    }
}
