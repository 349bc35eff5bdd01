//! The objects that a RedisCache consists of, as YAML would have them.

use crate::api::v1alpha1::{Backup, RedisCache};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The user of the official image.
const USER: i64 = 999;
/// `redis-cli` reads it, so that it is on no command line.
const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";

pub(crate) fn secret(cache: &RedisCache) -> Secret {
    Secret { metadata: metadata(cache, &secret_name(cache)), ..Default::default() }
}

fn secret_name(cache: &RedisCache) -> String {
    format!("{}-auth", cache.name_any())
}

/// `redis.conf`.
pub(crate) fn settings(cache: &RedisCache) -> ConfigMap {
    let lines = cache.spec.settings.iter().map(|(name, value)| format!("{name} {value}\n"));
    let data = BTreeMap::from([("redis.conf".to_owned(), lines.collect())]);
    ConfigMap { metadata: metadata(cache, &cache.name_any()), data: Some(data), ..Default::default() }
}

pub(crate) fn service(cache: &RedisCache) -> Service {
    let spec = json!({
        "clusterIP": "None",
        "selector": labels(cache),
        "ports": [{ "name": "redis", "port": 6379, "targetPort": "redis" }],
    });
    Service { metadata: metadata(cache, &cache.name_any()), spec: Some(read(spec)), ..Default::default() }
}

pub(crate) fn servers(cache: &RedisCache) -> StatefulSet {
    let name = cache.name_any();
    let claims = cache.spec.storage.as_ref().map(|storage| {
        json!({
            "metadata": { "name": "data" },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": storage } } },
        })
    });
    let mut volumes = vec![json!({ "name": "settings", "configMap": { "name": name } })];
    if claims.is_none() {
        volumes.push(json!({ "name": "data", "emptyDir": {} }));
    }
    let pod = json!({
        "securityContext": security(),
        "containers": [{
            "name": "redis",
            "image": cache.spec.image,
            "args": ["redis-server", "/etc/redis/redis.conf", "--dir", "/data", "--requirepass", "$(REDISCLI_AUTH)"],
            "env": [password(cache)],
            "ports": [{ "name": "redis", "containerPort": 6379 }],
            "readinessProbe": {
                "exec": { "command": ["sh", "-c", "redis-cli ping | grep -q PONG"] },
                "periodSeconds": 1,
            },
            "securityContext": container_security(),
            "volumeMounts": [
                { "name": "settings", "mountPath": "/etc/redis", "readOnly": true },
                { "name": "data", "mountPath": "/data" },
            ],
        }],
        "volumes": volumes,
    });
    let spec = json!({
        "replicas": cache.spec.replicas,
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "selector": { "matchLabels": labels(cache) },
        "template": { "metadata": { "labels": labels(cache) }, "spec": pod },
        "volumeClaimTemplates": claims.map(|claim| vec![claim]),
    });
    StatefulSet { metadata: metadata(cache, &name), spec: Some(read(spec)), ..Default::default() }
}

/// Backups on a schedule, of which the last three Jobs are kept.
pub(crate) fn backups(cache: &RedisCache, schedule: &str) -> CronJob {
    let job =
        cache.spec.backup.as_ref().map(|backup| backup_job(cache, backup, "$(date -u +%Y%m%dT%H%M%SZ)"));
    let spec = json!({
        "schedule": schedule,
        "concurrencyPolicy": "Forbid",
        "jobTemplate": { "spec": job },
    });
    let metadata = metadata(cache, &format!("{}-backup", cache.name_any()));
    CronJob { metadata, spec: read(spec), ..Default::default() }
}

/// The backup before the cache is deleted.
pub(crate) fn last_backup(cache: &RedisCache, backup: &Backup) -> Job {
    let metadata = metadata(cache, &format!("{}-last-backup", cache.name_any()));
    Job { metadata, spec: Some(read(backup_job(cache, backup, "last"))), ..Default::default() }
}

/// Has the first server write what it holds into a file, which is there whole or not at all.
fn backup_job(cache: &RedisCache, backup: &Backup, suffix: &str) -> Value {
    let name = cache.name_any();
    let script = format!(
        "set -e; file=/backups/{name}-{suffix}.rdb; redis-cli -h {name}-0.{name} --rdb $file.part; mv $file.part $file"
    );
    json!({
        "backoffLimit": 3,
        "template": {
            "metadata": { "labels": { "app.kubernetes.io/name": "redis-backup", "app.kubernetes.io/instance": name } },
            "spec": {
                "restartPolicy": "Never",
                "securityContext": security(),
                "containers": [{
                    "name": "backup",
                    "image": cache.spec.image,
                    "command": ["sh", "-c", script],
                    "env": [password(cache)],
                    "securityContext": container_security(),
                    "volumeMounts": [{ "name": "backups", "mountPath": "/backups" }],
                }],
                "volumes": [{ "name": "backups", "persistentVolumeClaim": { "claimName": backup.claim } }],
            },
        },
    })
}

fn password(cache: &RedisCache) -> Value {
    json!({
        "name": PASSWORD_VARIABLE,
        "valueFrom": { "secretKeyRef": { "name": secret_name(cache), "key": "password" } },
    })
}

fn security() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "fsGroup": USER,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

fn container_security() -> Value {
    json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

fn labels(cache: &RedisCache) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "redis".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), cache.name_any()),
    ])
}

fn metadata(cache: &RedisCache, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels(cache)), ..Default::default() }
}

/// What is written above, as its type; the tests read every object.
fn read<T: DeserializeOwned>(written: Value) -> T {
    serde_json::from_value(written).expect("objects written in this file are of their types")
}
