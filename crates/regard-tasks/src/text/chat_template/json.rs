//! `tojson` as in transformers: Python's `json.dumps` without escapes for HTML and for letters.

use super::budget::{error, take, take_value};
use super::python::float;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, State, Value};

/// How JSON is written.
struct Style {
    ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort: bool,
}

/// The filter.
pub fn tojson(state: &mut State, value: Value, kwargs: Kwargs) -> Result<String, Error> {
    take_value(state, &value)?;
    let indent = match kwargs.get::<Option<Value>>("indent")? {
        None => None,
        Some(value) if value.is_none() => None,
        Some(value) => Some(match (value.as_str(), value.as_usize()) {
            (Some(text), _) => text.to_string(),
            (None, Some(count)) if count <= 64 => " ".repeat(count),
            _ => return Err(error("tojson: need an indent of 0 to 64, or a text")),
        }),
    };
    let separators = kwargs.get::<Option<Value>>("separators")?.filter(|value| !value.is_none());
    let (item, key) = match separators {
        None => (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string()),
        Some(both) => {
            let both: Vec<Value> = both.try_iter()?.collect();
            match [both.first(), both.get(1)].map(|text| text.and_then(Value::as_str)) {
                [Some(item), Some(key)] => (item.to_string(), key.to_string()),
                _ => return Err(error("tojson: need two texts as separators")),
            }
        }
    };
    let flag = |name| kwargs.get::<Option<bool>>(name).map(|flag| flag.unwrap_or(false));
    let style = Style { ascii: flag("ensure_ascii")?, indent, item, key, sort: flag("sort_keys")? };
    kwargs.assert_all_used()?;
    let mut json = Json { state, text: String::new(), style };
    json.value(&value, 0)?;
    Ok(json.text)
}

struct Json<'a, 't, 'e> {
    state: &'a mut State<'t, 'e>,
    text: String,
    style: Style,
}

impl Json<'_, '_, '_> {
    fn push(&mut self, text: &str) -> Result<(), Error> {
        take(self.state, text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    fn line(&mut self, depth: usize) -> Result<(), Error> {
        if let Some(indent) = self.style.indent.clone() {
            self.push("\n")?;
            for _ in 0..depth {
                self.push(&indent)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => self.push("null"),
            ValueKind::Bool => self.push(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => {
                let number = self.number(value);
                self.push(&number)
            }
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let mut items = vec![];
                for item in value.try_iter()?.checked() {
                    items.push((None, item?));
                }
                self.items(["[", "]"], items, depth)
            }
            ValueKind::Map => {
                let mut items = vec![];
                for key in value.try_iter()?.checked() {
                    let key = key?;
                    let item = value.get_item(&key)?;
                    let name = match key.kind() {
                        ValueKind::String => key.as_str().unwrap_or_default().to_string(),
                        ValueKind::Number => self.number(&key),
                        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.to_string(),
                        ValueKind::None => "null".to_string(),
                        kind => return Err(error(format!("tojson: a key is of type {kind}"))),
                    };
                    items.push((Some(name), item));
                }
                if self.style.sort {
                    items.sort_by(|a, b| a.0.cmp(&b.0));
                }
                self.items(["{", "}"], items, depth)
            }
            kind => Err(error(format!("tojson: a value of type {kind} has no JSON"))),
        }
    }

    fn number(&self, value: &Value) -> String {
        match f64::try_from(value.clone()) {
            Ok(number) if !value.is_integer() => match number {
                n if n.is_nan() => "NaN".to_string(),
                n if n.is_infinite() => if n > 0.0 { "Infinity" } else { "-Infinity" }.to_string(),
                n => float(n),
            },
            _ => value.to_string(),
        }
    }

    fn items(
        &mut self,
        [open, close]: [&str; 2],
        items: Vec<(Option<String>, Value)>,
        depth: usize,
    ) -> Result<(), Error> {
        self.push(open)?;
        let empty = items.is_empty();
        for (at, (key, item)) in items.into_iter().enumerate() {
            if at > 0 {
                let separator = self.style.item.clone();
                self.push(&separator)?;
            }
            self.line(depth + 1)?;
            if let Some(key) = key {
                self.string(&key)?;
                let separator = self.style.key.clone();
                self.push(&separator)?;
            }
            self.value(&item, depth + 1)?;
        }
        if !empty {
            self.line(depth)?;
        }
        self.push(close)
    }

    fn string(&mut self, text: &str) -> Result<(), Error> {
        let mut quoted = String::with_capacity(text.len() + 2);
        quoted.push('"');
        for c in text.chars() {
            match c {
                '"' => quoted.push_str("\\\""),
                '\\' => quoted.push_str("\\\\"),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                '\u{8}' => quoted.push_str("\\b"),
                '\u{c}' => quoted.push_str("\\f"),
                c if (c as u32) < 0x20 => quoted.push_str(&format!("\\u{:04x}", c as u32)),
                c if self.style.ascii && !c.is_ascii() => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        quoted.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => quoted.push(c),
            }
        }
        quoted.push('"');
        self.push(&quoted)
    }
}
