//! Methods and filters of texts that could make long ones, and those that differ from Python's.

use super::budget::{error, take};
use super::python::{is_space, print};
use minijinja::value::{Kwargs, Rest, ValueOrKwargs, from_args};
use minijinja::{Error, State, Value};

/// Calls a method of a text; `None` if it is one that is not defined here.
pub fn of_text(
    state: &mut State,
    text: &str,
    method: &str,
    arguments: &[Value],
) -> Result<Option<Value>, Error> {
    let strip = |front: bool, back: bool| {
        let (chars,): (Option<&str>,) = from_args(arguments)?;
        Ok::<_, Error>(Some(Value::from(stripped(text, chars, front, back))))
    };
    match method {
        "strip" => strip(true, true),
        "lstrip" => strip(true, false),
        "rstrip" => strip(false, true),
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(arguments)?;
            Ok(Some(Value::from(text.strip_prefix(prefix).unwrap_or(text))))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(arguments)?;
            Ok(Some(Value::from(text.strip_suffix(suffix).unwrap_or(text))))
        }
        "replace" => {
            let (old, new, count): (&str, &str, Option<i64>) = from_args(arguments)?;
            replaced(state, text, old, new, count).map(|text| Some(Value::from(text)))
        }
        "join" => {
            let (values,): (&Value,) = from_args(arguments)?;
            joined(state, values, text).map(|text| Some(Value::from(text)))
        }
        "format" => Err(error("the method format is not supported; use ~")),
        _ => Ok(None),
    }
}

fn stripped<'t>(text: &'t str, chars: Option<&str>, front: bool, back: bool) -> &'t str {
    let is_cut = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let text = if front { text.trim_start_matches(is_cut) } else { text };
    if back { text.trim_end_matches(is_cut) } else { text }
}

/// The filter `trim`.
pub fn trim(value: Value, chars: Option<String>) -> Result<String, Error> {
    let text = printed(&value)?;
    Ok(stripped(&text, chars.as_deref(), true, true).to_string())
}

/// The filter `string`.
pub fn string(value: Value) -> Result<String, Error> {
    printed(&value)
}

/// `str(value)`, of a value that was taken from the budget.
pub fn printed(value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    print(value, &mut |piece| {
        text.push_str(piece);
        Ok(())
    })?;
    Ok(text)
}

/// The filter `replace`.
pub fn replace(
    state: &mut State,
    text: Value,
    old: String,
    new: String,
    count: Option<i64>,
) -> Result<String, Error> {
    let text = printed(&text)?;
    replaced(state, &text, &old, &new, count)
}

fn replaced(
    state: &mut State,
    text: &str,
    old: &str,
    new: &str,
    count: Option<i64>,
) -> Result<String, Error> {
    let most = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let found = text.matches(old).take(most).count();
    take(state, text.len().saturating_add(found.saturating_mul(new.len())))?;
    Ok(text.replacen(old, new, most))
}

/// The filter `join`.
pub fn join(
    state: &mut State,
    values: Value,
    between: Option<String>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let values = match kwargs.get::<Option<Value>>("attribute")? {
        None => values,
        Some(key) => {
            let mut all = vec![];
            for value in values.try_iter()?.checked() {
                all.push(value?.get_item(&key)?);
            }
            Value::from(all)
        }
    };
    kwargs.assert_all_used()?;
    joined(state, &values, between.as_deref().unwrap_or(""))
}

fn joined(state: &mut State, values: &Value, between: &str) -> Result<String, Error> {
    let mut text = String::new();
    for (at, value) in values.try_iter()?.checked().enumerate() {
        if at > 0 {
            take(state, between.len())?;
            text.push_str(between);
        }
        print(&value?, &mut |piece| {
            take(state, piece.len())?;
            text.push_str(piece);
            Ok(())
        })?;
    }
    Ok(text)
}

/// The filter `indent`.
pub fn indent(
    state: &mut State,
    text: Value,
    arguments: Rest<ValueOrKwargs>,
) -> Result<String, Error> {
    let arguments = arguments.into_values();
    type Arguments = (Option<Value>, Option<bool>, Option<bool>, Kwargs);
    let (width, first, blank, kwargs): Arguments = from_args(&arguments)?;
    let width = width.map_or_else(|| kwargs.get::<Option<Value>>("width"), |width| Ok(Some(width)));
    let before = match width?.map(|width| (width.to_str(), width.as_usize())) {
        None => " ".repeat(4),
        Some((Some(text), _)) => text.to_string(),
        Some((None, Some(count))) if count <= 256 => " ".repeat(count),
        Some(_) => return Err(error("indent: need a width of 0 to 256, or a text")),
    };
    let flag = |given: Option<bool>, name| match given {
        Some(given) => Ok(given),
        None => kwargs.get::<Option<bool>>(name).map(|flag| flag.unwrap_or(false)),
    };
    let (first, blank) = (flag(first, "first")?, flag(blank, "blank")?);
    kwargs.assert_all_used()?;
    let whole = printed(&text)?;
    let mut text = String::new();
    for (at, line) in whole.split('\n').enumerate() {
        let before =
            if at == 0 && !first || line.is_empty() && !blank && at > 0 { "" } else { &before };
        take(state, before.len() + line.len() + 1)?;
        text.push_str(if at > 0 { "\n" } else { "" });
        text.push_str(before);
        text.push_str(line);
    }
    Ok(text)
}
