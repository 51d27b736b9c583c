//! JSON schemas: checked before they are compiled.

use super::pattern;
use crate::{Error, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Most levels of nesting, of the schema and of all that it refers to together: the compiler calls
/// itself for each.
const DEEPEST: usize = 512;
/// Largest schema as text, in bytes.
const LARGEST: usize = 1 << 20;

/// Keywords that say what a text must be, and those that hold no schemas.
const VALUES: [&str; 17] = [
    "$ref",
    "const",
    "enum",
    "type",
    "minItems",
    "maxItems",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
/// Keywords of a schema, or a list of them.
const SCHEMAS: [&str; 7] =
    ["items", "additionalItems", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf"];
/// Keywords of schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords that change nothing.
const NOTES: [&str; 12] = [
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "readOnly",
    "writeOnly",
    "deprecated",
];

/// Returns a schema with how its JSON is written.
///
/// # Errors
/// If it has a keyword that is not supported, which is named with its place, or is too large.
pub fn prepared(schema: &Value) -> Result<Value> {
    let size = schema.to_string().len();
    if size > LARGEST {
        return Err(wrong("", &format!("the schema has {size} bytes, need at most {LARGEST}")));
    }
    let mut references = BTreeMap::new();
    walk(schema, schema, "", &mut references)?;
    let deep = references.values().fold(depth(schema), |sum, depth| sum + depth);
    if deep > DEEPEST {
        let problem = format!("got {deep} levels with those it refers to, need at most {DEEPEST}");
        return Err(wrong("", &problem));
    }
    let mut schema: Map<String, Value> = match schema {
        Value::Object(schema) => schema.clone(),
        Value::Bool(true) => Map::new(),
        _ => return Err(wrong("", "got false, which no text matches")),
    };
    // Of each draft the compiler would ignore the keywords of later ones.
    schema.shift_remove("$schema");
    // Without line breaks, which a model could repeat without end.
    let how = json!({
        "whitespace_flexible": false,
        "item_separator": ", ?",
        "key_separator": ": ?",
    });
    schema.insert("x-guidance".into(), how);
    Ok(Value::Object(schema))
}

/// Checks a schema at a place of the whole one, and collects the depths of what it refers to.
fn walk<'s>(
    schema: &'s Value,
    whole: &Value,
    place: &str,
    references: &mut BTreeMap<&'s str, usize>,
) -> Result<()> {
    let keywords = match schema {
        Value::Object(keywords) => keywords,
        Value::Bool(_) => return Ok(()),
        _ => return Err(wrong(place, "need an object, true or false")),
    };
    for (keyword, value) in keywords {
        let keyword = keyword.as_str();
        let place = format!("{place}/{keyword}");
        if SCHEMAS.contains(&keyword) {
            match value {
                Value::Array(all) => all.iter().enumerate().try_for_each(|(i, one)| {
                    walk(one, whole, &format!("{place}/{i}"), references)
                })?,
                one => walk(one, whole, &place, references)?,
            }
        } else if NAMED.contains(&keyword) {
            let Value::Object(all) = value else { return Err(wrong(&place, "need an object")) };
            for (name, one) in all {
                let place = format!("{place}/{name}");
                if keyword == "patternProperties" {
                    pattern::check(&at(&place), name)?;
                }
                walk(one, whole, &place, references)?;
            }
        } else if keyword == "pattern" {
            let Value::String(text) = value else { return Err(wrong(&place, "need a string")) };
            pattern::check(&at(&place), text)?;
        } else if keyword == "$ref" {
            let Value::String(to) = value else { return Err(wrong(&place, "need a string")) };
            let target = to.strip_prefix('#').and_then(|path| whole.pointer(path));
            let target = target.ok_or_else(|| {
                wrong(&place, &format!("got {to:?}, need a place in this schema such as #/$defs/a"))
            })?;
            references.insert(to, depth(target));
        } else if !VALUES.contains(&keyword) && !NOTES.contains(&keyword) {
            return Err(wrong(&place, &format!("the keyword {keyword:?} is not supported")));
        }
    }
    Ok(())
}

/// Levels of nesting. A value that was parsed has at most 128.
fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(all) => all.iter().map(depth).max(),
        Value::Object(all) => all.values().map(depth).max(),
        _ => None,
    };
    1 + below.unwrap_or(0)
}

fn at(place: &str) -> String {
    match place {
        "" => "json_schema".into(),
        place => format!("json_schema at {place}"),
    }
}

fn wrong(place: &str, problem: &str) -> Error {
    Error::invalid(format!("{}: {problem}", at(place)))
}
