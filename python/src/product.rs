//! Matrix products.

use crate::array::{empty, floats, tuple, value_error};
use crate::guard::{compute, entry};
use numpy::{PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use regard_kernels::gemm::{Epilogue, Matrix, MatrixMut, product};

/// Computes `a @ b` for float32 matrices `[M, K]` and `[K, N]` with any strides, on all threads.
/// Each row of the result is bitwise independent of the others.
#[pyfunction]
fn matmul<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    entry(|| {
        let (a, b) = (floats("a", a)?, floats("b", b)?);
        let (&[m, k], &[rows, n]) = (a.shape(), b.shape()) else {
            let got = format!("{} and {}", tuple(a.shape()), tuple(b.shape()));
            return Err(value_error(format!("a, b: got shapes {got}, need two matrices")));
        };
        if k != rows {
            return Err(value_error(format!("b: got {rows} rows, need a's {k} columns")));
        }
        let out = empty(py, [m, n])?.cast_into::<PyArray2<f32>>()?;
        let steps = |x: &[isize]| [x[0] / 4, x[1] / 4];
        // SAFETY: numpy vouches for shape and strides while the arrays are borrowed here, and nobody
        // else has the result yet.
        unsafe {
            let a = Matrix::from_raw(a.data(), [m, k], steps(a.strides()));
            let b = Matrix::from_raw(b.data(), [k, n], steps(b.strides()));
            let to = MatrixMut::new(out.as_slice_mut()?, m, n).map_err(|e| value_error(e.0))?;
            compute(py, || product(a, b, to, Epilogue::default()))?
                .map_err(|e| value_error(e.0))?;
        }
        Ok(out)
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(matmul, module)?)
}
