//! What instructions became: operators, and calls of filters, tests and methods. Each takes from the
//! budget what it makes or looks through.

use super::budget::{error, settle, take, take_characters, take_held, take_value};
use super::methods;
use super::python::{self, Namespace};
use super::rewrite::name;
use minijinja::value::{Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value};

/// Filters and methods that look at no more than a text of their first argument.
const QUICK: [&str; 9] =
    ["length", "count", "first", "last", "default", "d", "safe", "get", "list"];

/// Filters and methods that make values of the characters or pieces of a text.
const CUTTING: [&str; 13] = [
    "list",
    "split",
    "splitlines",
    "map",
    "select",
    "reject",
    "selectattr",
    "rejectattr",
    "reverse",
    "sort",
    "unique",
    "min",
    "max",
];

/// Tests that look at the type of a value.
const OF_TYPES: [&str; 12] = [
    "defined",
    "undefined",
    "none",
    "boolean",
    "number",
    "integer",
    "float",
    "string",
    "sequence",
    "iterable",
    "mapping",
    "true",
];

/// Adds the filters that stand for instructions.
pub fn add_to(all: &mut Environment) {
    all.add_filter(name::ADD, add);
    all.add_filter(name::MULTIPLY, multiply);
    all.add_filter(name::CONCAT, concat);
    all.add_filter(name::EQUAL, |state: &mut State, a: Value, b: Value| {
        compared(state, &a, &b).map(|()| a == b)
    });
    all.add_filter(name::DIFFERENT, |state: &mut State, a: Value, b: Value| {
        compared(state, &a, &b).map(|()| a != b)
    });
    all.add_filter(name::LESS, |state: &mut State, a: Value, b: Value| {
        compared(state, &a, &b).map(|()| a < b)
    });
    all.add_filter(name::AT_MOST, |state: &mut State, a: Value, b: Value| {
        compared(state, &a, &b).map(|()| a <= b)
    });
    all.add_filter(name::MORE, |state: &mut State, a: Value, b: Value| {
        compared(state, &a, &b).map(|()| a > b)
    });
    all.add_filter(name::AT_LEAST, |state: &mut State, a: Value, b: Value| {
        compared(state, &a, &b).map(|()| a >= b)
    });
    all.add_filter(name::WITHIN, within);
    all.add_filter(name::ITEM, item);
    all.add_filter(name::SLICE, slice);
    all.add_filter(name::LIST, |state: &mut State, items: Rest<Value>| {
        items.iter().try_for_each(|item| take_value(state, item))?;
        Ok::<_, Error>(Value::from(items.0))
    });
    all.add_filter(name::TUPLE, |state: &mut State, items: Rest<Value>| {
        items.iter().try_for_each(|item| take_value(state, item))?;
        Ok::<_, Error>(Value::from(Tuple::from(items.0)))
    });
    all.add_filter(name::MAP, |state: &mut State, items: Rest<Value>| {
        items.iter().try_for_each(|item| take_value(state, item))?;
        let pairs = items.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        Ok::<_, Error>(Value::from_pairs(pairs))
    });
    all.add_filter(name::SET, |state: &mut State, value: Value, held: Value, key: String| {
        take_held(state, &value)?;
        match held.downcast_object_ref::<Namespace>() {
            Some(namespace) => namespace.set(&key, value),
            None => {
                return Err(error(format!("only a namespace can be changed, not {}", held.kind())));
            }
        }
        Ok(Value::UNDEFINED)
    });
    all.add_filter(name::LOOKED_AT, |state: &mut State, value: Value| {
        take_value(state, &value).map(|()| value)
    });
    all.add_filter(name::ITERATED, |state: &mut State, value: Value| {
        take_characters(state, &value).map(|()| value)
    });
    // What a macro remembers of the variables around it is freed at the end only.
    all.add_filter(name::CLOSURE, |state: &mut State, value: Value| {
        take(state, 1024).map(|()| value)
    });
    all.add_filter(name::FILTER, call_filter);
    all.add_filter(name::TEST, call_test);
    all.add_filter(name::METHOD, call_method);
}

/// Takes arguments from the budget, before a filter or a method.
fn take_arguments(state: &mut State, name: &str, arguments: &[Value]) -> Result<(), Error> {
    let (first, rest) = arguments.split_first().ok_or_else(|| error("an argument is missing"))?;
    if CUTTING.contains(&name) {
        take_characters(state, first)?;
    }
    match QUICK.contains(&name) {
        true => take(state, first.as_str().map_or(0, str::len))?,
        false => take_value(state, first)?,
    }
    rest.iter().try_for_each(|argument| take_value(state, argument))
}

/// Separates the name, which is the last argument.
fn with_name(arguments: Rest<ValueOrKwargs>) -> (Vec<Value>, Value) {
    let mut arguments = arguments.into_values();
    let name = arguments.pop().unwrap_or_default();
    (arguments, name)
}

fn call_filter(state: &mut State, arguments: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let (arguments, name) = with_name(arguments);
    let name = name.as_str().unwrap_or_default();
    take_arguments(state, name, &arguments)?;
    let result = state.apply_filter(name, &arguments).map_err(|e| of_name(e, "filter", name))?;
    if QUICK.contains(&name) && result.kind() != ValueKind::Iterable && name != "list" {
        return Ok(result);
    }
    settle(state, result)
}

fn call_test(state: &mut State, arguments: Rest<ValueOrKwargs>) -> Result<bool, Error> {
    let (arguments, name) = with_name(arguments);
    let name = name.as_str().unwrap_or_default();
    if !OF_TYPES.contains(&name) {
        take_arguments(state, name, &arguments)?;
    }
    state.perform_test(name, &arguments).map_err(|e| of_name(e, "test", name))
}

fn call_method(state: &mut State, arguments: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let (arguments, name) = with_name(arguments);
    let name = name.as_str().unwrap_or_default();
    take_arguments(state, name, &arguments)?;
    let (object, rest) =
        arguments.split_first().ok_or_else(|| error("a method needs an object"))?;
    if name == "changed" {
        // A loop keeps them.
        rest.iter().try_for_each(|argument| take_held(state, argument))?;
    }
    let result = match object.as_str() {
        Some(text) => methods::of_text(state, text, name, rest)?,
        None => None,
    };
    let result = match result {
        Some(result) => result,
        None => object.call_method(state, name, rest).map_err(|e| of_name(e, "method", name))?,
    };
    settle(state, result)
}

/// Names what an error without details is about.
fn of_name(error: Error, what: &str, name: &str) -> Error {
    match error.detail() {
        Some(_) => error,
        None => Error::new(error.kind(), format!("the {what} {name}")),
    }
}

fn compared(state: &mut State, a: &Value, b: &Value) -> Result<(), Error> {
    take_value(state, a)?;
    take_value(state, b)
}

/// `value in container`.
pub fn within(state: &mut State, value: Value, container: Value) -> Result<bool, Error> {
    take_value(state, &value)?;
    match (container.as_str(), container.kind()) {
        (Some(text), _) => {
            take(state, text.len())?;
            let part = value.as_str().ok_or_else(|| {
                error(format!("`in` of a text needs a text before it, got {}", value.kind()))
            })?;
            Ok(text.contains(part))
        }
        (None, ValueKind::Undefined) => Ok(false),
        (None, ValueKind::Map) => {
            let found = container.get_item(&value).is_ok_and(|found| !found.is_undefined());
            if found || container.downcast_object_ref::<Namespace>().is_some() {
                return Ok(found);
            }
            // A key whose value is undefined is a key too.
            for key in container.try_iter()?.checked() {
                let key = key?;
                take_value(state, &key)?;
                if key == value {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (None, ValueKind::Seq | ValueKind::Iterable) => {
            take_value(state, &container)?;
            Ok(container.try_iter()?.any(|item| item == value))
        }
        (None, kind) => Err(error(format!("`in` needs a text, a list or a map, got {kind}"))),
    }
}

fn add(state: &mut State, a: Value, b: Value) -> Result<Value, Error> {
    let is_list = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        take(state, a.len() + b.len())?;
        return Ok(Value::from([a, b].concat()));
    }
    if is_list(&a) && is_list(&b) && a.is_tuple() == b.is_tuple() {
        compared(state, &a, &b)?;
        let items = a.try_iter()?.chain(b.try_iter()?);
        let items: Vec<Value> = items.collect();
        return Ok(if a.is_tuple() { Value::from(Tuple::from(items)) } else { Value::from(items) });
    }
    if !a.is_number() || !b.is_number() {
        return Err(error(format!("+ of {} and {}: need two of one kind", a.kind(), b.kind())));
    }
    match (a.as_i64(), b.as_i64()) {
        (Some(x), Some(y)) if a.is_integer() && b.is_integer() => {
            x.checked_add(y).map(Value::from).ok_or_else(|| error("+: the number is too large"))
        }
        _ => Ok(Value::from(float(&a)? + float(&b)?)),
    }
}

fn float(value: &Value) -> Result<f64, Error> {
    f64::try_from(value.clone())
}

fn multiply(state: &mut State, a: Value, b: Value) -> Result<Value, Error> {
    let (long, times) = if a.is_number() { (&b, &a) } else { (&a, &b) };
    if let Some(text) = long.as_str() {
        let times = times.as_i64().ok_or_else(|| error("* of a text needs a whole number"))?;
        let times = usize::try_from(times).unwrap_or(0);
        take(state, text.len().saturating_mul(times))?;
        return Ok(Value::from(text.repeat(times)));
    }
    if !a.is_number() || !b.is_number() {
        return Err(error(format!("* of {} and {}: need numbers", a.kind(), b.kind())));
    }
    match (a.as_i64(), b.as_i64()) {
        (Some(x), Some(y)) if a.is_integer() && b.is_integer() => {
            x.checked_mul(y).map(Value::from).ok_or_else(|| error("*: the number is too large"))
        }
        _ => Ok(Value::from(float(&a)? * float(&b)?)),
    }
}

fn concat(state: &mut State, a: Value, b: Value) -> Result<Value, Error> {
    compared(state, &a, &b)?;
    let text = methods::printed(&a)? + &methods::printed(&b)?;
    take(state, text.len())?;
    Ok(Value::from(text))
}

fn item(state: &mut State, value: Value, key: Value) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        take_value(state, &key)?;
        return value.get_item(&key);
    };
    take(state, text.len())?;
    let Some(at) = key.as_i64() else { return Ok(Value::UNDEFINED) };
    let found = match usize::try_from(at) {
        Ok(at) => text.chars().nth(at),
        Err(_) => text.chars().rev().nth(at.unsigned_abs() as usize - 1),
    };
    Ok(found.map_or(Value::UNDEFINED, Value::from))
}

fn slice(
    state: &mut State,
    value: Value,
    start: Value,
    stop: Value,
    step: Value,
) -> Result<Value, Error> {
    take_value(state, &value)?;
    python::slice(&value, [&start, &stop, &step])
}
