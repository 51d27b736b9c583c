//! Biases: what is added to a score for the place of its query and key. They add up.

use crate::array::{floats, tuple, type_error, type_name, value_error};
use crate::guard::entry;
use crate::mask::csr;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use regard_kernels::attention::bias::{Alibi, Bias, Dense, EdgeBias, Gaussian, Table};
use std::sync::Arc;

/// A bias with its parameters, which are held, not copied.
#[pyclass(frozen, module = "regard", name = "Bias")]
pub struct PyBias {
    /// For the kernels.
    pub bias: Arc<dyn Bias>,
    /// In the order that the kernel asks for them.
    pub params: Vec<Py<PyAny>>,
}

#[pymethods]
impl PyBias {
    fn __repr__(&self) -> String {
        format!("<regard.Bias {}>", self.bias.name())
    }
}

impl PyBias {
    fn new(bias: impl Bias + 'static, params: &[&Bound<PyAny>]) -> PyBias {
        let params = params.iter().map(|param| (*param).clone().unbind()).collect();
        PyBias { bias: Arc::new(bias), params }
    }

    /// One bias, or a list of them, or none.
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
        let (per_batch, per_head) = match shape[..] {
            [_, _] => (false, false),
            [b, h, _, _] => (b != 1, h != 1),
            _ => {
                let got = tuple(&shape);
                let need = "[T,S] or [B or 1,H or 1,T,S]";
                return Err(value_error(format!("bias: got shape {got}, need {need}")));
            }
        };
        let bias = PyBias::new(Dense { per_batch, per_head }, &[object]);
        Bound::new(object.py(), bias)
    }
}

/// −slopes[h]·|p − j|, slopes float32 `[H]`. The paper's slopes: `regard.alibi_slopes(heads)`.
#[pyfunction]
fn alibi(slopes: &Bound<PyAny>) -> PyResult<PyBias> {
    entry(|| Ok(PyBias::new(Alibi, &[slopes])))
}

/// A million slopes are 4 MB; more are a mistake.
const MOST_HEADS: i64 = 1 << 20;

/// The ALiBi paper's slopes for this many heads, float32 `[heads]`.
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

/// A learned number for each distance j − p, clipped to the table: float32 `[H, 2·reach + 1]`.
#[pyfunction]
fn table(table: &Bound<PyAny>) -> PyResult<PyBias> {
    entry(|| {
        let shape = floats("table", table)?.shape().to_vec();
        match shape[..] {
            [_, n] if n % 2 == 1 => Ok(PyBias::new(Table { reach: n / 2 }, &[table])),
            _ => {
                let got = tuple(&shape);
                Err(value_error(format!("table: got shape {got}, need [H,2·reach+1]")))
            }
        }
    })
}

/// A number for each edge and head of a graph in CSR form: values float32 `[nnz, H]`.
#[pyfunction]
fn edge_bias(
    indptr: &Bound<PyAny>,
    indices: &Bound<PyAny>,
    values: &Bound<PyAny>,
) -> PyResult<PyBias> {
    entry(|| {
        let (indptr, indices) = csr(indptr, indices)?;
        Ok(PyBias::new(EdgeBias { indptr, indices }, &[values]))
    })
}

/// −(j − centres[b, i])²/(2·sigma²), centres float32 `[B, T]`, sigma a number. With `after`, its
/// exponential multiplies the weights instead, which are not renormalised (Luong 2015, eq. 10).
#[pyfunction]
#[pyo3(signature = (centres, sigma, after = false))]
fn gaussian_bias(centres: &Bound<PyAny>, sigma: &Bound<PyAny>, after: bool) -> PyResult<PyBias> {
    entry(|| Ok(PyBias::new(Gaussian { after }, &[centres, sigma])))
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_class::<PyBias>()?;
    module.add_function(wrap_pyfunction!(alibi, module)?)?;
    module.add_function(wrap_pyfunction!(alibi_slopes, module)?)?;
    module.add_function(wrap_pyfunction!(table, module)?)?;
    module.add_function(wrap_pyfunction!(edge_bias, module)?)?;
    module.add_function(wrap_pyfunction!(gaussian_bias, module)?)
}
