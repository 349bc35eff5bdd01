//! `redis.example.com/v1alpha1`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a Redis cache should be.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "redis.example.com",
    version = "v1alpha1",
    kind = "RedisCache",
    namespaced,
    status = "RedisCacheStatus",
    shortname = "rc",
    category = "all",
    printcolumn = r#"{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(oldSelf.storage) || has(self.storage)", "message": "storage cannot be unset: the data would be lost"},
]))]
pub struct RedisCacheSpec {
    /// How many servers run, each with its own data.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 20))]
    pub replicas: i32,
    /// The image that they run.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1))]
    pub image: String,
    /// The size of each server's volume. Without one, what they hold is lost when they stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::quantity")]
    pub storage: Option<Quantity>,
    /// Lines of `redis.conf`. A change restarts the servers, one after the other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Where and when backups are taken; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
}

/// Backups of the first server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// The PersistentVolumeClaim that they are written to. It belongs to whoever made it, and outlives the cache.
    #[schemars(length(min = 1))]
    pub claim: String,
    /// When they are taken, as a CronJob has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Whether one more is taken before the cache is deleted.
    #[serde(default)]
    pub on_delete: bool,
}

/// What a Redis cache is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisCacheStatus {
    /// How many servers are ready.
    #[serde(default)]
    pub ready: i32,
    /// The Secret with the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

fn one() -> i32 {
    1
}

fn default_image() -> String {
    "redis:7".to_owned()
}
