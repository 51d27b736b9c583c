//! JSON schemas: whatever is written is valid.

use super::*;
use serde_json::json;

/// Pieces of JSON, some across the borders of what a schema describes.
const PIECES: [&str; 20] = [
    "{\"", "\":", "\": ", ", \"", "\",", "\"}", "},", "}]", "[{", "[\"", "]}", "true", "false",
    "null", "name", "red", "ab", "12", "-", "\\u00",
];

/// Writes a text of randomly chosen tokens; `None` if it does not end soon.
fn written(
    compiled: &CompiledConstraint,
    tokens: &[Vec<u8>],
    numbers: &mut Numbers,
) -> Option<String> {
    let (mut state, mut text) = (compiled.start(false), vec![]);
    for _ in 0..400 {
        let may_end = state.allowed().unwrap().may_end();
        let follow = allowed(&mut state, tokens.len());
        assert!(may_end || !follow.is_empty(), "{:?}", String::from_utf8_lossy(&text));
        if follow.is_empty() || may_end && numbers.below(3) == 0 {
            return Some(String::from_utf8(text).unwrap());
        }
        // What closes is preferred, as texts would not end.
        let closing = follow.iter().find(|token| matches!(tokens[**token][0], b'"' | b'}' | b']'));
        let token = match closing {
            Some(closing) if numbers.below(3) == 0 => *closing,
            _ => follow[numbers.below(follow.len())],
        };
        text.extend(&tokens[token]);
        state.push(token as u32).unwrap();
    }
    None
}

/// Checks texts of a schema with what it means.
fn check(schema: Value, valid: impl Fn(&Value) -> bool) {
    let tokens = bytes_and(&PIECES);
    let compiled = Constraint::JsonSchema(schema.clone()).compile(&vocabulary(&tokens)).unwrap();
    let (mut numbers, mut count) = (Numbers(11), 0);
    for _ in 0..60 {
        let Some(text) = written(&compiled, &tokens, &mut numbers) else { continue };
        count += 1;
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert!(valid(&value), "{text} of {schema}");
    }
    assert!(count >= 30, "{count} texts of {schema}");
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn what_is_written_is_valid() {
    check(
        json!({ "type": "object", "additionalProperties": false, "required": ["name"],
                "properties": { "name": { "type": "string", "maxLength": 4 },
                                "age": { "type": "integer", "minimum": -3, "maximum": 120 },
                                "on": { "type": "boolean" } } }),
        |value| {
            let name = value["name"].as_str().unwrap().chars().count() <= 4;
            let age =
                value.get("age").is_none_or(|age| (-3..=120).contains(&age.as_i64().unwrap()));
            let on = value.get("on").is_none_or(Value::is_boolean);
            name && age && on && keys(value).iter().all(|key| ["name", "age", "on"].contains(key))
        },
    );
    check(
        json!({ "type": "array", "minItems": 1, "maxItems": 3,
                "items": { "enum": ["red", 1, null, ["x"]] } }),
        |value| {
            let options = json!(["red", 1, null, ["x"]]);
            let all = value.as_array().unwrap();
            let known = |one: &Value| options.as_array().unwrap().contains(one);
            (1..=3).contains(&all.len()) && all.iter().all(known)
        },
    );
    check(json!({ "type": "string", "pattern": "^[a-c]{2}é\"\\d+$", "maxLength": 8 }), |value| {
        let pattern = ::regex::Regex::new("^[a-c]{2}é\"[0-9]+$").unwrap();
        pattern.is_match(value.as_str().unwrap()) && value.as_str().unwrap().chars().count() <= 8
    });
    check(
        json!({ "$schema": "http://json-schema.org/draft-04/schema#",
                "anyOf": [{ "const": "b" }, { "type": "number", "minimum": 0.5, "maximum": 2 },
                          { "$ref": "#/$defs/pair" }],
                "$defs": { "pair": { "type": "array", "prefixItems": [{ "type": "boolean" },
                           { "type": "null" }], "items": false, "minItems": 2 } } }),
        |value| match value {
            Value::String(text) => text == "b",
            Value::Number(number) => (0.5..=2.0).contains(&number.as_f64().unwrap()),
            Value::Array(all) => matches!(&all[..], [Value::Bool(_), Value::Null]),
            _ => false,
        },
    );
    // A list that refers to itself.
    fn is_list(value: &Value) -> bool {
        let next = value.get("next").is_none_or(|next| next.is_null() || is_list(next));
        value["id"].as_u64().is_some_and(|id| id <= 9) && next
    }
    check(
        json!({ "$ref": "#/definitions/list", "definitions": { "list": { "type": "object",
                "properties": { "id": { "type": "integer", "minimum": 0, "maximum": 9 },
                                "next": { "anyOf": [{ "type": "null" },
                                                    { "$ref": "#/definitions/list" }] } },
                "required": ["id"], "additionalProperties": false } } }),
        is_list,
    );
}

#[test]
fn json_is_written_on_a_line() {
    let tokens = bytes_and(&[]);
    let schema = json!({ "type": "array", "items": { "type": "object", "properties": {
        "a": { "const": 1 } }, "required": ["a"], "additionalProperties": false } });
    let compiled = Constraint::JsonSchema(schema).compile(&vocabulary(&tokens)).unwrap();
    let matches = |text: &str| {
        let mut state = compiled.start(false);
        text.bytes().all(|byte| state.push(byte.into()).is_ok())
            && state.allowed().unwrap().may_end()
    };
    for text in ["[]", "[{\"a\":1}]", "[{\"a\": 1}, {\"a\":1},{\"a\":1}]"] {
        assert!(matches(text), "{text}");
    }
    for text in [" []", "[ ]", "[]\n", "[{\"a\":  1}]", "[{\"a\" :1}]", "[{\"a\":1,\"b\":2}]"] {
        assert!(!matches(text), "{text}");
    }
}

#[test]
fn what_is_not_supported_is_named_with_its_place() {
    for (schema, parts) in [
        (json!({ "not": {} }), &["json_schema at /not", "\"not\" is not supported"][..]),
        (json!({ "requierd": ["a"] }), &["\"requierd\""]),
        (json!({ "type": "array", "uniqueItems": true }), &["\"uniqueItems\""]),
        (
            json!({ "properties": { "a": { "items": [{ "if": {} }] } } }),
            &["/properties/a/items/0/if", "\"if\""],
        ),
        (json!({ "$defs": { "a": { "contains": {} } }, "$ref": "#/$defs/a" }), &["\"contains\""]),
        (json!({ "type": "object", "x-guidance": { "lenient": true } }), &["\"x-guidance\""]),
        (json!({ "$ref": "https://example.org/a.json" }), &["/$ref", "https://example.org/a.json"]),
        (json!({ "$ref": "#/$defs/b" }), &["#/$defs/b"]),
        // What is referred to is a schema too, wherever it stands.
        (
            json!({ "default": { "items": { "not": {} } }, "$ref": "#/default" }),
            &["json_schema at /default/items/not", "\"not\" is not supported"],
        ),
        (
            json!({ "examples": [{ "pattern": "a(" }], "items": { "$ref": "#/examples/0" } }),
            &["json_schema at /examples/0/pattern", "unclosed group"],
        ),
        (
            json!({ "default": { "anyOf": [{ "$ref": "#/default" }, { "if": {} }] },
                    "$ref": "#/default" }),
            &["/default/anyOf/1/if"],
        ),
        (json!({ "$ref": "#/$defs", "$defs": { "a": {} } }), &["json_schema at /$defs/a", "\"a\""]),
        (json!({ "$ref": "#/required", "required": ["a"] }), &["/required", "need an object"]),
        (json!({ "$ref": "#/$defs/a~1b", "$defs": { "a/b": {} } }), &["#/$defs/a~1b", "~ or %"]),
        (json!({ "$ref": "#/$defs/a%20b", "$defs": { "a b": {} } }), &["~ or %"]),
        (json!({ "type": "string", "format": "mood" }), &["format", "mood"]),
        (json!({ "type": "text" }), &["text"]),
        (json!({ "pattern": "a(" }), &["json_schema at /pattern", "unclosed group"]),
        (json!({ "pattern": "(a{1000}){1000}" }), &["/pattern", "too large"]),
        (json!({ "type": "integer", "minimum": 3, "maximum": 2 }), &["json_schema: "]),
        (json!({ "oneOf": [{ "minimum": 1 }, { "maximum": 3 }] }), &["oneOf", "anyOf"]),
        (json!(false), &["no text matches"]),
        (json!([1]), &["need an object"]),
    ] {
        let message = refused(&Constraint::JsonSchema(schema.clone()));
        assert!(parts.iter().all(|part| message.contains(part)), "{schema}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn deep_schemas_are_refused_soon() {
    let nested = |levels: usize| {
        (0..levels).fold(json!({ "type": "null" }), |inner, _| json!({ "items": inner }))
    };
    refused(&Constraint::JsonSchema(nested(600)));
    let tokens = vocabulary(&bytes_and(&[]));
    Constraint::JsonSchema(nested(60)).compile(&tokens).unwrap();
    // Definitions that refer to each other in a row.
    let row = |count: usize| {
        let one = |i: usize| (format!("d{i}"), json!({ "$ref": format!("#/$defs/d{}", i + 1) }));
        let mut defs: serde_json::Map<String, Value> = (0..count).map(one).collect();
        defs.insert(format!("d{count}"), json!({ "type": "null" }));
        json!({ "$ref": "#/$defs/d0", "$defs": defs })
    };
    assert!(refused(&Constraint::JsonSchema(row(20_000))).contains("levels"));
    Constraint::JsonSchema(row(100)).compile(&tokens).unwrap();
    // Each doubles the one before.
    let mut all = json!({ "type": "string" });
    for _ in 0..16 {
        all = json!({ "anyOf": [all, { "allOf": [all, { "maxLength": 9 }] }] });
    }
    refused(&Constraint::JsonSchema(all));
}

#[test]
fn wide_schemas_are_refused_soon() {
    let null = json!({ "type": "null" });
    let names = |count: usize| -> serde_json::Map<String, Value> {
        (0..count).map(|i| (format!("p{i}"), null.clone())).collect()
    };
    let patterns: serde_json::Map<String, Value> =
        (0..20).map(|i| (format!("p{i}"), json!({ "pattern": "a".repeat(2000) }))).collect();
    let inner: Vec<Value> = (0..6).map(|_| json!({ "properties": names(900) })).collect();
    let numbers: Vec<usize> = (0..10_001).collect();
    for (schema, parts) in [
        (json!({ "properties": names(1001) }), &["/properties", "1001", "1000"][..]),
        (json!({ "items": { "anyOf": vec![&null; 1001] } }), &["/items/anyOf", "1001", "1000"]),
        (json!({ "oneOf": vec![&null; 1001] }), &["/oneOf", "1001", "1000"]),
        (json!({ "allOf": vec![&null; 1001] }), &["/allOf", "1001", "1000"]),
        (json!({ "prefixItems": vec![&null; 1001] }), &["/prefixItems", "1001", "1000"]),
        (json!({ "required": vec!["a"; 1001] }), &["/required", "1001", "1000"]),
        (json!({ "const": { "a": vec![1; 1001] } }), &["/const", "1001", "1000"]),
        (json!({ "enum": [vec![1; 1001]] }), &["/enum", "1001", "1000"]),
        (json!({ "enum": numbers }), &["/enum", "10001", "10000"]),
        (json!({ "patternProperties": names(33) }), &["/patternProperties", "33", "32"]),
        (json!({ "anyOf": inner }), &["/anyOf/5/properties", "5406 entries together", "5000"]),
        (json!({ "properties": patterns }), &["/pattern", "bytes together", "32768"]),
    ] {
        let message = refused(&Constraint::JsonSchema(schema));
        assert!(parts.iter().all(|part| message.contains(part)), "{parts:?}: {message}");
    }
    let tokens = vocabulary(&bytes_and(&[]));
    let texts: Vec<String> = (0..1500).map(|i| format!("v{i}")).collect();
    for schema in [
        json!({ "enum": texts }),
        json!({ "type": "object", "properties": names(100), "additionalProperties": false }),
    ] {
        Constraint::JsonSchema(schema).compile(&tokens).unwrap();
    }
}
