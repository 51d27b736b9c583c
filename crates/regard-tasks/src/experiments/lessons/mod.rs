//! Small experiments that motivate attention. Each is a function of a seed that computes all
//! results; drawing is left to the caller.

pub mod pooling;
