//! Models against others' and against themselves.

mod batch;
mod checkpoints;
mod goldens;
mod learning;
mod speech;
mod stepwise;
mod stories;
mod texts;
mod words;
mod xlnet;
mod zoo;
