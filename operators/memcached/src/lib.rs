//! An operator for memcached: who creates a `Memcached` gets as many servers as it says behind one Service, and is told which
//! pods they are and how they fare.
//!
//! `api` is what users declare, `webhook` what they may and what they need not, `controller` what follows from it, `metrics` what it measures besides what every
//! operator does.

pub mod api;
pub mod controller;
mod metrics;
pub mod webhook;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use windlass::webhook::Webhook;
use windlass::{Controller, Manager};

/// The manager with this operator's kinds and controllers.
pub fn operator(manager: Manager) -> Manager {
    let webhooks = manager
        .versions(api::memcached())
        .webhook(Webhook::defaulting(webhook::default))
        .webhook(Webhook::validating(webhook::validate));
    webhooks.measures(metrics::servers).controller(
        Controller::deciding(controller::memcached::decide)
            .owns::<Deployment>()
            .owns::<Service>()
            .watches::<Pod>(controller::memcached::servers)
            .concurrency(2),
    )
}
