//! The API as its clients see it, driven in process. The expected texts and objects are those of real Kubernetes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod accounts;
mod aggregation;
mod bad_input;
mod bindings;
mod connect;
mod conversion;
mod custom;
mod discovery;
mod durable;
mod encodings;
mod evictions;
mod faults;
mod forms;
mod hostile;
mod kinds;
mod namespaces;
mod protobuf;
mod strategic;
mod support;
mod tls;
mod watches;
mod writes;
