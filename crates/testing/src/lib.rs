//! What authors of operators test with: a fresh cluster per test in milliseconds, time that the test drives, objects in a
//! line each, waits that show what they saw, and a campaign of crashes and faults for any operator.
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
//! - [`TestCluster`] is the cluster: the embedded Kubernetes API in process, or one that you have.
//! - [`Building`] and [`config_map`], [`deployment`] and their kin make objects.
//! - [`Eventually`] waits, and shows the last state and what differs when it was in vain.
//! - [`faults`] refuses, delays, loses and falsifies requests by rule; [`Outage`] is the API gone for a while.
//! - [`campaign`] kills the operator at each of its writes, loses each of its requests, and so on, and compares the ends.
//!
//! Time stands still in a [`TestCluster`] but while you wait: [`TestCluster::advance`] lets an hour pass at once, and
//! [`Eventually`] lets it pass as on the wall.

pub mod campaign;
mod cluster;
mod crud;
pub mod difference;
mod eventually;
pub mod faulty_client;
mod objects;
mod operator;
mod outage;

pub use cluster::TestCluster;
pub use eventually::Eventually;
pub use objects::{Building, Data, config_map, deployment, named, object, pod, secret};
pub use operator::{Operator, Running};
pub use outage::Outage;
pub use windlass_apiserver::faults;
pub use windlass_apiserver::read::Hold;
