//! Scores of query–key pairs: by name, or an object with settings.

use crate::array::{type_error, type_name};
use crate::call::complaint;
use crate::guard::entry;
use crate::mask::Claim;
use crate::words::{Keywords, row};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use regard_kernels::attention::score::{ROWS, Score};
use regard_kernels::view::Error;
use std::sync::Arc;

/// A score with its settings; its learned parameters are passed in `params`.
#[pyclass(frozen, module = "regard", name = "Score")]
#[derive(Clone)]
pub struct PyScore {
    /// Name in the catalogue.
    pub name: &'static str,
    /// The kernels' score.
    pub score: Arc<dyn Score>,
    /// Shapes to check.
    pub claims: Vec<Claim>,
}

#[pymethods]
impl PyScore {
    fn __repr__(&self) -> String {
        format!("<regard.Score {}>", self.name)
    }
}

impl PyScore {
    /// Reads a name or an object.
    pub fn of(object: &Bound<PyAny>) -> PyResult<PyScore> {
        if let Ok(score) = object.cast::<PyScore>() {
            return Ok(score.get().clone());
        }
        let Ok(name) = object.extract::<String>() else {
            let got = type_name(object);
            return Err(type_error(format!("score is a {got}; pass a name or a regard.Score")));
        };
        PyScore::named(&name, None)
    }

    fn named(name: &str, given: Option<&Bound<PyDict>>) -> PyResult<PyScore> {
        let row = row("score", ROWS, name)?;
        let (settings, claims) = Keywords::new(row, given, &[])?.settings(&[])?;
        let score =
            row.make(&settings).map_err(|Error(why)| complaint(Error(format!("score: {why}"))))?;
        Ok(PyScore { name: row.name(), score, claims })
    }
}

/// Creates a score of `regard.variants()` by name, with its settings as keywords: numbers, and for
/// some scores `segments` (int `[B, S]`) or a graph in CSR form, `indptr` (int `[T + 1]`) and
/// `indices` (int `[nnz]`). Its learned parameters are passed in `params`.
#[pyfunction]
#[pyo3(signature = (name, **settings))]
fn score(name: &str, settings: Option<&Bound<PyDict>>) -> PyResult<PyScore> {
    entry(|| PyScore::named(name, settings))
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_class::<PyScore>()?;
    module.add_function(wrap_pyfunction!(score, module)?)
}
