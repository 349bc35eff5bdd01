//! The embedded Kubernetes API: store, registry and HTTP, in one process and without kube-rs.

pub mod resource;
pub mod status;

pub use resource::Resource;
pub use status::Status;

mod typed;
