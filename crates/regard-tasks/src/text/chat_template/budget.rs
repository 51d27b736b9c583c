//! What a template may take: bytes that its steps make or look through.

use super::python::Namespace;
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

/// Bytes that all steps together may make or look through.
const BUDGET: usize = 64 << 20;

/// What a value takes beside its text, about.
const EACH: usize = 32;

/// Depth of lists in lists.
const DEEPEST: usize = 64;

/// Bytes that were taken so far.
#[derive(Default)]
struct Spent(usize);

pub fn error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Takes bytes from the budget.
///
/// # Errors
/// If there are not as many left.
pub fn take(state: &mut State, bytes: usize) -> Result<(), Error> {
    let Spent(spent) = state.get_or_insert_extension_with(Spent::default);
    *spent = spent.saturating_add(bytes).saturating_add(1);
    match *spent > BUDGET {
        true => Err(error(format!(
            "it makes or looks through more than {} MB of text and lists; does it double one again \
             and again?",
            BUDGET >> 20
        ))),
        false => Ok(()),
    }
}

/// Takes what a value is, with all values in it.
pub fn take_value(state: &mut State, value: &Value) -> Result<(), Error> {
    walk(state, value, 0, true)
}

/// As [`take_value`], for a value that a namespace or a loop is to hold. It must be plain data: a
/// namespace that held itself, or a loop over itself, would never be freed.
pub fn take_held(state: &mut State, value: &Value) -> Result<(), Error> {
    walk(state, value, 0, false)
}

/// Whether a value is no data but an object of the engine: a loop or a macro.
fn is_of_engine(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().starts_with("minijinja::vm::"))
}

fn walk(state: &mut State, value: &Value, depth: usize, objects: bool) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        return take(state, EACH + text.len());
    }
    take(state, EACH)?;
    if depth > DEEPEST {
        return Err(error(format!("lists nest more than {DEEPEST} deep")));
    }
    if !objects && (value.downcast_object_ref::<Namespace>().is_some() || is_of_engine(value)) {
        return Err(error(
            "a namespace and loop.changed hold texts, numbers, lists and maps; they cannot hold a \
             namespace, a loop or a macro",
        ));
    }
    match value.kind() {
        ValueKind::Bytes => take(state, value.len().unwrap_or(0)),
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter()?.checked() {
                walk(state, &item?, depth + 1, objects)?;
            }
            Ok(())
        }
        ValueKind::Map => {
            for key in value.try_iter()?.checked() {
                let key = key?;
                walk(state, &key, depth + 1, objects)?;
                walk(state, &value.get_item(&key)?, depth + 1, objects)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Takes the characters of a text that become values of their own; nothing for other values.
pub fn take_characters(state: &mut State, value: &Value) -> Result<(), Error> {
    take(state, value.as_str().map_or(0, |text| text.len().saturating_mul(EACH)))
}

/// Makes a list of what a filter or method would compute later, and takes the result.
pub fn settle(state: &mut State, value: Value) -> Result<Value, Error> {
    let value = match value.kind() {
        ValueKind::Iterable => {
            let mut items = vec![];
            for item in value.try_iter()?.checked() {
                take(state, EACH)?;
                items.push(item?);
            }
            Value::from(items)
        }
        _ => value,
    };
    take_value(state, &value)?;
    Ok(value)
}
