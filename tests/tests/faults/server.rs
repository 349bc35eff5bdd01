//! A server that changes what is written, and CRDs that are deleted and created again.

use anyhow::ensure;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use windlass_harness::Target;
use windlass_testing::faults::{Act, Mutation, Pattern, Which};
use windlass_testing::{Data, TestCluster, config_map};
use windlass_tests::mirror;
use windlass_tests::sample::{self, Vault, VaultSpec};

const OPERATOR: &str = "operator";

/// The number of the operator's writes of mirrors after this many audit records.
fn mirror_writes(cluster: &TestCluster, before: u64) -> usize {
    let written = cluster.faults().audit().since(before);
    written.iter().filter(|record| record.user == OPERATOR && record.resource == "secrets").count()
}

/// Counts them over so much time.
async fn writes_in(cluster: &TestCluster, time: Duration) -> usize {
    let before = cluster.faults().audit().total();
    cluster.advance(time).await;
    mirror_writes(cluster, before)
}

/// A server that stamps every write, beside what is applied: none of the operator's business.
pub async fn stamps_every_write(_: Target) -> anyhow::Result<()> {
    let count = AtomicU64::new(0);
    mutated(move |object| {
        let number = count.fetch_add(1, Ordering::Relaxed).to_string();
        object["metadata"]["annotations"]["stamped"] = number.into();
    })
    .await?;
    Ok(())
}

/// A server that puts its own value over the applied one: it wins, and is not fought for ever.
pub async fn overrules_every_write(_: Target) -> anyhow::Result<()> {
    let cluster = mutated(|object| object["data"]["k"] = "b3ZlcnJ1bGVk".into()).await?;
    let shown = mirror::shown_by(&cluster.get::<Secret>("a").await?);
    ensure!(shown.as_deref() == Some("overruled"), "{shown:?}");
    Ok(())
}

async fn mutated(change: impl Fn(&mut Value) + Send + Sync + 'static) -> anyhow::Result<TestCluster> {
    const MINUTE: Duration = Duration::from_secs(60);
    let cluster = TestCluster::api_only();
    let writes = Pattern::writes().resource("secrets");
    cluster.faults().add(writes.then(Which::Every, Act::Mutate(Mutation::by(change))));
    let operator = cluster
        .run_manager(cluster.manager().namespace(cluster.namespace()).controller(mirror::controller()));
    cluster.create(config_map("a").data("k", "v")).await?;
    cluster.eventually::<Secret>("a").exists().await?;
    let first = writes_in(&cluster, MINUTE).await;
    ensure!(first <= 3, "{first} more writes in a minute, of what the server changes on its way");
    // What it wants changes: that is worth a write, and no more than that.
    let before = cluster.faults().audit().total();
    cluster.patch::<ConfigMap>("a", json!({"data": {"k": "w"}})).await?;
    let look = || async { Ok(mirror_writes(&cluster, before)) };
    cluster.until("it is written", look, |writes| *writes > 0).await?;
    cluster.advance(MINUTE).await;
    let second = mirror_writes(&cluster, before);
    ensure!(second <= 4, "{second} writes for one change");
    let third = writes_in(&cluster, 10 * MINUTE).await;
    ensure!(third == 0, "{third} writes in ten minutes in which nothing changed");
    println!("{first} writes after the first, {second} for one change, {third} at rest");
    operator.stop().await?;
    Ok(cluster)
}

pub async fn kind_goes_and_comes(_: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::api_only();
    cluster.install(sample::crds()).await?;
    let operator = cluster.run(sample::operator);
    cluster.create(Vault::new("first", VaultSpec { shards: 1, region: None })).await?;
    cluster.eventually::<Vault>("first").has(json!({"status": {"open": true}})).await?;
    for kind in sample::crds() {
        cluster.delete::<CustomResourceDefinition>(&kind.name_any()).await?;
        cluster.eventually::<CustomResourceDefinition>(&kind.name_any()).is_deleted().await?;
    }
    cluster.advance(Duration::from_secs(60)).await;
    ensure!(!operator.has_ended(), "a kind that goes is no reason to end");
    cluster.install(sample::crds()).await?;
    cluster.create(Vault::new("second", VaultSpec { shards: 1, region: None })).await?;
    // It looks for a kind that is gone at most every half minute.
    cluster.advance(Duration::from_secs(40)).await;
    cluster.eventually::<Vault>("second").has(json!({"status": {"open": true}})).await?;
    operator.stop().await
}

/// A kind that is never served: the operator says so, and ends, so that somebody hears of it.
pub async fn kind_never_comes(_: Target) -> anyhow::Result<()> {
    const LIMIT: Duration = Duration::from_secs(30);
    let cluster = TestCluster::api_only();
    let operator = cluster.run_manager(sample::operator(cluster.manager().cache_sync_timeout(LIMIT)));
    cluster.advance(LIMIT / 2).await;
    ensure!(!operator.has_ended(), "it may still come");
    cluster.advance(LIMIT).await;
    let ended = operator.stop().await.expect_err("it cannot work without its kinds");
    ensure!(format!("{ended:#}").contains("Vault (sample.windlass.dev/v1)"), "{ended:#}");
    Ok(())
}
