//! The embedded Kubernetes API: store, registry, HTTP.

pub mod store;
