//! Shared parts of the tests across crates.
