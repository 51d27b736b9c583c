//! Normalisers, which map a query's scores to weights: by name, or an object with settings.

use crate::array::{type_error, type_name};
use crate::call::complaint;
use crate::guard::entry;
use crate::words::{Keywords, noise, row};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use regard_kernels::attention::Settings;
use regard_kernels::attention::normalize::{Normalizer, ROWS};
use std::sync::Arc;

/// A normaliser with its settings.
#[pyclass(frozen, module = "regard", name = "Normalizer")]
#[derive(Clone)]
pub struct PyNormalizer {
    name: &'static str,
    /// The kernels' normaliser.
    pub normalizer: Arc<dyn Normalizer>,
}

#[pymethods]
impl PyNormalizer {
    fn __repr__(&self) -> String {
        format!("<regard.Normalizer {}>", self.name)
    }
}

impl PyNormalizer {
    /// Reads a name, with the call's seed, or an object.
    pub fn of(object: &Bound<PyAny>, seed: u64) -> PyResult<PyNormalizer> {
        if let Ok(normalizer) = object.cast::<PyNormalizer>() {
            return Ok(normalizer.get().clone());
        }
        let Ok(name) = object.extract::<String>() else {
            let got = type_name(object);
            let message = format!("normalize is a {got}; pass a name or a regard.Normalizer");
            return Err(type_error(message));
        };
        let row = row("normalize", ROWS, &name)?;
        let settings = Settings { noise: Some(noise(seed)), ..Settings::default() };
        let normalizer = row.make(&settings).map_err(complaint)?;
        Ok(PyNormalizer { name: row.name(), normalizer })
    }
}

/// Creates a normaliser of `regard.variants()` by name, with its settings as keywords: numbers, and
/// `seed` for random ones.
#[pyfunction]
#[pyo3(signature = (name, **settings))]
fn normalizer(name: &str, settings: Option<&Bound<PyDict>>) -> PyResult<PyNormalizer> {
    entry(|| {
        let row = row("normalize", ROWS, name)?;
        let (settings, _) = Keywords::new(row, settings, &[])?.settings(&[])?;
        let normalizer = row.make(&settings).map_err(complaint)?;
        Ok(PyNormalizer { name: row.name(), normalizer })
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_class::<PyNormalizer>()?;
    module.add_function(wrap_pyfunction!(normalizer, module)?)
}
