//! A cached read after a write is never older than the write.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::Key;
use windlass::cache::Cache;
use windlass_harness::Target;
use windlass_testing::faults::{Act, Pattern, Which};
use windlass_testing::{Hold, TestCluster, config_map};
use windlass_tests::waiting::until;

/// Writes go through a client whose watches are late by different times; every answer enters the cache.
pub async fn reads_its_own_writes(_: Target) -> anyhow::Result<()> {
    const WRITES: usize = 300;
    let cluster = TestCluster::start_in_real_time();
    let clock = cluster.clock().clone();
    let late = Hold { delay: Duration::from_millis(25), ..Hold::default() };
    cluster.faults().add(Pattern::watches().then(Which::Every, Act::HoldEvents(late)));
    let namespace = cluster.namespace();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), namespace);

    let cache = Cache::new(Arc::from(""), Some(namespace.to_owned()));
    let store = cache.store::<ConfigMap>();
    let mut tasks = JoinSet::new();
    cache.start(&cluster.client(), &clock, &mut tasks);
    cache.synced().await;
    let mut behind = 0;
    for number in 0..WRITES {
        let name = format!("map-{}", number % 7);
        let written = if maps.get_opt(&name).await?.is_none() {
            maps.create(&PostParams::default(), &config_map(&name)).await?
        } else {
            let change = serde_json::json!({"data": BTreeMap::from([("number", number.to_string())])});
            maps.patch(&name, &PatchParams::default(), &Patch::Merge(change)).await?
        };
        let version: u64 = written.resource_version().context("a version")?.parse()?;
        let (key, _) = store.wrote(&serde_json::to_value(&written)?, None)?;
        let cached = store.get(&key).context("written and not in the cache")?;
        let seen: u64 = cached.resource_version().context("a version")?.parse()?;
        ensure!(seen >= version, "write {number} made version {version}, the cache has {seen}");
        // And what was cached before does not fall back either, whatever event has come meanwhile.
        if number % 7 == 3 {
            clock.sleep(Duration::from_millis(3)).await;
            let later: u64 =
                store.get(&key).and_then(|map| map.resource_version()).context("gone")?.parse()?;
            ensure!(later >= version, "the cache fell back from {version} to {later}");
            behind += 1;
        }
    }
    let newest: Vec<Key> = (0..7).map(|number| key(namespace, number)).collect();
    until("the watch caught up", || async { Ok(newest.iter().all(|key| store.get(key).is_some())) }).await?;
    println!("{WRITES} writes read back at once, {behind} looked at again among late events");
    tasks.shutdown().await;
    Ok(())
}

fn key(namespace: &str, number: usize) -> Key {
    Key::new(Arc::from(""), Some(namespace), &format!("map-{number}"))
}
