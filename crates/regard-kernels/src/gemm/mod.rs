//! Matrix products.

pub mod micro;
