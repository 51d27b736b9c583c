//! The catalogue of the kernels, as Python data.

use crate::guard::entry;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use regard_kernels::attention::{VARIANTS, Variant};

fn rows(kind: &str) -> &'static [Variant] {
    VARIANTS.iter().find(|(name, _)| *name == kind).expect("a kind of the catalogue").1
}

/// The names of a kind, for messages.
pub fn names(kind: &str) -> String {
    rows(kind).iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}

/// The shape of a parameter, in letters.
pub fn shape(kind: &str, name: &str, param: &str) -> &'static str {
    let row = rows(kind).iter().find(|row| row.name == name);
    let found = row.and_then(|row| row.params.iter().find(|(name, _)| *name == param));
    found.expect("a parameter of the catalogue").1
}

/// How a row is written in Python.
fn usage(kind: &str, row: &Variant) -> String {
    let arguments = || row.params.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    match (kind, row.name) {
        ("score", "score_mod") => "in Rust only".into(),
        ("score", "relative") => "score=\"relative\" or regard.relative(segments)".into(),
        ("score", name @ ("edge" | "gatv2")) => {
            format!("score=\"{name}\" or regard.{name}(slope, indptr, indices)")
        }
        ("bias", "dense") => "bias=array".into(),
        ("bias", "edge") => "bias=regard.edge_bias(indptr, indices, values)".into(),
        ("bias", "gaussian") => "bias=regard.gaussian_bias(centres, sigma)".into(),
        ("bias", "gaussian_after") => {
            "bias=regard.gaussian_bias(centres, sigma, after=True)".into()
        }
        ("bias" | "mask", name) => format!("{kind}=regard.{name}({})", arguments()),
        ("normalize", name) if !row.params.is_empty() => {
            format!("normalize=\"{name}\" or regard.{name}({})", arguments())
        }
        (_, name) => format!("{kind}=\"{name}\""),
    }
}

/// Every score, mask, bias and normaliser: a list of dicts with `kind`, `name`, `params` (name →
/// shape), `formula`, `paper` and `usage`.
#[pyfunction]
fn variants(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    entry(|| {
        let all = PyList::empty(py);
        for (kind, rows) in VARIANTS {
            for row in rows {
                let params = PyDict::new(py);
                for (name, shape) in row.params {
                    params.set_item(name, shape)?;
                }
                let dict = PyDict::new(py);
                dict.set_item("kind", kind)?;
                dict.set_item("name", row.name)?;
                dict.set_item("params", params)?;
                dict.set_item("formula", row.formula)?;
                dict.set_item("paper", row.paper)?;
                dict.set_item("usage", usage(kind, row))?;
                all.append(dict)?;
            }
        }
        Ok(all)
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(variants, module)?)
}
