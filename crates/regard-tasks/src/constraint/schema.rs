//! JSON schemas: checked before they are compiled.

use super::pattern;
use crate::{Error, Result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Most levels of nesting, of the schema and of all that it refers to together: the compiler calls
/// itself for each.
const DEEPEST: usize = 512;
/// Largest schema as text, in bytes.
const LARGEST: usize = 1 << 20;
/// Most entries of a list or a map, such as `properties` or `anyOf`: the compiler calls itself for
/// each, and its time grows with their square.
const ENTRIES: usize = 1000;
/// Most entries of all lists and maps together.
const ENTRIES_TOGETHER: usize = 5000;
/// Most texts and numbers of an `enum`, which are compiled in linear time.
const OPTIONS: usize = 10_000;
/// Most entries of `patternProperties`: the compiler compares each pair.
const NAME_PATTERNS: usize = 32;
/// Most bytes of all patterns together.
const PATTERN_BYTES: usize = 32 << 10;

/// Keywords with a number or a name.
const VALUES: [&str; 12] = [
    "minItems",
    "maxItems",
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
    let mut checked = Checked {
        whole: schema,
        seen: BTreeSet::new(),
        references: BTreeMap::new(),
        pending: vec![],
        entries: 0,
        patterns: 0,
    };
    checked.schema(schema, "")?;
    while let Some((target, to)) = checked.pending.pop() {
        checked.schema(target, to.trim_start_matches('#'))?;
    }
    let deep = checked.references.values().fold(depth(schema), |sum, depth| sum + depth);
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

/// What was checked of a schema so far.
struct Checked<'s> {
    whole: &'s Value,
    /// Addresses of the schemas in it.
    seen: BTreeSet<*const Value>,
    /// What it refers to, with the depth of each.
    references: BTreeMap<&'s str, usize>,
    /// Those that were found and not checked yet: they may be where no schemas are looked for.
    pending: Vec<(&'s Value, &'s str)>,
    /// Entries of lists and maps.
    entries: usize,
    /// Bytes of patterns.
    patterns: usize,
}

impl<'s> Checked<'s> {
    /// Checks the schema at a place of the whole one, once.
    fn schema(&mut self, schema: &'s Value, place: &str) -> Result<()> {
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(_) => return Ok(()),
            _ => return Err(wrong(place, "need an object, true or false")),
        };
        if !self.seen.insert(std::ptr::from_ref(schema)) {
            return Ok(());
        }
        for (keyword, value) in keywords {
            self.keyword(keyword, value, &format!("{place}/{keyword}"))?;
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &'s Value, place: &str) -> Result<()> {
        match (keyword, value) {
            ("enum", Value::Array(all)) if !all.iter().any(is_nested) => match all.len() {
                got if got > OPTIONS => Err(too_many(got, OPTIONS, place)),
                _ => Ok(()),
            },
            ("enum" | "const" | "required" | "type", _) => self.value(value, place),
            ("pattern", Value::String(text)) => self.pattern(text, place),
            ("$ref", Value::String(to)) => self.reference(to, place),
            ("pattern" | "$ref", _) => Err(wrong(place, "need a string")),
            _ if SCHEMAS.contains(&keyword) => {
                let Value::Array(all) = value else { return self.schema(value, place) };
                self.count(all.len(), ENTRIES, place)?;
                let mut each = all.iter().enumerate();
                each.try_for_each(|(i, one)| self.schema(one, &format!("{place}/{i}")))
            }
            _ if NAMED.contains(&keyword) => self.named(keyword, value, place),
            _ if VALUES.contains(&keyword) || NOTES.contains(&keyword) => Ok(()),
            _ => Err(wrong(place, &format!("the keyword {keyword:?} is not supported"))),
        }
    }

    /// Checks schemas by name.
    fn named(&mut self, keyword: &str, value: &'s Value, place: &str) -> Result<()> {
        let Value::Object(all) = value else { return Err(wrong(place, "need an object")) };
        match keyword {
            "properties" => self.count(all.len(), ENTRIES, place)?,
            "patternProperties" => self.count(all.len(), NAME_PATTERNS, place)?,
            // Definitions cost nothing by themselves.
            _ => {}
        }
        for (name, one) in all {
            let place = format!("{place}/{name}");
            if keyword == "patternProperties" {
                self.pattern(name, &place)?;
            }
            self.schema(one, &place)?;
        }
        Ok(())
    }

    fn pattern(&mut self, text: &str, place: &str) -> Result<()> {
        self.patterns += text.len();
        if self.patterns > PATTERN_BYTES {
            let got = self.patterns;
            let problem = format!(
                "up to here, patterns have {got} bytes together, need at most {PATTERN_BYTES}"
            );
            return Err(wrong(place, &problem));
        }
        pattern::check(&at(place), text)
    }

    fn reference(&mut self, to: &'s str, place: &str) -> Result<()> {
        // The compiler takes them literally, others as escapes.
        if to.contains(['~', '%']) {
            let problem = format!("got {to:?}: names with ~ or % cannot be referred to");
            return Err(wrong(place, &problem));
        }
        let whole = self.whole;
        let target = to.strip_prefix('#').and_then(|path| whole.pointer(path));
        let target = target.ok_or_else(|| {
            wrong(place, &format!("got {to:?}, need a place in this schema such as #/$defs/a"))
        })?;
        if self.references.insert(to, depth(target)).is_none() {
            self.pending.push((target, to));
        }
        Ok(())
    }

    /// Counts the entries of a value, and of all values in it.
    fn value(&mut self, value: &Value, place: &str) -> Result<()> {
        match value {
            Value::Array(all) => {
                self.count(all.len(), ENTRIES, place)?;
                all.iter().try_for_each(|one| self.value(one, place))
            }
            Value::Object(all) => {
                self.count(all.len(), ENTRIES, place)?;
                all.values().try_for_each(|one| self.value(one, place))
            }
            _ => Ok(()),
        }
    }

    /// Counts the entries of a list or a map.
    fn count(&mut self, got: usize, most: usize, place: &str) -> Result<()> {
        self.entries += got;
        if got > most {
            return Err(too_many(got, most, place));
        }
        if self.entries > ENTRIES_TOGETHER {
            let problem = format!(
                "up to here, lists and maps have {} entries together, need at most \
                 {ENTRIES_TOGETHER}",
                self.entries
            );
            return Err(wrong(place, &problem));
        }
        Ok(())
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

fn too_many(got: usize, most: usize, place: &str) -> Error {
    wrong(place, &format!("got {got} entries, need at most {most}"))
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
