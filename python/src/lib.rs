//! The wheel's native half: numpy arrays in, kernels, numpy arrays out.
//!
//! `array` reads and makes arrays; `mask`, `score`, `bias` and `normalize` are the four words of
//! the formula as Python objects, made from the catalogue's rows by `words`; `call` puts them together and checks them; `engine` has the
//! functions; `guard` is what every one of them goes through; `catalogue` and `machine` tell what there is. The functions that people call, with
//! their keywords and documentation, are in `package/regard/engine.py`.

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
    // Said here: kernels would panic, or the number of threads would be another than was asked for.
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
