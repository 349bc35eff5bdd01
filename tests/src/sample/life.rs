//! One life of the sample: it grows, changes and loses a member.

use super::{Tenant, TenantSpec, Vault, VaultSpec};
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass_testing::TestCluster;

/// What the user does, and what they wait for.
///
/// # Errors
/// When the world does not become what it should.
pub async fn life(cluster: TestCluster) -> anyhow::Result<()> {
    // It grows: the tenants are there before their vault.
    for name in ["stayer", "leaver"] {
        cluster.create(Tenant::new(name, TenantSpec { vault: "v".into(), quota: 7 })).await?;
    }
    cluster.create(Vault::new("v", VaultSpec { shards: 3, region: None })).await?;
    for name in ["stayer", "leaver"] {
        cluster.eventually::<Tenant>(name).has(json!({"status": {"admittedTo": "v"}})).await?;
    }
    let password = cluster.get::<Secret>("v-password").await?.data.context("a password")?;

    // It changes and loses a member.
    cluster.patch::<Vault>("v", json!({"spec": {"shards": 2, "region": "north"}})).await?;
    cluster.delete::<Tenant>("leaver").await?;
    cluster.eventually::<Tenant>("leaver").is_deleted().await?;
    cluster.eventually::<ConfigMap>("v-shard-2").is_deleted().await?;
    cluster.eventually::<ConfigMap>("v-shard-1").has(json!({"data": {"region": "north"}})).await?;
    let kept = cluster.get::<Secret>("v-password").await?.data.context("a password")?;
    ensure!(kept == password, "another password");
    Ok(())
}
