//! What tests of the cache stand on: an API in process, a cache on it, and a client to change things behind its back.

use super::{Cache, Namespaces, Stats};
use crate::key::Key;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_apiserver::faults::Pattern;
use windlass_apiserver::{Config, Identity};
use windlass_clock::Clock;

/// An API, a cache on it, and a client to change things behind its back.
pub(super) struct World {
    pub(super) api: windlass_apiserver::Api,
    pub(super) client: Client,
    pub(super) cache: Cache,
    pub(super) tasks: JoinSet<()>,
}

impl World {
    pub(super) fn new(namespaces: impl Into<Namespaces>) -> Self {
        let api = windlass_apiserver::Api::new(Config::default());
        let client = Client::new(api.service(Identity::admin()), "default");
        Self { api, client, cache: Cache::new("c".into(), namespaces), tasks: JoinSet::new() }
    }

    pub(super) fn start(&mut self) {
        let client = Client::new(self.api.service(Identity::privileged("cache")), "default");
        self.cache.start(&client, &Clock::real(), &mut self.tasks);
    }

    pub(super) async fn namespace(&self, name: &str) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        Ok(())
    }

    pub(super) fn maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(super) async fn map(&self, namespace: &str, name: &str, app: &str) -> anyhow::Result<()> {
        let map = json!({"metadata": {"name": name, "labels": {"app": app}}, "data": {"text": "something"}});
        self.maps(namespace).create(&PostParams::default(), &serde_json::from_value(map)?).await?;
        Ok(())
    }

    pub(super) async fn label(&self, namespace: &str, name: &str, app: &str) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"app": app}}}));
        self.maps(namespace).patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Breaks off the cache's watches; says how many there were.
    pub(super) fn drop_watches(&self) -> usize {
        self.api.faults().drop_watches(&Pattern::watches().user("cache"))
    }

    pub(super) fn stats(&self, kind: &str) -> Stats {
        self.cache.stats().into_iter().find(|stats| stats.kind.kind == kind).expect("it is open")
    }
}

pub(super) async fn eventually(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    let clock = Clock::real();
    for _ in 0..2_000 {
        if holds() {
            return Ok(());
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
    anyhow::bail!("after ten seconds, not yet: {what}")
}

pub(super) fn key(namespace: &str, name: &str) -> Key {
    Key::new("c".into(), Some(namespace), name)
}
