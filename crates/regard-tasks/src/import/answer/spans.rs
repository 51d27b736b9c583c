//! Answers and their places in the context.

use super::Answer;
use crate::say;
use serde_json::Value;

/// Kind and description of a problem.
pub(super) type Problem = (&'static str, String);

/// Texts of answers and their places, in all forms: a text, a list of texts or objects, an object
/// of lists.
pub(super) fn answers(
    value: &Value,
    start: Option<&Value>,
) -> Result<Vec<(String, Option<usize>)>, Problem> {
    let number = |value: &Value| match value.as_u64() {
        Some(number) => Ok(number as usize),
        None => Err(("answer_start", format!("answer_start {value} is not a place, from 0"))),
    };
    let wrong = || {
        let message = "\"answers\" is no text, no list, and no object with \"text\"";
        ("JSON", message.to_string())
    };
    let one = |value: &Value, start: Option<&Value>| -> Result<_, Problem> {
        let (text, start) = match value {
            Value::Object(object) => (object.get("text"), object.get("answer_start")),
            other => (Some(other), start),
        };
        let text = text.and_then(Value::as_str).ok_or_else(wrong)?.to_string();
        Ok((text, start.filter(|start| !start.is_null()).map(number).transpose()?))
    };
    match value {
        Value::Null => Ok(vec![]),
        Value::String(text) if text.trim().is_empty() => Ok(vec![]),
        Value::Array(items) => items.iter().map(|item| one(item, None)).collect(),
        Value::Object(object) => match (object.get("text"), object.get("answer_start")) {
            (Some(Value::Array(texts)), Some(Value::Array(starts))) => {
                if texts.len() != starts.len() {
                    let message =
                        format!("has {} answers and {} answer_start", texts.len(), starts.len());
                    return Err(("different lengths", message));
                }
                texts.iter().zip(starts).map(|(text, start)| one(text, Some(start))).collect()
            }
            (Some(Value::Array(texts)), _) => texts.iter().map(|text| one(text, None)).collect(),
            _ => Ok(vec![one(value, None)?]),
        },
        other => Ok(vec![one(other, start)?]),
    }
}

/// Checks that an answer is at its place, counted in characters.
pub(super) fn placed(text: String, start: usize, context: &str) -> Result<Answer, Problem> {
    let byte = context.char_indices().map(|(byte, _)| byte).nth(start);
    if byte.is_some_and(|byte| context[byte..].starts_with(&text)) {
        return Ok(Answer { text, answer_start: start });
    }
    let there: String = context.chars().skip(start).take(text.chars().count()).collect();
    let places: Vec<usize> = places(&text, context).collect();
    let nearest = places.iter().min_by_key(|place| place.abs_diff(start));
    let is_in_bytes = context.get(start..).is_some_and(|rest| rest.starts_with(&text));
    let where_it_is = match nearest {
        Some(place) if is_in_bytes => {
            format!("the answer is at {place}; answer_start counts characters, not bytes")
        }
        Some(place) => format!("the answer is at {place}"),
        None => "the context does not have the answer".to_string(),
    };
    let [there, text] = [&there, &text].map(|text| say::short(text, 40));
    let message =
        format!("at answer_start {start} is {there:?}, the answer is {text:?}: {where_it_is}");
    Err(("answer_start", message))
}

/// Finds an answer; also returns the number of its places.
pub(super) fn searched(text: &str, context: &str) -> Result<(Answer, usize), Problem> {
    let text = text.trim();
    let mut found = places(text, context);
    let Some(start) = found.next() else {
        let told = say::short(text, 40);
        let same = context.to_lowercase().contains(&text.to_lowercase());
        let hint = if same { " (only with other capital letters)" } else { "" };
        return Err((
            "answer not found",
            format!("the context does not have the answer {told:?}{hint}"),
        ));
    };
    Ok((Answer { text: text.to_string(), answer_start: start }, 1 + found.count()))
}

/// Places of a text in a context, in characters.
fn places<'a>(text: &'a str, context: &'a str) -> impl Iterator<Item = usize> + 'a {
    let (mut characters, mut from) = (0, 0);
    context.match_indices(text).map(move |(byte, _)| {
        characters += context[from..byte].chars().count();
        from = byte;
        characters
    })
}
