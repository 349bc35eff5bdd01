//! What the crate promises, against recorded answers of Kubernetes 1.36 and against laws.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod laws;
mod quantities;
mod recorded;
