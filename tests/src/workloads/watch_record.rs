//! Every state of a namespace's objects of one kind, from a watch: for what must hold at every moment, not only at the end.

use anyhow::Context;
use futures::TryStreamExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use std::collections::BTreeMap;
use std::pin::pin;
use windlass::Object;
use windlass_testing::TestCluster;

/// Where it starts: what was there, and at which version.
pub struct Record<K> {
    first: BTreeMap<String, K>,
    version: String,
}

/// Objects by name.
pub type Moment<K> = BTreeMap<String, K>;

impl<K> Record<K>
where
    K: Object + kube::Resource<Scope = kube::core::NamespaceResourceScope>,
{
    /// Starts now.
    ///
    /// # Errors
    /// When the API does not answer.
    pub async fn start(cluster: &TestCluster) -> anyhow::Result<Self> {
        let found = api::<K>(cluster.client(), cluster.namespace()).list(&ListParams::default()).await?;
        let version = found.metadata.resource_version.context("a list has a version")?;
        let first = found.items.into_iter().map(|object| (object.name_any(), object)).collect();
        Ok(Self { first, version })
    }

    /// Every moment from then until now, read from the history that the API keeps.
    ///
    /// # Errors
    /// When the API does not answer, or no longer knows.
    pub async fn moments(&self, cluster: &TestCluster) -> anyhow::Result<Vec<Moment<K>>> {
        let api = api::<K>(cluster.client(), cluster.namespace());
        let newest = |now: &Moment<K>| {
            let versions = now.values().filter_map(|object| object.resource_version()?.parse::<u64>().ok());
            versions.max().unwrap_or_default()
        };
        let there = api.list(&ListParams::default()).await?;
        let end = newest(&there.into_iter().map(|object| (object.name_any(), object)).collect());
        let mut now = self.first.clone();
        let mut moments = vec![now.clone()];
        let mut observed = newest(&now);
        // It ends with the last change of what is there; or by itself, should the history be incomplete.
        let params = WatchParams::default().timeout(2);
        let mut events = pin!(api.watch(&params, &self.version).await?);
        while observed < end
            && let Some(event) = cluster.run_clock_while(events.try_next()).await?
        {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    observed = observed
                        .max(object.resource_version().and_then(|text| text.parse().ok()).unwrap_or(0));
                    now.insert(object.name_any(), object);
                }
                WatchEvent::Deleted(object) => {
                    now.remove(&object.name_any());
                }
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => anyhow::bail!("the watch broke off: {}", status.message),
            }
            moments.push(now.clone());
        }
        Ok(moments)
    }
}

fn api<K>(client: Client, namespace: &str) -> Api<K>
where
    K: Object + kube::Resource<Scope = kube::core::NamespaceResourceScope>,
{
    Api::namespaced(client, namespace)
}
