//! Values as Python has them: how they are printed, cut, and held by a namespace.

use super::budget::error;
use minijinja::value::{Enumerator, Object, Tuple, ValueKind};
use minijinja::{Error, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Receives pieces of text.
pub type Write<'a> = dyn FnMut(&str) -> Result<(), Error> + 'a;

/// What `namespace()` makes: the only kind of value that a template can change.
#[derive(Debug, Default)]
pub struct Namespace(Mutex<BTreeMap<Arc<str>, Value>>);

impl Namespace {
    pub fn set(&self, key: &str, value: Value) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.into(), value);
    }
}

impl Object for Namespace {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(key.as_str()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Enumerator::Values(held.keys().cloned().map(Value::from).collect())
    }
}

/// Writes `str(value)`.
pub fn print(value: &Value, write: &mut Write) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => write(text),
        None if value.is_undefined() => Ok(()),
        None => represent(value, write),
    }
}

/// Writes `repr(value)`.
fn represent(value: &Value, write: &mut Write) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined => write("Undefined"),
        ValueKind::None => write("None"),
        ValueKind::Bool => write(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(number) if !value.is_integer() => write(&float(number)),
            _ => write(&value.to_string()),
        },
        ValueKind::String => quote(value.as_str().unwrap_or_default(), write),
        ValueKind::Seq | ValueKind::Iterable => {
            let ends = if value.is_tuple() { ["(", ")"] } else { ["[", "]"] };
            write(ends[0])?;
            for (at, item) in value.try_iter()?.checked().enumerate() {
                write(if at > 0 { ", " } else { "" })?;
                represent(&item?, write)?;
            }
            let single = value.is_tuple() && value.len() == Some(1);
            write(if single { "," } else { "" })?;
            write(ends[1])
        }
        ValueKind::Map => {
            write("{")?;
            for (at, key) in value.try_iter()?.checked().enumerate() {
                let key = key?;
                write(if at > 0 { ", " } else { "" })?;
                represent(&key, write)?;
                write(": ")?;
                represent(&value.get_item(&key)?, write)?;
            }
            write("}")
        }
        _ => write(&value.to_string()),
    }
}

/// A float as Python spells it.
pub fn float(number: f64) -> String {
    if !number.is_finite() {
        let name = if number.is_nan() { "nan" } else { "inf" };
        return format!("{}{name}", if number < 0.0 { "-" } else { "" });
    }
    let scientific = format!("{number:e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match power.parse().unwrap_or(0) {
        -4..16 => format!("{number:?}"),
        power if power < 0 => format!("{digits}e-{:02}", -power),
        power => format!("{digits}e+{power:02}"),
    }
}

/// A text in quotes, as in Python.
fn quote(text: &str, write: &mut Write) -> Result<(), Error> {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(mark);
    for c in text.chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c == mark => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push(mark);
    write(&quoted)
}

/// Returns `value[start:stop:step]`.
pub fn slice(value: &Value, ends: [&Value; 3]) -> Result<Value, Error> {
    let mut numbers = [None; 3];
    for (number, end) in numbers.iter_mut().zip(ends) {
        if !end.is_none() {
            let whole = end
                .as_i64()
                .ok_or_else(|| error(format!("a slice needs whole numbers, got {}", end.kind())))?;
            *number = Some(whole);
        }
    }
    let [start, stop, step] = numbers;
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(error("a slice needs a step other than 0"));
    }
    let places = |length: usize| -> Vec<usize> {
        let length = length as i64;
        let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
        let place = |end: Option<i64>, otherwise: i64| {
            end.map_or(otherwise, |end| if end < 0 { end.saturating_add(length) } else { end })
                .clamp(low, high)
        };
        let (mut at, end) = match step > 0 {
            true => (place(start, 0), place(stop, length)),
            // The end before the first one cannot be written as a number.
            false => (place(start, length - 1), stop.map_or(-1, |stop| place(Some(stop), -1))),
        };
        let mut places = vec![];
        while if step > 0 { at < end } else { at > end } {
            places.push(at as usize);
            at = at.saturating_add(step);
        }
        places
    };
    if let Some(text) = value.as_str() {
        let characters: Vec<char> = text.chars().collect();
        let cut = places(characters.len()).into_iter().map(|at| characters[at]);
        return Ok(Value::from(cut.collect::<String>()));
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(error(format!("a value of type {} cannot be sliced", value.kind())));
    }
    let items: Vec<Value> = value.try_iter()?.checked().collect::<Result<_, _>>()?;
    let cut: Vec<Value> = places(items.len()).into_iter().map(|at| items[at].clone()).collect();
    Ok(if value.is_tuple() { Value::from(Tuple::from(cut)) } else { Value::from(cut) })
}

/// Whether Python's `str.strip()` removes a character.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}
