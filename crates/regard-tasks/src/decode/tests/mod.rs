//! Tests of all kinds of search.

mod batch;
mod exhaustive;
mod generate;
mod hostile;
mod model;
mod sampling;
