//! Models against others' and against themselves.

mod batch;
mod checkpoints;
mod goldens;
mod images;
mod learning;
mod stepwise;
mod stories;
mod texts;
mod words;
mod xlnet;
mod zoo;
