//! The embedded Kubernetes API: store, registry and HTTP, in one process and without kube-rs.

mod accept;
mod accounts;
mod aggregated;
mod api;
mod body;
mod bootstrap;
mod crd;
pub mod credentials;
mod discovery;
mod facts;
pub mod faults;
mod flow;
mod kinds;
mod negotiate;
mod openapi;
mod path;
mod query;
pub mod read;
mod registry;
pub mod resource;
mod serve;
mod service;
pub mod status;
pub mod store;
mod table;
mod typed;
mod verbs;

pub use api::{Api, Config};
pub use body::ApiBody;
pub use credentials::Credentials;
pub use discovery::VERSION as KUBERNETES_VERSION;
pub use flow::authenticate::Identity;
pub use resource::Resource;
pub use serve::Serving;
pub use service::ApiService;
pub use status::Status;
