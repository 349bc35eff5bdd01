//! Testing for operator authors: a fresh cluster per test in milliseconds, a clock that the test drives, objects in a line
//! each, waits that show what differed, and a crash campaign for any operator.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use windlass::{Controller, Observed, Plan, Reasoned, Refusal};
//! use windlass_testing::{Building, Data, TestCluster, config_map, secret};
//!
//! #[derive(Debug)]
//! enum Why { MirrorsTheMap }
//! impl Reasoned for Why {}
//!
//! fn decide(map: &ConfigMap, _: &Observed) -> Result<Plan, Refusal> {
//!     let name = map.metadata.name.clone().unwrap_or_default();
//!     Ok(Plan::new().apply(secret(name).labelled("of", "map"), Why::MirrorsTheMap))
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> anyhow::Result<()> {
//! let cluster = TestCluster::api_only();
//! let operator = cluster.run(Controller::deciding(decide).owns::<Secret>());
//! cluster.create(config_map("a").data("k", "v")).await?;
//! cluster.eventually::<Secret>("a").has(serde_json::json!({"metadata": {"labels": {"of": "map"}}})).await?;
//! operator.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`TestCluster`] is the cluster: the embedded Kubernetes in process, or an existing cluster.
//! - [`Building`] and [`config_map`], [`deployment`] and their kin build objects.
//! - [`Eventually`] waits, and on failure shows the last state and what differs.
//! - [`faults`] rejects, delays, loses and alters requests by rule; [`Outage`] makes the API unreachable.
//! - [`round_trip`] converts objects between the versions of a kind, to and fro, and compares.
//! - [`campaign`] kills the operator at each of its writes, loses each of its requests, and so on, and compares the final states.
//!
//! The clock of a [`TestCluster`] stands still except while the test waits: [`TestCluster::advance`] lets an hour pass at once,
//! and [`Eventually`] runs the clock in real time, so that back-offs end; apart from that, timestamps are the same in every run.
//!
//! Crashes and lost responses are injected by the client ([`faulty_client`]), so that they work on every Kubernetes. The
//! campaign runs an operator's life once per fault and write. The state that it compares is every object of every collection
//! that anyone wrote to, so it needs to know nothing about the operator.

pub mod campaign;
mod cluster;
mod crud;
pub mod difference;
mod eventually;
pub mod faulty_client;
mod objects;
mod operator;
mod outage;
mod round_trip;

pub use cluster::TestCluster;
pub use eventually::Eventually;
pub use objects::{Building, Data, config_map, deployment, named, object, pod, secret};
pub use operator::{Operator, Running};
pub use outage::Outage;
pub use round_trip::round_trip;
pub use windlass_apiserver::faults;
pub use windlass_apiserver::read::Hold;
