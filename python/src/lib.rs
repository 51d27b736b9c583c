//! Native half of the wheel: numpy arrays in, kernels, numpy arrays out.
//!
//! `array` reads and creates arrays; `mask`, `score`, `bias` and `normalize` are Python objects for
//! the four choices of an attention, created from the catalogue's rows by `words`; `call` combines
//! and checks them; `engine` has the functions; `guard` wraps all of them; `catalogue` and
//! `machine` describe the variants and the machine. The public functions, with their keywords and
//! documentation, are in `package/regard/engine.py`.

mod array;
mod bias;
mod call;
mod catalogue;
mod engine;
mod guard;
mod machine;
mod mask;
mod normalize;
mod product;
mod score;
mod words;

use pyo3::prelude::*;
use regard_kernels::{pool, simd};

#[pymodule]
fn _regard(module: &Bound<'_, PyModule>) -> PyResult<()> {
    guard::silence_panics();
    // Checked at import: kernels would panic, or use another number of threads than requested.
    simd::asked().map_err(call::complaint)?;
    pool::asked().map_err(call::complaint)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    guard::register(module)?;
    mask::register(module)?;
    score::register(module)?;
    bias::register(module)?;
    normalize::register(module)?;
    engine::register(module)?;
    catalogue::register(module)?;
    product::register(module)?;
    machine::register(module)
}
