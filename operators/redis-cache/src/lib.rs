//! An operator for Redis caches: who creates a `RedisCache` gets servers with a volume each and a password that nobody chose,
//! backups on a schedule, and on request a snapshot before everything is deleted.
//!
//! `api` is what users declare, `controller` what follows from it, and `children` the objects that it makes.

pub mod api;
mod children;
pub mod controller;

use api::v1alpha1::RedisCache;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use kube::CustomResourceExt;
use windlass::{Controller, Manager, Relation};

/// The manager with this operator's kind and controller.
pub fn operator(manager: Manager) -> Manager {
    manager.crds([RedisCache::crd()]).controller(redis_caches())
}

/// The controller of `RedisCache`.
pub fn redis_caches() -> Controller<RedisCache> {
    Controller::deciding(controller::decide)
        .finalizer(controller::clean_up)
        .owns::<Secret>()
        .owns::<ConfigMap>()
        .owns::<Service>()
        .owns::<StatefulSet>()
        // Its claim templates cannot be changed: see `Apply::recreate`.
        .deletes::<StatefulSet>()
        .owns::<CronJob>()
        .prunes::<CronJob>()
        .owns::<Job>()
        .references::<PersistentVolumeClaim>(|cache| {
            Relation::names(cache.spec.backup.iter().map(|backup| backup.claim.clone()))
        })
        .concurrency(2)
}
