//! Values of configurations, read from JSON with errors that name the key.

use crate::sizes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads a value from JSON.
///
/// # Errors
/// The key with the value found and the kind of value needed, such as `hidden_size: got "abc", need
/// a whole number, 0 or more`.
pub fn read<T: DeserializeOwned>(json: &Value) -> Result<T, String> {
    read_at("", json)
}

/// Reads the value of a key; errors begin with its name.
///
/// # Errors
/// As [`read`].
pub fn read_at<T: DeserializeOwned>(key: &str, json: &Value) -> Result<T, String> {
    T::deserialize(json).map_err(|error| {
        let message = error.to_string();
        let fails = |json: &Value| T::deserialize(json).err().map(|error| error.to_string());
        let path = path_of(json, &message, &fails);
        let value = path.iter().fold(json, |json, key| &json[key]);
        let path = path.iter().fold(key.to_string(), |table, key| within(&table, key));
        told(&path, value, &message)
    })
}

/// Joins the names of a table, which may be empty, and of a key in it.
fn within(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_string() } else { format!("{table}.{key}") }
}

/// Finds the key that an error is about, with the tables that it is in: serde does not tell. It is
/// the last of the first few keys that give the same error.
fn path_of(json: &Value, message: &str, fails: &dyn Fn(&Value) -> Option<String>) -> Vec<String> {
    let Value::Object(all) = json else { return vec![] };
    let mut keys: Vec<&String> = all.keys().collect();
    // The kind of a table decides how its other keys are read.
    keys.sort_by_key(|key| *key != "kind");
    let first = |count: usize| -> Map<String, Value> {
        keys[..count].iter().map(|key| ((*key).clone(), all[*key].clone())).collect()
    };
    let same = |count: usize| fails(&Value::Object(first(count))).as_deref() == Some(message);
    if keys.is_empty() || same(0) {
        return vec![];
    }
    let (mut without, mut with) = (0, keys.len());
    while with - without > 1 {
        let middle = without.midpoint(with);
        match same(middle) {
            true => with = middle,
            false => without = middle,
        }
    }
    let key = keys[without];
    // The key that is missing cannot be among these, but it may be one of a table.
    if message.starts_with("missing field") && !all[key].is_object() {
        return vec![];
    }
    let inside = |value: &Value| {
        let mut table = first(without);
        table.insert(key.clone(), value.clone());
        fails(&Value::Object(table))
    };
    let mut path = vec![key.clone()];
    path.extend(path_of(&all[key], message, &inside));
    path
}

/// Rewrites a message of serde about a key and its value.
fn told(key: &str, value: &Value, message: &str) -> String {
    if let Some(rest) = message.strip_prefix("missing field `") {
        return format!("{}: is missing", within(key, rest.trim_end_matches('`')));
    }
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (name, rest) = rest.split_once('`').unwrap_or((rest, ""));
        let table = key.strip_suffix(name).map_or(key, |above| above.trim_end_matches('.'));
        let name = within(table, &sizes::short(name, 60));
        let known = Some(quoted(rest)).filter(|known| !known.is_empty());
        let known = known.map_or(String::new(), |known| format!("; need one of {known}"));
        return format!("{name}: there is no such key{known}");
    }
    // A type's own description of what it needs (`expecting`) leaves the value out.
    let words = match message.starts_with("need ") {
        true => format!("got {}, {message}", sizes::short(&value.to_string(), 60)),
        false => in_words(message),
    };
    if key.is_empty() { words } else { format!("{key}: {words}") }
}

/// Joins the names that a message has in backquotes.
fn quoted(message: &str) -> String {
    message.split('`').skip(1).step_by(2).collect::<Vec<_>>().join(", ")
}

/// Rewrites a message of serde about a value: `invalid type: string "abc", expected usize` becomes
/// `got "abc", need a whole number, 0 or more`.
pub fn in_words(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        let (name, rest) = rest.split_once('`').unwrap_or((rest, ""));
        return format!("got {:?}, need one of {}", sizes::short(name, 60), quoted(rest));
    }
    let whole = || sizes::short(message, 300);
    let Some((got, need)) = message.rsplit_once(", expected ") else { return whole() };
    if let Some(length) = got.strip_prefix("invalid length ") {
        return format!("got a list of {length}, need {}", kind(need));
    }
    let got = got.strip_prefix("invalid type: ").or(got.strip_prefix("invalid value: "));
    let Some(got) = got else { return whole() };
    let kinds = ["string ", "integer ", "floating point ", "boolean "];
    let got = kinds.iter().find_map(|kind| got.strip_prefix(kind)).unwrap_or(got);
    let got = match sizes::short(got.trim_matches('`'), 60) {
        map if map == "map" => "a table".to_string(),
        list if list == "sequence" => "a list".to_string(),
        other => other,
    };
    format!("got {got}, need {}", kind(need))
}

/// Describes an expected type.
fn kind(expected: &str) -> String {
    match expected {
        "u64" | "usize" => "a whole number, 0 or more".into(),
        "u32" => "a whole number from 0 to 4294967295".into(),
        "u16" => "a whole number from 0 to 65535".into(),
        "u8" => "a whole number from 0 to 255".into(),
        "i64" | "i32" | "isize" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" | "path string" | "string or map" => "a text".into(),
        "a map" => "a table of keys".into(),
        "a sequence" => "a list, such as [\"a\", \"b\"]".into(),
        other => match other.strip_prefix("an array of length ") {
            Some(length) => format!("a list of {length} values, such as [1, 5]"),
            None if other.starts_with("struct ") => "a table of keys".into(),
            None if other.starts_with("internally tagged enum ") => "a table with a kind".into(),
            None => other.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
    enum Look {
        Window {
            #[allow(dead_code)]
            left: usize,
        },
    }

    #[derive(Debug, Deserialize)]
    struct Shared {
        #[allow(dead_code)]
        words: usize,
        #[allow(dead_code)]
        ids: u32,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Cell {
        Gru,
        Lstm,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged, expecting = "need a number or a text")]
    #[allow(dead_code)]
    enum Either {
        Number(f32),
        Text(String),
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Sizes {
        either: Option<Either>,
        #[serde(flatten)]
        shared: Shared,
        #[serde(default)]
        width: usize,
        look: Option<Look>,
        cell: Option<Cell>,
        sides: Option<[usize; 2]>,
        share: Option<f32>,
    }

    #[test]
    fn an_error_names_the_key_and_what_it_needs() {
        let whole =
            json!({ "words": 3, "ids": 4, "width": 5, "look": { "left": 1, "kind": "window" } });
        let read_all: Sizes = read(&whole).unwrap();
        assert!(matches!(read_all.look, Some(Look::Window { left: 1 })));
        for (key, value, wanted) in [
            ("width", json!("abc"), "width: got \"abc\", need a whole number, 0 or more"),
            ("width", json!(-3), "width: got -3, need a whole number, 0 or more"),
            ("words", json!(1.5), "words: got 1.5, need a whole number, 0 or more"),
            ("words", json!(null), "words: got null, need a whole number, 0 or more"),
            ("ids", json!(5_000_000_000u64), "ids: got 5000000000, need a whole number from 0 to"),
            ("either", json!([1]), "either: got [1], need a number or a text"),
            ("share", json!(true), "share: got true, need a number"),
            ("share", json!({}), "share: got a table, need a number"),
            ("cell", json!("gro"), "cell: got \"gro\", need one of gru, lstm"),
            ("cell", json!(3), "cell: got 3, need a text"),
            ("sides", json!([1]), "sides: got a list of 1, need a list of 2 values"),
            ("look", json!("window"), "look: got \"window\", need a table with a kind"),
            ("look", json!({ "left": 1, "kind": "door" }), "look.kind: got \"door\", need one of"),
            (
                "look",
                json!({ "left": "x", "kind": "window" }),
                "look.left: got \"x\", need a whole",
            ),
            ("look", json!({ "kind": "window" }), "look.left: is missing"),
            (
                "look",
                json!({ "kind": "window", "left": 1, "right": 2 }),
                "look.right: there is no such key; need one of left",
            ),
        ] {
            let mut json = whole.clone();
            json[key] = value;
            let error = read::<Sizes>(&json).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
        let error = read::<Sizes>(&json!({ "words": 3, "width": 1 })).unwrap_err();
        assert_eq!(error, "ids: is missing");
        let error = read_at::<Sizes>("model", &json!({ "words": 3, "ids": "x" })).unwrap_err();
        assert!(error.starts_with("model.ids: got \"x\", need a whole number"), "{error}");
        assert_eq!(
            read_at::<f32>("drop", &json!("x")).unwrap_err(),
            "drop: got \"x\", need a number"
        );
        assert_eq!(read::<Cell>(&json!("gro")).unwrap_err(), "got \"gro\", need one of gru, lstm");
        assert!(matches!(read(&json!("gru")), Ok(Cell::Gru)));
        assert!(matches!(read(&json!("lstm")), Ok(Cell::Lstm)));
    }

    /// Of two wrong values either may be named, but not a right one.
    #[test]
    fn several_errors_name_one() {
        let json = json!({ "words": 3, "ids": 4, "look": null, "width": "abc", "share": "abc" });
        assert!(read::<Sizes>(&json).unwrap_err().starts_with("width: got \"abc\""));
        let json = json!({ "words": "abc", "ids": "abc" });
        assert!(read::<Sizes>(&json).unwrap_err().starts_with("words: got \"abc\""));
    }

    #[test]
    fn one_of_many_keys_is_found() {
        let mut json = json!({ "words": 3, "ids": 4, "width": "abc" });
        for i in 0..50_000 {
            json[format!("key{i}")] = json!(i);
        }
        assert!(read::<Sizes>(&json).unwrap_err().starts_with("width: got \"abc\""));
    }
}
