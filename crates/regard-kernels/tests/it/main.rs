//! The kernels against their references, as one test binary.

mod contract;
mod laws;
mod problem;
mod property;
