//! The embedded Kubernetes API: store, registry and HTTP, in one process and without kube-rs.

mod facts;
mod path;
mod query;
pub mod resource;
pub mod status;
pub mod store;
mod typed;

pub use resource::Resource;
pub use status::Status;
