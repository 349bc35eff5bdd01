//! Shared parts of the tests across crates: the comparison of two Kubernetes, request by request.

pub mod compare;
pub mod grounds;
pub mod sabotage;
