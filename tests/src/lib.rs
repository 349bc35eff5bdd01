//! Tests and benches across the crates, and the sample operator that they run.

pub mod crash;
pub mod sample;
