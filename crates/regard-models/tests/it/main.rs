//! Models against other libraries and against themselves.

mod adapters;
mod batch;
mod checkpoints;
mod copying;
mod decoders;
mod gguf;
mod goldens;
mod images;
mod learning;
mod pointers;
mod probes;
mod quantized;
mod speech;
mod stepwise;
mod stored;
mod stories;
mod texts;
mod words;
mod xlnet;
mod zoo;
