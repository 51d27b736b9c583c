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
        Value::Array(items) => match start {
            // One place for each answer, beside the list.
            Some(Value::Array(starts)) => {
                zipped(items, starts)?.map(|(item, start)| one(item, Some(start))).collect()
            }
            Some(start) if !start.is_null() && items.len() == 1 => {
                Ok(vec![one(&items[0], Some(start))?])
            }
            Some(start) if !start.is_null() => {
                let message = format!(
                    "has {} answers and one answer_start, {start}; need a list of the same length",
                    items.len()
                );
                Err(("different lengths", message))
            }
            _ => items.iter().map(|item| one(item, None)).collect(),
        },
        Value::Object(object) => match (object.get("text"), object.get("answer_start")) {
            (Some(Value::Array(texts)), Some(Value::Array(starts))) => {
                zipped(texts, starts)?.map(|(text, start)| one(text, Some(start))).collect()
            }
            (Some(Value::Array(texts)), _) => texts.iter().map(|text| one(text, None)).collect(),
            _ => Ok(vec![one(value, None)?]),
        },
        other => Ok(vec![one(other, start)?]),
    }
}

/// Answers with their places, which must be as many.
fn zipped<'a>(
    texts: &'a [Value],
    starts: &'a [Value],
) -> Result<impl Iterator<Item = (&'a Value, &'a Value)>, Problem> {
    match texts.len() == starts.len() {
        true => Ok(texts.iter().zip(starts)),
        false => {
            let message = format!("has {} answers and {} answer_start", texts.len(), starts.len());
            Err(("different lengths", message))
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_beside_a_list_belong_to_its_answers() {
        let texts = json!(["Paris", "France"]);
        let found = answers(&texts, Some(&json!([40, 9]))).unwrap();
        assert_eq!(found, [("Paris".to_string(), Some(40)), ("France".into(), Some(9))]);
        assert_eq!(answers(&json!(["Paris"]), Some(&json!(40))).unwrap()[0].1, Some(40));
        for start in [json!([40]), json!(40)] {
            let (kind, message) = answers(&texts, Some(&start)).unwrap_err();
            assert_eq!(kind, "different lengths", "{message}");
        }
        assert_eq!(answers(&texts, None).unwrap()[0].1, None);
    }
}
