//! An operator for memcached: who creates a `Memcached` gets as many servers as it says behind one Service, and is told which
//! pods they are and how they fare.
//!
//! `api` is what users declare, `controller` what follows from it, `metrics` what it measures besides what every
//! operator does.

pub mod api;
pub mod controller;
mod metrics;

use api::v1alpha1::Memcached;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::CustomResourceExt;
use windlass::{Controller, Manager};

/// The manager with this operator's kinds and controllers.
pub fn operator(manager: Manager) -> Manager {
    manager.measures(metrics::servers).crds([Memcached::crd()]).controller(
        Controller::deciding(controller::memcached::decide)
            .owns::<Deployment>()
            .owns::<Service>()
            .watches::<Pod>(controller::memcached::servers)
            .concurrency(2),
    )
}
