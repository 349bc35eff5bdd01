//! The controllers: a file per kind, with a pure decision.

pub mod memcached;
mod memory;
