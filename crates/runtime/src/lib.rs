//! The operator library: write down what an application needs, as a pure decision, and keep the world equal to it.
//!
//! The way of the data: `watch -> cache -> queue -> observe -> decide -> write -> report`. Each layer is usable alone.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
//! use kube::ResourceExt;
//! use windlass::{Controller, Manager, Observed, Plan, Reasoned, Refusal};
//!
//! #[derive(Debug)]
//! enum Why { WelcomesItsPeople }
//! impl Reasoned for Why {}
//!
//! /// What a namespace needs, given what is there. Pure: no client, no I/O; time is `observed.now()`.
//! fn decide(namespace: &Namespace, _observed: &Observed) -> Result<Plan, Refusal> {
//!     let mut welcome = ConfigMap::default();
//!     welcome.metadata.name = Some("welcome".into());
//!     welcome.metadata.namespace = Some(namespace.name_any());
//!     Ok(Plan::new().apply(welcome, Why::WelcomesItsPeople))
//! }
//!
//! # async fn operator() -> windlass::Result<()> {
//! Manager::from_env()?
//!     .controller(Controller::deciding(decide).owns::<ConfigMap>().concurrency(2))
//!     .run()
//!     .await
//! # }
//!
//! // No cluster: a plan is a value.
//! let mut shop = Namespace::default();
//! shop.metadata.name = Some("shop".into());
//! let plan = decide(&shop, &Observed::empty()).unwrap();
//! assert!(plan.applied::<ConfigMap>("welcome").is_some());
//! ```
//!
//! - [`Manager`] runs [`Controller`]s on one cluster.
//! - A controller decides purely: from an object and what was [`Observed`] to a [`Plan`], or a [`Refusal`].
//! - [`webhook`] validates, sets defaults and converts between versions, before the API server stores an object.
//! - [`election`] lets one of several replicas work.
//! - [`metrics`] and [`inspect`] show what it is doing, under names that dashboards know.
//! - [`health`] says of any object how it fares, and of a Job how it ended; [`restart_on_change`] replaces pods when what they
//!   read has changed.
//! - [`Quantity`] calculates exactly with `100m` and `1.5Gi`; [`Schedule`] says when a cron schedule is due next.
//! - [`cache`] reads one's own writes; [`queue`] has one entry per key; [`write`] applies only what would change.

mod action;
pub mod cache;
mod certificates;
mod client;
mod command;
pub mod conditions;
pub mod config;
mod controller;
pub mod election;
mod error_chain;
mod events;
mod fact;
mod fingerprint;
pub mod health;
pub mod inspect;
mod key;
mod kind;
mod labels;
pub mod logs;
mod manager;
pub mod metrics;
mod observed;
mod plan;
mod pod_template;
pub mod quantity;
pub mod queue;
mod reason;
mod relation;
pub mod schema;
mod selector;
mod serve;
pub mod webhook;
pub mod write;

pub use action::{Action, Guard, Outcome};
pub use certificates::{Certificate, CertificateAuthority};
pub use command::CommandError;
pub use conditions::Stated;
pub use controller::{
    Adoption, ConfigError, Context, Controller, Failure, Reconcile, ReconcileError, Requeue,
};
pub use events::{Events, Recorder};
pub use fact::Fact;
pub use fingerprint::fingerprint;
pub use key::Key;
pub use kind::{Cached, Kind, Object};
pub use manager::{Error, Manager, Result, Task};
pub use metrics::{BOUNDS, Counts, Ended, Times};
pub use observed::{ObserveError, Observed};
pub use plan::{
    Apply, Delete, Effect, Generate, GenerateError, Note, Plan, Propagation, Step, Unserializable, Until,
    Wait,
};
pub use pod_template::{RESTART_ANNOTATION, restart_on_change};
pub use quantity::Quantity;
pub use reason::{Reason, Reasoned, Refusal};
pub use relation::Relation;
pub use selector::Selector;
pub use serve::{Bind, InvalidAddress, serve_metrics};
pub use windlass_clock as clock;
pub use windlass_schema::schedule::{self, Schedule};
