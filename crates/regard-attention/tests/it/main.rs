//! Operations, attention and layers against slow truths.

mod attention;
mod close;
mod convolution;
mod goldens;
mod layers;
mod operations;
mod optimizer;
mod sequences;
