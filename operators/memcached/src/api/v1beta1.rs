//! `cache.example.com/v1beta1`: the version that is stored, and that the controller works with.

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a group of memcached servers should be.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cache.example.com",
    version = "v1beta1",
    kind = "Memcached",
    namespaced,
    status = "MemcachedStatus",
    shortname = "mc",
    category = "all",
    scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.ready"),
    printcolumn = r#"{"name":"Size","type":"integer","jsonPath":".spec.size"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// How many servers run.
    #[schemars(range(min = 0, max = 100))]
    pub size: i32,
    /// The image that they run.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1))]
    pub image: String,
    /// How many clients may be connected to a server at once [default: 1024, or fewer where its memory is limited].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: Option<i32>,
    /// What each server asks for, and the most that it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::resources")]
    pub resources: Option<ResourceRequirements>,
}

/// What a group of memcached servers is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// The names of the pods that serve.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// How many of them are ready.
    #[serde(default)]
    pub ready: i32,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

fn default_image() -> String {
    "memcached:1.6".to_owned()
}
