//! Operations, attention and layers against slow truths.

mod attention;
mod blocks;
mod calls;
mod close;
mod convolution;
mod goldens;
mod graphs;
mod layers;
mod operations;
mod optimizer;
mod sequences;
