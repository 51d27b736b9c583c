//! Sentences as JSON: `{"tokens": ["Anna", "sings"], "tags": ["B-PER", "O"]}`.

use super::super::examples::one_line;
use super::super::findings::{Findings, Place};
use super::super::reading::Reading;
use super::super::values::json_values;
use super::{Item, Unit, iob, sentence};
use crate::data::choose::LISTED;
use crate::import::Request;
use crate::say;
use regard_models::Result;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::path::Path;
use std::rc::Rc;

/// Keys of the words.
const WORDS: [&str; 2] = ["tokens", "words"];
/// Keys of the labels.
const LABELS: [&str; 9] =
    ["tags", "labels", "ner_tags", "pos_tags", "upos_tags", "chunk_tags", "ner", "pos", "upos"];

/// Reads a file.
pub(super) fn read(
    path: &Path,
    request: &Request,
    reading: &mut Option<Reading>,
    findings: &mut Findings,
) -> Result<Vec<Item>> {
    let values = json_values(path, findings)?;
    let file: Rc<Path> = path.into();
    let mut keys: Option<[String; 2]> = None;
    let mut all = vec![];
    for (line, value) in &values {
        let place = Place::line(path, *line);
        let Value::Object(object) = value else {
            let example = "{\"tokens\": [\"Anna\"], \"tags\": [\"B-PER\"]}";
            findings.row("JSON", place, format!("is not a JSON object, such as {example}"));
            continue;
        };
        if keys.is_none() {
            let found = recorded(request, object).and_then(|request| {
                let [text, label] = [&request.columns.text, &request.columns.label];
                let words = choose(object, "text", text, &WORDS)?;
                Ok([words, choose(object, "label", label, &LABELS)?])
            });
            match found {
                Ok(found) => {
                    reading.get_or_insert_with(|| noted(&found));
                    keys = Some(found);
                }
                Err(message) => {
                    findings.error("columns", place, message);
                    return Ok(vec![]);
                }
            }
        }
        let Some([words, labels]) = &keys else { break };
        match units(object, words, labels, *line) {
            Ok(units) => {
                iob(&units, &file, findings);
                all.push(Item { sentence: sentence(&units), file: file.clone(), line: *line });
            }
            Err((kind, message)) => findings.row(kind, place, message),
        }
    }
    if values.is_empty() && !findings.has_errors() {
        findings.error("empty file", Place::whole(path), "has no sentences");
    }
    Ok(all)
}

/// Describes how a file was read.
fn noted(keys: &[String; 2]) -> Reading {
    let reading = Reading { header: Some(true), ..Reading::of("json") };
    reading.with("text", &[0], Some(keys)).with("label", &[1], Some(keys))
}

/// Request with the recorded keys, if the run was trained on JSON.
fn recorded<'a>(
    request: &'a Request,
    object: &Map<String, Value>,
) -> Result<Cow<'a, Request>, String> {
    match request.like().is_some_and(|reading| reading.format == "json") {
        true => request.for_columns(&object.keys().cloned().collect::<Vec<_>>(), true),
        false => Ok(Cow::Borrowed(request)),
    }
}

/// Key of the words or labels: the one that a flag names, or the only known one.
fn choose(
    object: &Map<String, Value>,
    flag: &str,
    asked: &Option<String>,
    known: &[&str],
) -> Result<String, String> {
    let keys: Vec<&str> = object.keys().map(String::as_str).collect();
    if let Some(asked) = asked {
        return match object.contains_key(asked) {
            true => Ok(asked.clone()),
            false => Err(format!(
                "--{flag}: has no {asked:?}; {}its keys are {}",
                say::did_you_mean(asked, &keys),
                say::list(&keys, LISTED)
            )),
        };
    }
    let found: Vec<&str> = keys.iter().copied().filter(|key| known.contains(key)).collect();
    match found[..] {
        [one] => Ok(one.to_string()),
        [] => Err(format!(
            "has none of the keys {}; its keys are {}: choose one with --{flag}",
            known.join(", "),
            say::list(&keys, LISTED)
        )),
        [one, ..] => {
            Err(format!("has {}: choose one, such as --{flag} {one}", found.join(" and ")))
        }
    }
}

/// Words with their labels, or the kind of the problem and its description.
fn units(
    object: &Map<String, Value>,
    words: &str,
    labels: &str,
    line: u64,
) -> Result<Vec<Unit>, (&'static str, String)> {
    let list = |key: &str| match object.get(key) {
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(("JSON", format!("{key:?} is not a list"))),
        None => Err(("missing field", format!("has no {key:?}"))),
    };
    let text = |key: &str, at: usize, value: &Value| match value {
        Value::String(text) => Ok(one_line(text)),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(("JSON", format!("item {} of {key:?} is no text or number", at + 1))),
    };
    let (forms, tags) = (list(words)?, list(labels)?);
    if forms.len() != tags.len() {
        let message = format!("has {} {words} and {} {labels}", forms.len(), tags.len());
        return Err(("different lengths", message));
    }
    if forms.is_empty() {
        return Err(("empty sentence", format!("{words:?} is empty")));
    }
    let mut all = vec![];
    for (at, (form, tag)) in forms.iter().zip(tags).enumerate() {
        let (form, label) = (text(words, at, form)?, text(labels, at, tag)?);
        if form.is_empty() {
            return Err(("empty word", format!("word {} is empty", at + 1)));
        }
        if label.is_empty() {
            return Err(("empty tag", format!("tag {} is empty", at + 1)));
        }
        all.push(Unit { form, label, line });
    }
    Ok(all)
}
