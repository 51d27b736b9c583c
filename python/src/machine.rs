//! Threads, instruction set, and peak rate of the machine.

use crate::array::value_error;
use crate::guard::{compute, entry};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use regard_kernels::gemm;
use regard_kernels::pool::{self, MAX_THREADS};
use regard_kernels::simd::isa as chosen;

/// Sets the number of threads of the kernels. Results do not depend on it, not even in the last
/// bit.
#[pyfunction]
fn set_threads(n: &Bound<PyAny>) -> PyResult<()> {
    entry(|| {
        let number = match n.extract::<usize>() {
            Err(error) if error.is_instance_of::<PyTypeError>(n.py()) => return Err(error),
            number => number.ok().filter(|n| (1..=MAX_THREADS).contains(n)),
        };
        let Some(number) = number else {
            return Err(value_error(format!("n: got {n}, need 1 to {MAX_THREADS} threads")));
        };
        pool::set_threads(number);
        Ok(())
    })
}

/// Returns the number of threads of the kernels.
#[pyfunction]
fn threads() -> PyResult<usize> {
    entry(|| Ok(pool::threads()))
}

/// Returns the instruction set of the kernels: avx512, avx2, neon or portable.
#[pyfunction]
fn isa() -> PyResult<&'static str> {
    entry(|| Ok(chosen().name()))
}

/// Measures the peak rate of multiply-adds in registers over all threads, in GFLOP/s: an upper
/// bound for every kernel. Takes the best of some 80 ms.
#[pyfunction]
fn peak_gflops(py: Python<'_>) -> PyResult<f64> {
    entry(|| compute(py, || (0..8).map(|_| gemm::peak_gflops()).fold(0.0, f64::max)))
}

#[pyfunction]
fn _after_fork() -> PyResult<()> {
    entry(|| {
        pool::after_fork();
        Ok(())
    })
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    let os = module.py().import("os")?;
    if os.hasattr("register_at_fork")? {
        let options = PyDict::new(module.py());
        options.set_item("after_in_child", wrap_pyfunction!(_after_fork, module)?)?;
        os.call_method("register_at_fork", (), Some(&options))?;
    }
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(threads, module)?)?;
    module.add_function(wrap_pyfunction!(isa, module)?)?;
    module.add_function(wrap_pyfunction!(peak_gflops, module)?)
}
