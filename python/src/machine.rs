//! Threads, instruction set, and what the machine can do at most.

use crate::array::value_error;
use pyo3::prelude::*;
use regard_kernels::simd::isa as chosen;
use regard_kernels::{gemm, pool};

/// Sets how many threads kernels use. Results do not depend on it, not even in the last bit.
#[pyfunction]
fn set_threads(n: i64) -> PyResult<()> {
    if n < 1 {
        return Err(value_error(format!("n: got {n}, need at least 1")));
    }
    pool::set_threads(n as usize);
    Ok(())
}

/// How many threads kernels use.
#[pyfunction]
fn threads() -> usize {
    pool::threads()
}

/// The instruction set that kernels run on: avx512, avx2, neon or portable.
#[pyfunction]
fn isa() -> &'static str {
    chosen().name()
}

/// The rate of multiply-adds that never leave the registers, over all threads, in GFLOP/s: what
/// no kernel can exceed. The best of some 80 ms.
#[pyfunction]
fn peak_gflops(py: Python<'_>) -> f64 {
    py.detach(|| (0..8).map(|_| gemm::peak_gflops()).fold(0.0, f64::max))
}

pub fn register(module: &Bound<PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(threads, module)?)?;
    module.add_function(wrap_pyfunction!(isa, module)?)?;
    module.add_function(wrap_pyfunction!(peak_gflops, module)?)
}
