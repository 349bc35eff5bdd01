//! The crate compared with recorded responses of Kubernetes 1.36, and property tests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod properties;
mod quantities;
mod recorded;
