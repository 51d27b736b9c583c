//! Biases, which depend on the positions of query and key. Several biases add up.

use crate::array::{floats, tuple, type_error, type_name, value_error};
use crate::call::complaint;
use crate::guard::entry;
use crate::words::{Keywords, row};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use regard_kernels::attention::bias::{Alibi, Bias, ROWS};
use regard_kernels::view::Error;
use std::sync::Arc;

/// A bias with its parameters, which are referenced, not copied.
#[pyclass(frozen, module = "regard", name = "Bias")]
pub struct PyBias {
    /// The kernels' bias.
    pub bias: Arc<dyn Bias>,
    /// Parameters in the order of the kernel's `params`.
    pub params: Vec<Py<PyAny>>,
}

#[pymethods]
impl PyBias {
    fn __repr__(&self) -> String {
        format!("<regard.Bias {}>", self.bias.name())
    }
}

impl PyBias {
    /// Creates a bias by name, with settings and parameters as keywords.
    fn named(name: &str, given: Option<&Bound<PyDict>>) -> PyResult<PyBias> {
        let row = row("bias", ROWS, name)?;
        let params = row.about.params;
        let keywords = Keywords::new(row, given, params)?;
        let (settings, _) = keywords.settings(params)?;
        let bias = row.make(&settings).map_err(|Error(mut why)| {
            // Shapes in Python's notation.
            for (_, shape) in &settings.shapes {
                why = why.replace(&format!("{shape:?}"), &tuple(shape));
            }
            complaint(Error(why))
        })?;
        let params = params.iter().map(|(name, letters)| keywords.need(name, letters));
        let params = params.map(|param| Ok(param?.unbind())).collect::<PyResult<_>>()?;
        Ok(PyBias { bias, params })
    }

    /// Reads one bias, a list of them, or `None`.
    pub fn all<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyBias>>> {
        if object.is_none() {
            return Ok(vec![]);
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            return object.try_iter()?.map(|bias| PyBias::one(&bias?)).collect();
        }
        Ok(vec![PyBias::one(object)?])
    }

    fn one<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBias>> {
        if let Ok(bias) = object.cast::<PyBias>() {
            return Ok(bias.clone());
        }
        if !object.is_instance_of::<PyUntypedArray>() {
            return Err(type_error(format!(
                "bias is a {}; pass a float32 array, a regard.Bias or a list of these",
                type_name(object)
            )));
        }
        let shape = floats("bias", object)?.shape().to_vec();
        if ![2, 4].contains(&shape.len()) {
            let (got, need) = (tuple(&shape), "[T,S] or [B or 1,H or 1,T,S]");
            return Err(value_error(format!("bias: got shape {got}, need {need}")));
        }
        let given = PyDict::new(object.py());
        given.set_item("bias", object)?;
        Bound::new(object.py(), PyBias::named("dense", Some(&given))?)
    }
}

/// Creates a bias of `regard.variants()` by name, with its parameters and settings as keywords:
/// float32 arrays and numbers, and for some biases a graph in CSR form, `indptr` (int `[T + 1]`)
/// and `indices` (int `[nnz]`).
#[pyfunction]
#[pyo3(signature = (name, **given))]
fn bias(name: &str, given: Option<&Bound<PyDict>>) -> PyResult<PyBias> {
    entry(|| PyBias::named(name, given))
}

/// Maximum number of heads: a million slopes are 4 MB; more are a mistake.
const MOST_HEADS: i64 = 1 << 20;

/// Returns the ALiBi paper's slopes for this many heads, float32 `[heads]`.
#[pyfunction]
fn alibi_slopes(py: Python<'_>, heads: i64) -> PyResult<Bound<'_, PyAny>> {
    entry(|| {
        if heads < 1 {
            return Err(value_error(format!("heads: got {heads}, need at least 1")));
        }
        if heads > MOST_HEADS {
            return Err(value_error(format!("heads: got {heads}, need at most {MOST_HEADS}")));
        }
        let slopes = Alibi::slopes(heads as usize);
        Ok(crate::array::array(py, &[slopes.len()], slopes).into_any())
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_class::<PyBias>()?;
    module.add_function(wrap_pyfunction!(bias, module)?)?;
    module.add_function(wrap_pyfunction!(alibi_slopes, module)?)
}
