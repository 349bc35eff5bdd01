//! The sample: an operator of two kinds, written as a user of the library would.
//!
//! A [`Vault`] has a password that is made once, and then as many shards as declared. A [`Tenant`] waits for its vault
//! to open, is given a token and the way in, and both are taken back in order before it goes.

mod life;
pub mod reasons;
pub mod tenant;
pub mod vault;

pub use life::life;
pub use tenant::{Tenant, TenantSpec, TenantStatus};
pub use vault::{Vault, VaultSpec, VaultStatus};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::core::ObjectMeta;
use windlass::Manager;

/// The sample's kinds, to be created before it runs.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![Vault::crd(), Tenant::crd()]
}

/// The manager with the sample's controllers.
pub fn operator(manager: Manager) -> Manager {
    manager.controller(vault::controller()).controller(tenant::controller())
}

fn named(name: impl Into<String>) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..Default::default() }
}
