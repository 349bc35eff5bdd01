//! The RedisCache operator with real Redis servers: pods are processes, and what they hold is in volumes.

use crate::process::{Cluster, windlass};
use crate::process_pods::{World, cannot_run};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use redis_cache_operator::api::v1alpha1::RedisCache;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass::Manager;
use windlass_clock::Clock;

impl World {
    async fn is_ready(&self, generation: i64) -> bool {
        let cache = self.api::<RedisCache>().get("orders").await.unwrap();
        let status = cache.status.unwrap_or_default();
        status.conditions.iter().any(|one| {
            one.type_ == "Ready" && one.status == "True" && one.observed_generation >= Some(generation)
        })
    }

    /// What `redis-cli` prints, asked in a pod about the first server.
    async fn redis(&self, command: &str) -> String {
        let password = json!({"name": "REDISCLI_AUTH", "valueFrom": {"secretKeyRef": {"name": "orders-auth", "key": "password"}}});
        let container = json!({
            "name": "cli", "image": "redis:7", "env": [password],
            "command": ["sh", "-c", format!("redis-cli -h orders-0.orders {command}")],
        });
        self.prints(json!({"containers": [container]})).await
    }

    async fn change(&self, spec: serde_json::Value) -> i64 {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let changed =
            self.api::<RedisCache>().patch("orders", &PatchParams::default(), &patch).await.unwrap();
        changed.metadata.generation.unwrap()
    }
}

#[tokio::test]
async fn real_servers_keep_their_data_restart_and_are_backed_up() {
    if let Some(why) = cannot_run("redis-server") {
        println!("{why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    std::fs::write(&policy, "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}")
        .unwrap();
    let mut command = windlass(&["cluster", "up", "--nodes", "process=1"]);
    command.env("XDG_RUNTIME_DIR", folder.path());
    command.arg("--audit-policy-file").arg(policy).arg("--audit-log-path").arg(&log);
    let cluster = Cluster::of(command);
    let world = World::of(&cluster).await;
    world.install::<RedisCache>().await;
    let manager = redis_cache_operator::operator(Manager::new(world.client.clone(), Clock::real()));
    let operator = tokio::spawn(manager.run_until(std::future::pending()));

    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": "kept"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .unwrap();
    world.api().create(&PostParams::default(), &claim).await.unwrap();
    let cache: RedisCache = serde_json::from_value(json!({
        "apiVersion": "redis.example.com/v1alpha1", "kind": "RedisCache", "metadata": {"name": "orders"},
        "spec": {"storage": "1Gi", "settings": {"save": "1 1"}, "backup": {"claim": "kept", "onDelete": true}},
    }))
    .unwrap();
    world.api().create(&PostParams::default(), &cache).await.unwrap();
    world.until("the servers are ready", || world.is_ready(1)).await;
    assert_eq!(world.redis("set fruit apple").await, "OK");
    let unknown = world.redis("--no-auth-warning -a wrong get fruit").await;
    assert!(!unknown.contains("apple"), "{unknown}");

    // Another setting restarts the server, which has its data and the setting.
    let generation = world.change(json!({"settings": {"save": "1 1", "maxmemory": "64mb"}})).await;
    world.until("the server restarted", || world.is_ready(generation)).await;
    assert_eq!(world.redis("get fruit").await, "apple");
    assert!(world.redis("config get maxmemory").await.contains("67108864"));

    // A larger volume for new servers: another StatefulSet, the same server.
    let pod = world.api::<Pod>().get("orders-0").await.unwrap().uid();
    let set = world.api::<StatefulSet>().get("orders").await.unwrap().uid();
    let generation = world.change(json!({"storage": "2Gi"})).await;
    world
        .until("the StatefulSet is another", || async {
            world.api::<StatefulSet>().get_opt("orders").await.unwrap().is_some_and(|now| now.uid() != set)
        })
        .await;
    world.until("it is ready again", || world.is_ready(generation)).await;
    assert_eq!(world.api::<Pod>().get("orders-0").await.unwrap().uid(), pod);

    // A new password.
    let password = world.api::<Secret>().get("orders-auth").await.unwrap().data;
    world.api::<Secret>().delete("orders-auth", &DeleteParams::default()).await.unwrap();
    world
        .until("the server restarted with another password", || async {
            let now = world.api::<Secret>().get_opt("orders-auth").await.unwrap();
            let server = world.api::<Pod>().get_opt("orders-0").await.unwrap();
            now.is_some_and(|now| now.data != password) && server.is_some_and(|server| server.uid() != pod)
        })
        .await;
    world.until("it is ready again", || world.is_ready(generation)).await;
    assert_eq!(world.redis("get fruit").await, "apple");

    // A backup before the end.
    world.api::<RedisCache>().delete("orders", &DeleteParams::default()).await.unwrap();
    world
        .until("the cache is gone", || async {
            world.api::<RedisCache>().get_opt("orders").await.unwrap().is_none()
        })
        .await;
    let container = json!({
        "name": "reader", "image": "redis:7",
        "command": ["sh", "-c", "head -c 5 /backups/orders-last.rdb; grep -c apple /backups/*"],
        "volumeMounts": [{"name": "backups", "mountPath": "/backups"}],
    });
    let volume = json!({"name": "backups", "persistentVolumeClaim": {"claimName": "kept"}});
    assert_eq!(world.prints(json!({"containers": [container], "volumes": [volume]})).await, "REDIS1");
    operator.abort();
    assert!(cluster.end(nix::sys::signal::Signal::SIGTERM).success());
    has_rights_to_all_that_it_does(&std::fs::read_to_string(log).unwrap());
}

/// No part of the cluster is an administrator, and none was refused anything, as the audit log tells.
fn has_rights_to_all_that_it_does(log: &str) {
    let mut parts = BTreeSet::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let user = event["user"]["username"].as_str().unwrap();
        if !user.starts_with("system:") || user == "system:apiserver" {
            continue;
        }
        assert!(!event["user"]["groups"].as_array().unwrap().contains(&json!("system:masters")), "{event:#}");
        // A kubelet may ask for what a pod uses that is gone since.
        let reason = event["annotations"]["authorization.k8s.io/reason"].as_str().unwrap_or_default();
        let is_late = reason.starts_with("no relationship found between node");
        assert!(event["responseStatus"]["code"] != 403 || is_late, "{event:#}");
        parts.insert(user.to_owned());
    }
    for part in [
        "system:kube-controller-manager",
        "system:kube-proxy",
        "system:kube-scheduler",
        "system:node:process-1",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:local-volume-provisioner",
        "system:serviceaccount:kube-system:persistent-volume-binder",
        "system:serviceaccount:kube-system:statefulset-controller",
    ] {
        assert!(parts.contains(part), "{part} did nothing: {parts:?}");
    }
}
