//! TOML tables of recipes: files, bases and overrides.

use super::{names, own};
use crate::import::copies::set_places;
use crate::say;
use crate::train::RECIPE;
use regard_models::{Error, Result, checkpoint};
use std::path::Path;
use toml::{Table, Value};

/// Maximum depth of bases (more are taken for a cycle) and of nested keys.
const DEEPEST: usize = 8;

/// Reads a recipe whose base, if any, is a file in the same folder, with overrides such as
/// `train.steps=100`.
pub fn read(path: &Path, overrides: &[String]) -> Result<Table> {
    read_with(path, overrides, &|_| None)
}

/// Reads a recipe as [`read`] does; a base that is not a file there is looked up in `others`.
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
    let told = |message: String| Error::file(path, message);
    let mut table = merged(&text, &beside, DEEPEST).map_err(told)?;
    if let (true, Some(run)) = (path.ends_with(RECIPE), path.parent()) {
        set_places(&mut table, run)?;
    }
    with(table, overrides).map_err(told)
}

/// Parses a recipe; `base` returns the texts of bases by their names.
pub fn parse(
    text: &str,
    overrides: &[String],
    base: &dyn Fn(&str) -> Option<String>,
) -> Result<Table, String> {
    with(merged(text, base, DEEPEST)?, overrides)
}

/// Returns a recipe with overrides applied.
pub fn with(mut table: Table, overrides: &[String]) -> Result<Table, String> {
    let mut said = Table::new();
    for each in overrides {
        let (key, value) = each
            .split_once('=')
            .ok_or_else(|| format!("{each:?}: need KEY=VALUE, such as train.lr=0.001"))?;
        set(&mut table, key.trim(), value.trim())?;
        set(&mut said, key.trim(), value.trim())?;
    }
    names::rename(&mut table);
    if let Some(Value::Table(data)) = said.get("data") {
        own::follow(&mut table, data)?;
    }
    Ok(table)
}

fn merged(text: &str, base: &dyn Fn(&str) -> Option<String>, deep: usize) -> Result<Table, String> {
    let mut table: Table = toml::from_str(text).map_err(|e| e.to_string())?;
    names::rename(&mut table);
    let Some(name) = table.remove("base") else { return Ok(table) };
    let name = name.as_str().ok_or("base: need the name of a recipe")?.to_string();
    if deep == 0 {
        return Err(format!(
            "base: {name:?} depends on itself through its bases, or on more than {DEEPEST} of them"
        ));
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

/// Merges `above` into `below`. A table with a `kind` is replaced as a whole: the keys of one kind
/// do not apply to another.
pub(crate) fn lay_over(below: &mut Table, above: Table) {
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

/// Sets the value of a dotted key; text that is not a TOML value is a string.
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
            "{}: got a key in {deep} tables, need at most {DEEPEST}",
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
    use crate::recipe::task;

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
        assert!(error("base = 'circle'").contains("depends on itself"));
        assert!(error("base = 3").contains("need the name"));
    }
}
