//! The API as its clients see it, driven in process. The expected texts and objects are those of real Kubernetes.

mod bad_input;
mod custom;
mod discovery;
mod namespaces;
mod support;
mod watches;
mod writes;
