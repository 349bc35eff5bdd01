//! SampleDB: a highly available PostgreSQL database by an operator.
//!
//! | module | what |
//! |---|---|
//! | [`api`] | what users declare |
//! | [`controller`] | the operator's decisions: what a database consists of, who is primary, and how large volumes are |
//! | [`election`] | failover, decided purely |
//! | [`leadership`] | what a database's Lease says: who may be primary |
//! | [`agent`] | runs in each instance, beside its server |
//! | [`command`] | `windlass-sampledb`, for people |
//! | `metrics` | what Prometheus is told of databases |
//! | [`lsn`], [`timelines`] | positions in the write-ahead log |

pub mod agent;
pub mod api;
mod api_error;
mod children;
pub mod command;
pub mod controller;
pub mod election;
pub mod leadership;
pub mod lsn;
mod metrics;
mod parameters;
pub mod timelines;

use api::v1alpha1::{SampleDB, SampleDBInstance};
use controller::{drain, failover, provisioning, storage};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{CustomResourceExt, ResourceExt};
use windlass::{Controller, Manager, Relation};

/// The environment variable that names the image with the agent, which is the operator's own.
pub const IMAGE_VARIABLE: &str = "SAMPLEDB_OPERATOR_IMAGE";
/// The image with the agent, if nobody says another.
pub const DEFAULT_IMAGE: &str = concat!("sampledb-operator:", env!("CARGO_PKG_VERSION"));

/// The manager with this operator's kinds and controllers; `image` is the one that brings the agent.
pub fn operator(manager: Manager, image: &str) -> Manager {
    manager
        .crds([SampleDB::crd(), SampleDBInstance::crd()])
        .controller(databases(image))
        .controller(failovers())
        .controller(storages())
        .measures(metrics::databases)
        .measures(metrics::instances)
}

/// The controller that makes what a database consists of.
pub fn databases(image: &str) -> Controller<SampleDB> {
    let image = image.to_owned();
    Controller::deciding(move |database, observed| provisioning::decide(database, observed, &image))
        .owns::<Secret>()
        .owns::<ServiceAccount>()
        .owns::<Role>()
        .owns::<RoleBinding>()
        .owns::<Service>()
        .owns::<StatefulSet>()
        // Its claim templates cannot be changed: see `Apply::recreate`.
        .deletes::<StatefulSet>()
        .owns::<PodDisruptionBudget>()
        .owns::<SampleDBInstance>()
        .prunes::<SampleDBInstance>()
        .owns::<Job>()
        .owns::<ConfigMap>()
        .references::<ConfigMap>(|database| {
            Relation::names(database.spec.initial_schema.iter().map(|schema| schema.name.clone()))
        })
        .watches::<Pod>(|database| Relation::labelled(children::selector(&database.name_any())))
        .predicate::<Pod>(|one, other| windlass::health::is_ready(one) != windlass::health::is_ready(other))
        .watches::<EndpointSlice>(|database| Relation::named(children::read_write_name(database)))
        .watches::<Lease>(|database| Relation::named(database.name_any()))
        .predicate::<Lease>(leadership::differs)
        // What it grants to agents it has to have itself.
        .uses("coordination.k8s.io", "leases", &["get", "watch", "update"])
        .uses("db.windlass.dev", "sampledbinstances/status", &["patch"])
        .concurrency(2)
}

/// The controller that decides who is primary.
pub fn failovers() -> Controller<SampleDB> {
    Controller::deciding(failover::decide)
        .named("sampledb-failover")
        .concerned_with(failover::CONDITION)
        .owns::<Lease>()
        .claims::<Lease>()
        .predicate::<Lease>(leadership::differs)
        .tracks_last_change::<Lease>()
        .owns::<EndpointSlice>()
        .watches::<SampleDBInstance>(|database| Relation::labelled(children::selector(&database.name_any())))
        .watches::<Pod>(|database| Relation::labelled(children::selector(&database.name_any())))
        .predicate::<Pod>(failover::pod_differs)
        .patches::<Pod>()
        // Which nodes is in the pods, where a relation does not look; of all of them only a cordon matters.
        .watches::<Node>(|_| Relation::all())
        .predicate::<Node>(drain::node_differs)
        .concurrency(4)
}

/// The controller that grows volumes.
pub fn storages() -> Controller<SampleDB> {
    Controller::deciding(storage::decide)
        .named("sampledb-storage")
        .concerned_with(storage::CONDITION)
        .watches::<PersistentVolumeClaim>(|database| {
            Relation::labelled(children::selector(&database.name_any()))
        })
        .predicate::<PersistentVolumeClaim>(storage::claim_differs)
        .patches::<PersistentVolumeClaim>()
}
