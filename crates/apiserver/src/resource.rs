//! What a served resource is: its names, its scope, its subresources, and where its objects are kept.

use crate::status::Named;
use serde_json::Value;
use std::sync::Arc;
use windlass_schema::Schema;

/// One resource in one version, built in or from a CRD. Shared behind an `Arc`; a changed CRD makes a new one.
#[derive(Debug, Clone)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version it is served as.
    pub version: String,
    /// `ConfigMap`
    pub kind: String,
    /// `ConfigMapList`
    pub list_kind: String,
    /// `configmaps`
    pub plural: String,
    /// `configmap`
    pub singular: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// `cm`
    pub short_names: Vec<String>,
    /// `all`
    pub categories: Vec<String>,
    /// What discovery lists.
    pub verbs: Vec<String>,
    /// What discovery lists under the resource.
    pub subresources: Vec<Subresource>,
    /// The type; none preserves everything.
    pub schema: Option<Arc<Schema>>,
    /// Where a field selector may look, beside `metadata.name` and `metadata.namespace`: the selector's label and the
    /// path of the field. A missing field selects as the given text.
    pub selectable: Vec<Selectable>,
    /// Whether it is defined by a CRD.
    pub custom: bool,
}

/// A part of a resource with a path of its own.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// `status`
    pub name: String,
    /// What discovery lists.
    pub verbs: Vec<String>,
}

/// A field that a field selector may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selectable {
    /// As the selector writes it, such as `involvedObject.name`.
    pub label: String,
    /// Where it is in the object.
    pub path: Vec<String>,
}

impl Resource {
    /// `v1` or `group/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// As errors name the resource: by its plural.
    pub fn named(&self) -> Named<'_> {
        Named { group: &self.group, kind: &self.plural }
    }

    /// As validation errors name it: by its kind.
    pub fn named_kind(&self) -> Named<'_> {
        Named { group: &self.group, kind: &self.kind }
    }

    /// `configmaps` or `widgets.example.com`.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Whether it has this subresource.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|subresource| subresource.name == name)
    }

    /// What a field selector compares with for `label`: none if the label is not selectable.
    pub fn field(&self, object: &Value, label: &str) -> Option<String> {
        let path: Vec<&str> = match label {
            "metadata.name" => vec!["metadata", "name"],
            "metadata.namespace" if self.namespaced || !self.custom => vec!["metadata", "namespace"],
            _ => self
                .selectable
                .iter()
                .find(|field| field.label == label)?
                .path
                .iter()
                .map(String::as_str)
                .collect(),
        };
        let found = path.iter().try_fold(object, |value, name| value.get(name));
        Some(match found {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        })
    }

    /// Whether a field selector may name `label`.
    pub fn is_selectable(&self, label: &str) -> bool {
        match label {
            "metadata.name" => true,
            "metadata.namespace" => self.namespaced || !self.custom,
            _ => self.selectable.iter().any(|field| field.label == label),
        }
    }
}
