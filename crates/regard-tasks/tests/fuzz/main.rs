//! Files that others made, for every reader of this crate: none makes it panic, hang or fill the
//! memory. How to run these for longer is said in the crate `regard-fuzz`.

mod data;
mod differential;
mod media;
mod models;
#[allow(dead_code)]
#[path = "../it/small.rs"]
mod small;
mod trainer;

use regard_fuzz::Counting;

#[global_allocator]
static MEMORY: Counting = Counting;
