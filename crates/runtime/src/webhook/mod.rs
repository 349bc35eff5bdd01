//! Admission and conversion webhooks: handlers that are plain typed functions, and the server that answers the API server with them.
//!
//! A handler validates ([`Webhook::validating`]), sets defaults ([`Webhook::defaulting`]), or converts between the versions of a kind
//! ([`Spoke`]). It is pure: no client, no I/O. A test calls it as it is.
//!
//! ```
//! # use kube::CustomResource;
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "example.dev", version = "v1", kind = "Site", namespaced)]
//! # struct SiteSpec { replicas: i32, image: Option<String> }
//! use windlass::Manager;
//! use windlass::webhook::{Admission, Request, Webhook};
//!
//! /// Sites do not shrink by more than half at once.
//! fn validate(site: &Site, request: &Request<Site>) -> Admission {
//!     let before = request.old().map_or(0, |old| old.spec.replicas);
//!     Admission::allow().require(site.spec.replicas * 2 >= before, "spec.replicas", "at most half of them may go at once")
//! }
//!
//! fn default(site: &mut Site, _: &Request<Site>) {
//!     site.spec.image.get_or_insert_with(|| "nginx:1.29".to_owned());
//! }
//!
//! fn operator(manager: Manager) -> Manager {
//!     manager.webhook(Webhook::validating(validate)).webhook(Webhook::defaulting(default))
//! }
//!
//! // No cluster and no server: a handler is a function.
//! let site = |replicas| Site::new("shop", SiteSpec { replicas, image: None });
//! assert!(validate(&site(5), &Request::update(site(10))).is_allowed());
//! assert!(!validate(&site(4), &Request::update(site(10))).is_allowed());
//! ```
//!
//! - `admission`, `request`, `hook`, `versions`: what an operator writes
//! - `review`, `conversion`, `patch`: what a question of the API server is answered with, pure
//! - `server`, `tls`, `metrics`: how it is asked
//! - `authority`, `secrets`, `configurations`, `follow`: certificates, and how the API server learns whom to trust

mod admission;
mod answer;
mod authority;
mod configurations;
mod conversion;
mod follow;
mod hook;
mod metrics;
mod patch;
mod request;
mod review;
mod secrets;
mod server;
mod serving;
mod tls;
mod versions;

pub use admission::{Admission, InvalidField};
pub(crate) use configurations::{described, rules};
pub(crate) use follow::{Follower, Teller};
pub use hook::Webhook;
pub use request::{Operation, Request, User};
pub(crate) use server::{Handlers, Listening};
pub use serving::{InvalidUrl, WebhookServer};
pub(crate) use versions::Conversions;
pub use versions::{ConversionError, Spoke, Versions, VersionsError};
