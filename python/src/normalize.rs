//! Normalisers: what turns a query's scores into weights. By name, or an object with settings.

use crate::array::{type_error, type_name, value_error};
use crate::catalogue::names;
use crate::guard::entry;
use pyo3::prelude::*;
use regard_kernels::attention::normalize::{Estimator, Hard, Normalizer, VARIANTS, named};
use regard_kernels::rng::Stream;
use std::sync::Arc;

/// A normaliser with its settings.
#[pyclass(frozen, module = "regard", name = "Normalizer")]
#[derive(Clone)]
pub struct PyNormalizer {
    name: &'static str,
    /// For the kernels.
    pub normalizer: Arc<dyn Normalizer>,
}

#[pymethods]
impl PyNormalizer {
    fn __repr__(&self) -> String {
        format!("<regard.Normalizer {}>", self.name)
    }
}

/// The noise of hard choices; site 0 of the same seed is dropout's.
fn noise(seed: u64) -> Stream {
    Stream::new(seed, 0, 1)
}

impl PyNormalizer {
    fn new(name: &'static str, normalizer: impl Normalizer + 'static) -> PyNormalizer {
        PyNormalizer { name, normalizer: Arc::new(normalizer) }
    }

    /// From a name, with the call's seed, or an object.
    pub fn of(object: &Bound<PyAny>, seed: u64) -> PyResult<PyNormalizer> {
        if let Ok(normalizer) = object.cast::<PyNormalizer>() {
            return Ok(normalizer.get().clone());
        }
        let Ok(name) = object.extract::<String>() else {
            let got = type_name(object);
            let message = format!("normalize is a {got}; pass a name or a regard.Normalizer");
            return Err(type_error(message));
        };
        let known = VARIANTS.iter().find(|row| row.name == name);
        match known.and_then(|row| Some((row.name, named(row.name, noise(seed))?))) {
            Some((name, normalizer)) => Ok(PyNormalizer { name, normalizer }),
            None => {
                let known = names("normalize");
                Err(value_error(format!("normalize: got {name:?}, need one of {known}")))
            }
        }
    }
}

/// One key by the largest score with Gumbel noise; the gradient is that of
/// softmax((s + noise)/temperature).
#[pyfunction]
#[pyo3(signature = (temperature = 1.0, seed = 0))]
fn gumbel(temperature: f32, seed: u64) -> PyResult<PyNormalizer> {
    entry(|| {
        if !(temperature.is_finite() && temperature > 0.0) {
            return Err(value_error(format!(
                "temperature: got {temperature}, need a number above 0"
            )));
        }
        let estimator = Estimator::Gumbel { temperature, noise: noise(seed) };
        Ok(PyNormalizer::new("gumbel", Hard(estimator)))
    })
}

/// One key, sampled from the softmax; scores learn through its log-probability, which
/// `regard.choose` returns and whose gradient `regard.attend_vjp` takes as `dlog_prob`.
#[pyfunction]
#[pyo3(signature = (seed = 0))]
fn reinforce(seed: u64) -> PyResult<PyNormalizer> {
    entry(|| Ok(PyNormalizer::new("reinforce", Hard(Estimator::Reinforce { noise: noise(seed) }))))
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_class::<PyNormalizer>()?;
    module.add_function(wrap_pyfunction!(gumbel, module)?)?;
    module.add_function(wrap_pyfunction!(reinforce, module)?)
}
