//! A custom resource with every kind of validation that a CRD can have, each at a field named after kubebuilder's marker.
//! `docs/validation.md` quotes this file.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::crd::merge_crds;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The definition, with its three versions.
///
/// # Panics
/// Never: the versions are of one kind.
pub fn definition() -> CustomResourceDefinition {
    let versions = vec![Catalogue::crd(), older::Catalogue::crd(), oldest::Catalogue::crd()];
    merge_crds(versions, "v1").expect("the versions are of one kind")
}

/// Every kind of validation.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "catalogue.windlass.dev",
    version = "v1",
    kind = "Catalogue",
    plural = "catalogues",
    singular = "catalogue",
    namespaced,
    shortname = "cat",
    category = "all",
    status = "CatalogueStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    printcolumn = r#"{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"}"#,
    selectable = ".spec.selectable",
    annotation("windlass.dev/about", "everything"),
    label("windlass.dev/is", "catalogue")
)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueSpec {
    // Numbers.
    #[schemars(range(max = 10))]
    maximum: Option<i64>,
    #[schemars(range(min = 1))]
    minimum: Option<i64>,
    #[schemars(range(max = 10), extend("exclusiveMaximum" = true))]
    exclusive_maximum: Option<i64>,
    #[schemars(range(min = 1), extend("exclusiveMinimum" = true))]
    exclusive_minimum: Option<i64>,
    #[schemars(extend("multipleOf" = 5))]
    multiple_of: Option<i64>,

    // Texts.
    #[schemars(length(max = 3))]
    max_length: Option<String>,
    #[schemars(length(min = 2))]
    min_length: Option<String>,
    #[schemars(regex(pattern = "^[a-z]+$"))]
    pattern: Option<String>,
    #[schemars(extend("format" = "ipv4"))]
    format: Option<String>,
    #[serde(rename = "enum")]
    choice: Option<Choice>,
    #[serde(rename = "type")]
    #[schemars(with = "Option<String>")]
    sort: Option<Value>,

    // Lists.
    #[schemars(length(max = 2))]
    max_items: Option<Vec<String>>,
    #[schemars(length(min = 2))]
    min_items: Option<Vec<String>>,
    #[schemars(length(max = 9), extend("x-kubernetes-list-type" = "set"))]
    unique_items: Option<Vec<String>>,
    #[schemars(inner(length(max = 3), regex(pattern = "^[a-z]+$")))]
    items: Option<Vec<String>>,
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    list_type: Option<Vec<String>>,
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    list_map_key: Option<Vec<Entry>>,

    // Maps and structs.
    #[schemars(extend("maxProperties" = 2))]
    max_properties: Option<BTreeMap<String, String>>,
    #[schemars(extend("minProperties" = 2))]
    min_properties: Option<BTreeMap<String, String>>,
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    map_type: Option<BTreeMap<String, String>>,
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    struct_type: Option<Pair>,

    // Presence.
    required: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    optional: Option<String>,
    #[schemars(extend("nullable" = true))]
    nullable: Option<String>,
    #[serde(default = "seven")]
    default: i32,
    #[schemars(extend("example" = "like this"))]
    example: Option<String>,
    #[schemars(title = "A title")]
    title: Option<String>,

    // What has no schema of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::embedded")]
    embedded_resource: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::any_object")]
    preserve_unknown_fields: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::anything")]
    schemaless: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "windlass::schema::int_or_string")]
    int_or_string: Option<Value>,

    // Rules.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "self.low <= self.high",
        "messageExpression": "self.low > 3 ? 'low is far above high' : 'low is above high'",
        "reason": "FieldValueForbidden",
        "fieldPath": ".low"
    }]))]
    rule: Option<Range>,
    #[schemars(extend("x-kubernetes-validations" = [windlass::schema::immutable()]))]
    immutable: Option<String>,
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "oldSelf.hasValue() || self == 0",
        "optionalOldSelf": true,
        "message": "it begins at zero"
    }]))]
    optional_old_self: Option<i64>,
    at_most_one_of: Option<AtMostOneOf>,
    exactly_one_of: Option<ExactlyOneOf>,
    at_least_one_of: Option<AtLeastOneOf>,

    // What the kind's own settings look at.
    replicas: Option<i32>,
    selectable: Option<String>,
}

fn seven() -> i32 {
    7
}

/// One of two.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub enum Choice {
    /// One.
    Red,
    /// The other.
    Blue,
}

/// An entry of a list that is merged by name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    name: String,
    value: Option<i64>,
}

/// A struct that is written as a whole.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    left: Option<i64>,
    right: Option<i64>,
}

/// Two numbers in order.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    low: i64,
    high: i64,
}

/// One or none.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [windlass::schema::at_most_one_of(&["one", "two"])]))]
pub struct AtMostOneOf {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    one: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    two: Option<String>,
}

/// One.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [windlass::schema::exactly_one_of(&["one", "two"])]))]
pub struct ExactlyOneOf {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    one: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    two: Option<String>,
}

/// One or both.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [windlass::schema::at_least_one_of(&["one", "two"])]))]
pub struct AtLeastOneOf {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    one: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    two: Option<String>,
}

/// What it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct CatalogueStatus {
    replicas: Option<i32>,
}

mod older {
    use super::*;

    /// Still served, and people are told that it is old.
    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "catalogue.windlass.dev",
        version = "v1beta1",
        kind = "Catalogue",
        plural = "catalogues",
        singular = "catalogue",
        namespaced,
        shortname = "cat",
        category = "all",
        storage = false,
        deprecated = "use v1"
    )]
    pub struct CatalogueSpec {
        required: String,
    }
}

mod oldest {
    use super::*;

    /// No longer served.
    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "catalogue.windlass.dev",
        version = "v1alpha1",
        kind = "Catalogue",
        plural = "catalogues",
        singular = "catalogue",
        namespaced,
        shortname = "cat",
        category = "all",
        storage = false,
        served = false
    )]
    pub struct CatalogueSpec {
        required: String,
    }
}
