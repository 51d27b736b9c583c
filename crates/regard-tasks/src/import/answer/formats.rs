//! Questions as SQuAD's JSON, or as JSON lines with a context, a question and its answers.

use super::super::findings::{Findings, Place};
use super::super::reading::Reading;
use super::super::table;
use super::super::values::{json_values, not_text, plain, whole};
use super::super::{ColumnNames, Request};
use super::spans::{Problem, answers, placed, searched};
use super::{Answer, Question};
use crate::data::choose::LISTED;
use crate::say;
use regard_models::Result;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// Names of the fields of a row.
pub(in crate::import) const CONTEXT: [&str; 5] =
    ["context", "paragraph", "passage", "text", "document"];
pub(in crate::import) const QUESTION: [&str; 2] = ["question", "query"];
pub(in crate::import) const ANSWERS: [&str; 2] = ["answers", "answer"];

/// Names of the fields of a row: those that flags chose, or the known ones.
pub(super) struct Fields<'a> {
    context: Vec<&'a str>,
    question: Vec<&'a str>,
    answers: Vec<&'a str>,
}

impl<'a> Fields<'a> {
    /// The known names.
    pub fn known() -> Fields<'a> {
        Fields { context: CONTEXT.into(), question: QUESTION.into(), answers: ANSWERS.into() }
    }

    fn of(request: &'a Request) -> Fields<'a> {
        let chosen = |asked: &'a Option<String>, known: Vec<&'a str>| match asked {
            Some(name) => vec![name.as_str()],
            None => known,
        };
        let Fields { context, question, answers } = Fields::known();
        Fields {
            context: chosen(&request.columns.context, context),
            question: chosen(&request.columns.question, question),
            answers: chosen(&request.columns.answer, answers),
        }
    }

    /// Describes which fields of a row are read.
    fn noted(&self, row: &Object) -> Reading {
        let json = Reading { header: Some(true), ..Reading::of("json") };
        let roles = ["context", "question", "answer"];
        let names = [&self.context, &self.question, &self.answers];
        roles.into_iter().zip(names).fold(json, |all, (role, names)| {
            let found = names.iter().find(|name| row.contains_key(**name));
            match found {
                Some(name) => all.with(role, &[0], Some(&[name.to_string()])),
                None => all,
            }
        })
    }

    /// Message about a flag that names no field of a row.
    fn unknown(row: &Object, request: &Request) -> Option<String> {
        let ColumnNames { context, question, answer, .. } = &request.columns;
        let flags = [("context", context), ("question", question), ("answer", answer)];
        let mut asked = flags.iter().filter_map(|(flag, name)| Some((flag, name.as_deref()?)));
        let (flag, name) = asked.find(|(_, name)| !row.contains_key(*name))?;
        let keys: Vec<&str> = row.keys().map(String::as_str).collect();
        Some(format!(
            "--{flag}: has no {name:?}; {}its keys are {}",
            say::did_you_mean(name, &keys),
            say::list(&keys, LISTED)
        ))
    }
}

/// A question with its context, as it was read.
pub(super) struct Asked {
    pub title: String,
    pub context: String,
    pub id: Option<String>,
    pub question: Question,
    pub line: Option<u64>,
}

pub(super) type Object = Map<String, Value>;

/// Reads a file. `reading` receives the names of the fields of JSON objects.
pub(super) fn read(
    path: &Path,
    request: &Request,
    reading: &mut Option<Reading>,
    findings: &mut Findings,
) -> Result<Vec<Asked>> {
    if table::end(path) == "json"
        && let Some((whole, lines)) = squad(path, findings)?
    {
        return Ok(articles(&whole, &lines, path, findings));
    }
    let values = json_values(path, findings)?;
    let mut chosen = Cow::Borrowed(request);
    if let Some((line, Value::Object(row))) = values.first() {
        let keys: Vec<String> = row.keys().cloned().collect();
        let found = request.for_columns(&keys, true);
        match found.and_then(|found| Fields::unknown(row, &found).map_or(Ok(found), Err)) {
            Ok(found) => chosen = found,
            Err(message) => {
                findings.error("columns", Place::line(path, *line), message);
                return Ok(vec![]);
            }
        }
    }
    let fields = Fields::of(&chosen);
    if let Some((_, Value::Object(row))) = values.first() {
        reading.get_or_insert_with(|| fields.noted(row));
    }
    let mut all = vec![];
    for (line, value) in values {
        let place = Place::line(path, line);
        match &value {
            Value::Object(row) => all.extend(flat(row, &fields, place, findings)),
            _ => findings.row("JSON", place, "is not a JSON object with a context and a question"),
        }
    }
    if all.is_empty() && !findings.has_errors() {
        findings.error("empty file", Place::whole(path), "has no questions");
    }
    Ok(all)
}

/// Lines of the questions of a file, by their ids.
type IdLines = HashMap<String, u64>;

/// Reads the articles of SQuAD's JSON; `None` if the file is a list or JSON lines.
fn squad(path: &Path, findings: &mut Findings) -> Result<Option<(Vec<Value>, IdLines)>> {
    let text = whole(path)?;
    if !text.trim_ascii_start().starts_with(b"{") {
        return Ok(None);
    }
    match serde_json::from_slice::<Value>(&text) {
        Ok(Value::Object(mut whole)) => match whole.remove("data") {
            Some(Value::Array(articles)) => Ok(Some((articles, id_lines(&text)))),
            _ => Ok(None),
        },
        // Several values are JSON lines.
        Err(error) if error.to_string().starts_with("trailing characters") => Ok(None),
        Err(error) => {
            let place = Place::line(path, error.line() as u64);
            let message = format!("is not JSON: {}", plain(&error));
            findings.error("JSON", place, message);
            Ok(Some((vec![], IdLines::new())))
        }
        Ok(_) => Ok(None),
    }
}

/// Finds the lines of ids in the text of a file: the JSON reader does not tell them.
fn id_lines(text: &[u8]) -> IdLines {
    let text = String::from_utf8_lossy(text);
    let mut lines = IdLines::new();
    for (line, number) in text.lines().zip(1..) {
        for (at, key) in line.match_indices("\"id\"") {
            let value = line[at + key.len()..].trim_start().strip_prefix(':').map(str::trim_start);
            let end = value.and_then(|value| value.strip_prefix('"')?.find('"'));
            if let (Some(value), Some(end)) = (value, end) {
                lines.entry(value[1..=end].to_string()).or_insert(number);
            }
        }
    }
    lines
}

/// Questions of articles. Items that are no articles but questions with their context are read too.
fn articles(
    articles: &[Value],
    lines: &IdLines,
    path: &Path,
    findings: &mut Findings,
) -> Vec<Asked> {
    let mut all = vec![];
    let (whole, fields) = (Place::whole(path), Fields::known());
    for (number, article) in articles.iter().enumerate() {
        let name = format!("data[{number}]");
        let Some(paragraphs) = article.get("paragraphs").and_then(Value::as_array) else {
            match article {
                Value::Object(row) if field(row, &CONTEXT).is_some() => {
                    all.extend(flat(row, &fields, whole, findings));
                }
                _ => findings.row("missing field", whole, format!("{name} has no \"paragraphs\"")),
            }
            continue;
        };
        let title = article.get("title").map(text).unwrap_or_default();
        for (at, paragraph) in paragraphs.iter().enumerate() {
            let name = format!("{name}.paragraphs[{at}]");
            let context = paragraph.get("context").and_then(Value::as_str).unwrap_or_default();
            let questions = paragraph.get("qas").and_then(Value::as_array);
            let Some(questions) = questions.filter(|_| !context.trim().is_empty()) else {
                let lacks = if context.trim().is_empty() { "context" } else { "qas" };
                findings.row("missing field", whole, format!("{name} has no \"{lacks}\""));
                continue;
            };
            for question in questions {
                let id = question.get("id").map(text);
                let line = id.as_ref().and_then(|id| lines.get(id).copied());
                let place = Place { file: path, line };
                let told = id.clone().map_or(name.clone(), |id| format!("question {id:?}"));
                let read = question.as_object().ok_or(("JSON", "is not an object".to_string()));
                match read.and_then(|row| asked(row, &fields, context, false)) {
                    Ok((question, note)) => {
                        note.into_iter().for_each(|note| {
                            findings.warn("ambiguous answer", place, format!("{told}: {note}"));
                        });
                        let (title, context) = (title.clone(), context.to_string());
                        all.push(Asked { title, context, id, question, line });
                    }
                    Err((kind, message)) => findings.row(kind, place, format!("{told}: {message}")),
                }
            }
        }
    }
    if all.is_empty() && !findings.has_errors() {
        findings.error("empty file", whole, "has no questions");
    }
    all
}

/// Question of an object that has its context.
pub(super) fn flat(
    row: &Object,
    fields: &Fields,
    place: Place,
    findings: &mut Findings,
) -> Option<Asked> {
    let context = field(row, &fields.context).and_then(Value::as_str).unwrap_or_default();
    let read = match context.trim().is_empty() {
        true => Err(no_text(row, &fields.context, "context")),
        false => asked(row, fields, context, true),
    };
    let told = row.get("id").map_or(String::new(), |id| format!("question {:?}: ", text(id)));
    match read {
        Ok((question, note)) => {
            if let Some(note) = note {
                findings.warn("ambiguous answer", place, format!("{told}{note}"));
            }
            let (id, title) = (row.get("id").map(text), row.get("title").map(text));
            let (title, context) = (title.unwrap_or_default(), context.to_string());
            Some(Asked { title, context, id, question, line: place.line })
        }
        Err((kind, message)) => {
            findings.row(kind, place, format!("{told}{message}"));
            None
        }
    }
}

fn field<'a>(row: &'a Object, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| row.get(*name))
}

/// Problem of a field that is missing, empty or no text; its flag names another field.
fn no_text(row: &Object, names: &[&str], flag: &str) -> Problem {
    let Some(name) = names.iter().find(|name| row.contains_key(**name)) else {
        let keys: Vec<&str> = row.keys().map(String::as_str).collect();
        let message = format!(
            "has no {:?}; its keys are {}: choose one with --{flag}",
            names[0],
            say::list(&keys, LISTED)
        );
        return ("missing field", message);
    };
    match not_text(&row[*name]) {
        Some(kind) => {
            let value = say::short(&row[*name].to_string(), 40);
            let message = format!("{name:?} is {kind}, {value}; need a text, in quotation marks");
            ("not a text", message)
        }
        None if flag == "question" => ("empty question", "the question is empty".into()),
        None => ("missing field", format!("{name:?} is empty")),
    }
}

/// Text of a string or number.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_string())
}

/// Reads a question and its answers; also returns a note on an answer that occurs several times.
/// With `may_lack`, a question without answers is one that the context does not answer.
fn asked(
    row: &Object,
    fields: &Fields,
    context: &str,
    may_lack: bool,
) -> Result<(Question, Option<String>), Problem> {
    let question = field(row, &fields.question).and_then(Value::as_str).unwrap_or_default().trim();
    if question.is_empty() {
        return Err(no_text(row, &fields.question, "question"));
    }
    let question = question.to_string();
    let impossible = row.get("is_impossible").and_then(Value::as_bool) == Some(true);
    let Some(given) = field(row, &fields.answers) else {
        return match impossible {
            true => Ok((Question { text: question, answers: vec![] }, None)),
            false => Err(no_text(row, &fields.answers, "answer")),
        };
    };
    let given = answers(given, row.get("answer_start"))?;
    if impossible && !given.is_empty() {
        return Err(("impossible question", "is_impossible is true, and it has answers".into()));
    }
    if given.is_empty() && !impossible && !may_lack {
        let message = "has no answers; if the context has none, set \"is_impossible\": true";
        return Err(("no answer", message.into()));
    }
    let mut found: Vec<Answer> = vec![];
    let mut note = None;
    for (text, start) in given {
        if text.trim().is_empty() {
            return Err(("empty answer", "an answer is empty".into()));
        }
        let answer = match start {
            Some(start) => placed(text, start, context)?,
            None => {
                let (answer, places) = searched(&text, context)?;
                if places > 1 {
                    let text = say::short(&answer.text, 40);
                    note = Some(format!("{text:?} occurs {places} times; the first is taken"));
                }
                answer
            }
        };
        if !found.contains(&answer) {
            found.push(answer);
        }
    }
    Ok((Question { text: question, answers: found }, note))
}
