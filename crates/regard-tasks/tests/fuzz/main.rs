//! Untrusted files for every reader of this crate: none makes it panic, hang or exhaust memory.
//! The crate `regard-fuzz` documents how to run these for longer.

mod data;
mod differential;
mod import;
mod media;
mod models;
#[allow(dead_code)]
#[path = "../it/small.rs"]
mod small;
mod trainer;

use regard_fuzz::Counting;

#[global_allocator]
static MEMORY: Counting = Counting;
