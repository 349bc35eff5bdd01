//! What follows from what users declare: a file per kind, and in it pure decisions.

pub mod memcached;
mod memory;
