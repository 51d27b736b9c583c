//! What all searches have to do.

mod batch;
mod exhaustive;
mod generate;
mod hostile;
mod model;
mod sampling;
