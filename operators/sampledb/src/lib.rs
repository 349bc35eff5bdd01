//! SampleDB: a highly available PostgreSQL database by an operator.
//!
//! | module | what |
//! |---|---|
//! | [`api`] | what users declare |
//! | [`controller`] | the operator's decisions: what a database consists of, who is primary, and how large volumes are |
//! | [`election`] | failover, decided purely |
//! | [`leadership`] | what a database's Lease says: who may be primary |
//! | [`data_version`] | what it says of the data's version, and of an upgrade |
//! | [`agent`] | runs in each instance, beside its server |
//! | `archive` | keeps backups |
//! | [`command`] | `windlass-sampledb`, for people |
//! | `metrics` | what Prometheus is told of databases |
//! | [`lsn`], [`timelines`] | positions in the write-ahead log |

pub mod agent;
pub mod api;
mod api_error;
mod archive;
mod children;
pub mod command;
pub mod controller;
pub mod data_version;
mod durable_files;
pub mod election;
pub mod leadership;
pub mod lsn;
mod metrics;
mod parameters;
mod programs;
mod restored;
pub mod settings;
pub mod timelines;

use api::v1alpha1::{SampleDB, SampleDBArchive, SampleDBBackup, SampleDBInstance, SampleDBRestore};
use controller::{
    archive as archiving, backup, deletion, drain, failover, provisioning, restoring, schedule, storage,
};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, ResourceExt};
use windlass::{Controller, Manager, Relation};

/// The environment variable that names the image with the agent, which is the operator's own.
pub const IMAGE_VARIABLE: &str = "SAMPLEDB_OPERATOR_IMAGE";
/// The image with the agent, if nobody says another.
pub const DEFAULT_IMAGE: &str = concat!("sampledb-operator:", env!("CARGO_PKG_VERSION"));

/// The manager with this operator's kinds and controllers; `image` is the one that brings the agent.
pub fn operator(manager: Manager, image: &str) -> Manager {
    manager
        .crds(crds())
        .controller(databases(image))
        .controller(failovers())
        .controller(storages())
        .controller(archives(image))
        .controller(backups(image))
        .controller(schedules())
        .controller(restores())
        .measures(metrics::databases)
        .measures(metrics::instances)
        .measures(metrics::backups)
}

/// The kinds that the operator brings.
pub fn crds() -> [CustomResourceDefinition; 5] {
    [
        SampleDB::crd(),
        SampleDBInstance::crd(),
        SampleDBArchive::crd(),
        SampleDBBackup::crd(),
        SampleDBRestore::crd(),
    ]
}

/// The controller that makes what a database consists of.
pub fn databases(image: &str) -> Controller<SampleDB> {
    let (image, of_last) = (image.to_owned(), image.to_owned());
    Controller::deciding(move |database, observed| provisioning::decide(database, observed, &image))
        .finalizer(move |database, observed| deletion::decide(database, observed, &of_last))
        // A last backup needs them all: they are not the garbage collector's to delete.
        .collects::<Secret>()
        .collects::<ServiceAccount>()
        .collects::<Role>()
        .collects::<RoleBinding>()
        .collects::<Service>()
        .collects::<StatefulSet>()
        .collects::<SampleDBInstance>()
        .prunes::<SampleDBInstance>()
        .collects::<PodDisruptionBudget>()
        .collects::<Job>()
        .collects::<ConfigMap>()
        .retains::<SampleDBArchive>()
        .retains::<SampleDBBackup>()
        // A last backup that failed is taken again.
        .deletes::<SampleDBBackup>()
        .watches::<SampleDBBackup>(|database| {
            let restored = database.spec.restore_from.iter().map(|from| from.backup.clone());
            Relation::names(restored.chain([database.last_backup_name(), database.upgrade_backup_name()]))
        })
        .watches::<PersistentVolumeClaim>(|database| {
            Relation::labelled(children::selector(&database.name_any()))
        })
        .predicate::<PersistentVolumeClaim>(|one, other| is_terminating(one) != is_terminating(other))
        .deletes::<PersistentVolumeClaim>()
        .references::<ConfigMap>(|database| {
            Relation::names(database.spec.initial_schema.iter().map(|schema| schema.name.clone()))
        })
        .watches::<Pod>(|database| Relation::labelled(children::selector(&database.name_any())))
        .predicate::<Pod>(provisioning::pod_differs)
        // Servers of another image replace them.
        .deletes::<Pod>()
        // An upgrade that is put back ends before.
        .deletes::<Job>()
        .watches::<EndpointSlice>(|database| Relation::named(children::read_write_name(database)))
        .watches::<Lease>(|database| Relation::named(database.name_any()))
        .predicate::<Lease>(leadership::differs)
        // What it grants to agents it has to have itself.
        .uses("coordination.k8s.io", "leases", &["get", "watch", "update"])
        .uses("db.windlass.dev", "sampledbinstances/status", &["patch"])
        .concurrency(2)
}

fn is_terminating(claim: &PersistentVolumeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_some()
}

/// The controller that decides who is primary. It goes on while a database is paused, and while it is being deleted.
pub fn failovers() -> Controller<SampleDB> {
    Controller::deciding(failover::decide)
        .named("sampledb-failover")
        .concerned_with(failover::CONDITION)
        .never_paused()
        .finalizer(failover::decide_to_the_end)
        .collects::<Lease>()
        .claims::<Lease>()
        .predicate::<Lease>(leadership::differs)
        .tracks_last_change::<Lease>()
        .collects::<EndpointSlice>()
        .watches::<SampleDBInstance>(|database| Relation::labelled(children::selector(&database.name_any())))
        .watches::<Pod>(|database| Relation::labelled(children::selector(&database.name_any())))
        .predicate::<Pod>(failover::pod_differs)
        .patches::<Pod>()
        .watches::<Job>(|database| Relation::labelled(children::selector(&database.name_any())))
        .watches::<SampleDBBackup>(|database| Relation::named(database.upgrade_backup_name()))
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

/// The controller that makes what an archive consists of.
pub fn archives(image: &str) -> Controller<SampleDBArchive> {
    let image = image.to_owned();
    Controller::deciding(move |archive, observed| archiving::decide(archive, observed, &image))
        .owns::<Secret>()
        .owns::<PersistentVolumeClaim>()
        .owns::<Service>()
        .owns::<Deployment>()
}

/// The controller that makes backups by schedule, and deletes those that are not kept.
pub fn schedules() -> Controller<SampleDB> {
    Controller::deciding(schedule::decide)
        .named("sampledb-schedule")
        .concerned_with(schedule::CONDITION)
        // The others are not said to be backed up.
        .filter(|database| database.spec.backup.as_ref().is_some_and(|backup| backup.schedule.is_some()))
        .retains::<SampleDBBackup>()
        .deletes::<SampleDBBackup>()
}

/// The controller that makes databases of backups.
pub fn restores() -> Controller<SampleDBRestore> {
    Controller::deciding(restoring::decide)
        .concerned_with(restoring::CONDITION)
        .watches::<SampleDBBackup>(|restore| Relation::named(&restore.spec.backup))
        // The one that the backup is of is in the backup, where a relation does not look.
        .watches::<SampleDB>(|_| Relation::all())
        .retains::<SampleDB>()
}

/// The controller that takes backups.
pub fn backups(image: &str) -> Controller<SampleDBBackup> {
    let (image, of_forgotten) = (image.to_owned(), image.to_owned());
    Controller::deciding(move |one, observed| backup::decide(one, observed, &image))
        .finalizer(move |one, observed| backup::forget(one, observed, &of_forgotten))
        .concerned_with(backup::CONDITION)
        .references::<SampleDB>(|backup| Relation::named(&backup.spec.database))
        .watches::<SampleDBArchive>(|backup| Relation::labelled(children::selector(&backup.spec.database)))
        .watches::<SampleDBInstance>(|backup| Relation::labelled(children::selector(&backup.spec.database)))
        .watches::<Pod>(|backup| Relation::labelled(children::backup::selector(backup)))
        .owns::<ConfigMap>()
        .owns::<Job>()
        .deletes::<Job>()
        .concurrency(2)
}
