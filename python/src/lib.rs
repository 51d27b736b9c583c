//! The wheel's native half: numpy arrays in, kernels, numpy arrays out.
//!
//! `array` reads and makes arrays; `mask`, `score`, `bias` and `normalize` are the four words of
//! the formula as Python objects; `call` puts them together and checks them; `engine` has the
//! functions; `catalogue` and `machine` tell what there is. The functions that people call, with
//! their keywords and documentation, are in `package/regard/engine.py`.

mod array;
mod bias;
mod call;
mod catalogue;
mod engine;
mod machine;
mod mask;
mod normalize;
mod product;
mod score;

use pyo3::prelude::*;

#[pymodule]
fn _regard(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    mask::register(module)?;
    score::register(module)?;
    bias::register(module)?;
    normalize::register(module)?;
    engine::register(module)?;
    catalogue::register(module)?;
    product::register(module)?;
    machine::register(module)
}
