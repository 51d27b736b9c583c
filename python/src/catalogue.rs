//! The catalogue of the kernels, as Python data.

use crate::guard::entry;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use regard_kernels::attention::{Setting, Variant, catalogue, find, score};

fn rows(kind: &str) -> Vec<Variant> {
    catalogue().into_iter().filter(|(name, _)| *name == kind).flat_map(|(_, rows)| rows).collect()
}

/// Shape of a parameter, in letters.
pub fn shape(kind: &str, name: &str, param: &str) -> &'static str {
    let row = rows(kind).into_iter().find(|row| row.name == name);
    let found = row.and_then(|row| row.params.iter().find(|(name, _)| *name == param));
    found.expect("a parameter of the catalogue").1
}

/// Python code that selects a row.
fn usage(kind: &str, row: &Variant) -> String {
    let name = row.name;
    let settings = row.settings.iter().filter(|row| !matches!(row, Setting::Size(_)));
    let settings = settings.flat_map(Setting::names);
    let params = row.params.iter().map(|(name, _)| *name);
    let call = |keywords: Vec<&str>| {
        let function = if kind == "normalize" { "normalizer" } else { kind };
        let keywords: String = keywords.iter().map(|word| format!(", {word}=…")).collect();
        format!("regard.{function}(\"{name}\"{keywords})")
    };
    match kind {
        // A row that tests cannot create needs a custom function.
        "score" if find(score::ROWS, name).is_some_and(|row| row.trials.is_empty()) => {
            "in Rust only".into()
        }
        "mask" => format!("mask=regard.{name}({})", params.collect::<Vec<_>>().join(", ")),
        "bias" => format!("bias={}", call(params.chain(settings).collect())),
        _ if row.settings.is_empty() => format!("{kind}=\"{name}\""),
        _ => format!("{kind}=\"{name}\" or {}", call(settings.collect())),
    }
}

/// Lists every score, mask, bias and normaliser: dicts with `kind`, `name`, `params` (name →
/// shape), `settings`, `formula`, `paper` and `usage`.
#[pyfunction]
fn variants(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    entry(|| {
        let all = PyList::empty(py);
        for (kind, rows) in catalogue() {
            for row in rows {
                let params = PyDict::new(py);
                for (name, shape) in row.params {
                    params.set_item(name, shape)?;
                }
                let dict = PyDict::new(py);
                dict.set_item("kind", kind)?;
                dict.set_item("name", row.name)?;
                dict.set_item("params", params)?;
                let settings: Vec<_> = row.settings.iter().map(ToString::to_string).collect();
                dict.set_item("settings", settings)?;
                dict.set_item("formula", row.formula)?;
                dict.set_item("paper", row.paper)?;
                dict.set_item("usage", usage(kind, &row))?;
                all.append(dict)?;
            }
        }
        Ok(all)
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(variants, module)?)
}
