//! What the crate promises, against recorded answers of Kubernetes 1.36 and against laws.

mod laws;
mod recorded;
