//! The kernels against their references, as one test binary.

mod contract;
mod goldens;
mod laws;
mod ops;
mod problem;
mod property;
