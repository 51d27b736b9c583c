//! What a template can call: filters, tests and functions.

use super::budget::{error, take, take_held, take_value};
use super::methods;
use super::operators::{self, within};
use super::python::{Namespace, print};
use super::{RECURSION, STEPS, json, strftime};
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, State, Value, filters, tests};
use minijinja_contrib::pycompat::unknown_method_callback;

/// Most numbers of a `range`.
const RANGE: i64 = 100_000;

/// Makes the environment.
pub fn environment() -> Environment<'static> {
    let mut all = Environment::empty();
    all.set_fuel(Some(STEPS));
    all.set_recursion_limit(RECURSION);
    all.set_unknown_method_callback(unknown_method_callback);
    all.set_formatter(|out, state, value| {
        take_value(state, value)?;
        print(value, &mut |text| {
            take(state, text.len())?;
            out.write_str(text).map_err(Error::from)
        })
    });
    operators::add_to(&mut all);
    all.add_filter("abs", filters::abs);
    all.add_filter("capitalize", filters::capitalize);
    all.add_filter("count", length);
    all.add_filter("d", filters::default);
    all.add_filter("default", filters::default);
    all.add_filter("dictsort", filters::dictsort);
    all.add_filter("first", filters::first);
    all.add_filter("float", filters::float);
    all.add_filter("indent", methods::indent);
    all.add_filter("int", filters::int);
    all.add_filter("items", items);
    all.add_filter("join", methods::join);
    all.add_filter("last", filters::last);
    all.add_filter("length", length);
    all.add_filter("list", filters::list);
    all.add_filter("lower", filters::lower);
    all.add_filter("map", filters::map);
    all.add_filter("max", filters::max);
    all.add_filter("min", filters::min);
    all.add_filter("reject", filters::reject);
    all.add_filter("rejectattr", filters::rejectattr);
    all.add_filter("replace", methods::replace);
    all.add_filter("reverse", filters::reverse);
    all.add_filter("round", filters::round);
    all.add_filter("safe", |value: Value| value);
    all.add_filter("select", filters::select);
    all.add_filter("selectattr", filters::selectattr);
    all.add_filter("sort", filters::sort);
    all.add_filter("string", methods::string);
    all.add_filter("title", filters::title);
    all.add_filter("tojson", json::tojson);
    all.add_filter("trim", methods::trim);
    all.add_filter("unique", filters::unique);
    all.add_filter("upper", filters::upper);
    all.add_test("boolean", tests::is_boolean);
    all.add_test("defined", tests::is_defined);
    all.add_test("divisibleby", tests::is_divisibleby);
    all.add_test("even", tests::is_even);
    all.add_test("false", tests::is_false);
    all.add_test("float", tests::is_float);
    all.add_test("in", |state: &mut State, a: Value, b: Value| within(state, a, b));
    all.add_test("integer", tests::is_integer);
    all.add_test("iterable", is_sequence);
    all.add_test("lower", tests::is_lower);
    all.add_test("mapping", tests::is_mapping);
    all.add_test("none", tests::is_none);
    all.add_test("number", tests::is_number);
    all.add_test("odd", tests::is_odd);
    all.add_test("sequence", is_sequence);
    all.add_test("string", tests::is_string);
    all.add_test("true", tests::is_true);
    all.add_test("undefined", tests::is_undefined);
    all.add_test("upper", tests::is_upper);
    for name in ["eq", "equalto", "=="] {
        all.add_test(name, |a: Value, b: Value| a == b);
    }
    for name in ["ne", "!="] {
        all.add_test(name, |a: Value, b: Value| a != b);
    }
    for name in ["lt", "lessthan", "<"] {
        all.add_test(name, |a: Value, b: Value| a < b);
    }
    for name in ["gt", "greaterthan", ">"] {
        all.add_test(name, |a: Value, b: Value| a > b);
    }
    for name in ["le", "<="] {
        all.add_test(name, |a: Value, b: Value| a <= b);
    }
    for name in ["ge", ">="] {
        all.add_test(name, |a: Value, b: Value| a >= b);
    }
    all.add_function("dict", dict);
    all.add_function("namespace", namespace);
    all.add_function("raise_exception", |message: String| Err::<Value, _>(error(message)));
    all.add_function("range", range);
    all.add_function("strftime_now", strftime::strftime_now);
    all
}

/// As Jinja has it: what is undefined has no items.
fn length(value: &Value) -> Result<usize, Error> {
    if value.is_undefined() { Ok(0) } else { filters::length(value) }
}

/// As [`length`].
fn items(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() { Ok(Value::from(Vec::<Value>::new())) } else { filters::items(value) }
}

fn range(
    state: &mut State,
    first: i64,
    second: Option<i64>,
    step: Option<i64>,
) -> Result<Value, Error> {
    let (start, stop) = second.map_or((0, first), |stop| (first, stop));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(error("range: need a step other than 0"));
    }
    let mut numbers = vec![];
    let mut at = start;
    while if step > 0 { at < stop } else { at > stop } {
        if numbers.len() as i64 == RANGE {
            return Err(error(format!("range: more than {RANGE} numbers")));
        }
        take(state, 32)?;
        numbers.push(Value::from(at));
        at = at.saturating_add(step);
    }
    Ok(Value::from(numbers))
}

fn namespace(state: &mut State, kwargs: Kwargs) -> Result<Value, Error> {
    let namespace = Namespace::default();
    for key in kwargs.args().map(str::to_string).collect::<Vec<_>>() {
        let value: Value = kwargs.get(&key)?;
        take_held(state, &value)?;
        namespace.set(&key, value);
    }
    Ok(Value::from_object(namespace))
}

fn dict(state: &mut State, from: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let mut pairs = vec![];
    if let Some(from) = from.filter(|from| !from.is_undefined()) {
        take_value(state, &from)?;
        for key in from.try_iter()?.checked() {
            let key = key?;
            pairs.push((key.clone(), from.get_item(&key)?));
        }
    }
    for key in kwargs.args().map(str::to_string).collect::<Vec<_>>() {
        let value: Value = kwargs.get(&key)?;
        take_value(state, &value)?;
        pairs.push((Value::from(key), value));
    }
    Ok(Value::from_pairs(pairs))
}

/// As Jinja has it: texts and maps are sequences too.
fn is_sequence(value: &Value) -> bool {
    use ValueKind as K;
    matches!(value.kind(), K::String | K::Seq | K::Map | K::Iterable)
}
