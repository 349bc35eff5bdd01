//! Random objects of built-in kinds, and random requests about them.
//!
//! What values make sense together no schema says, so every kind has a template (`templates.json`), of which a random part is
//! drawn. How its lists merge is known from the facts of the embedded API.

pub mod draw;
pub mod facts;
pub mod merge;
pub mod requests;

use serde_json::Value;
use std::sync::LazyLock;

static TEMPLATES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("templates.json")).expect("the templates are JSON"));

/// A kind in one of its versions.
#[derive(Debug, Clone)]
pub struct Kind {
    /// `apps/v1`.
    pub api_version: String,
    /// `deployments`.
    pub plural: String,
    /// `Deployment`.
    pub kind: String,
    /// Whether its objects are in a namespace.
    pub namespaced: bool,
    /// What its objects look like.
    pub template: &'static Value,
    /// What of that may change, for kinds of which most may not.
    pub changes: Option<&'static Value>,
}

impl Kind {
    /// All kinds that there are templates of.
    pub fn all() -> Vec<Self> {
        let rows = TEMPLATES["kinds"].as_object().into_iter().flatten();
        rows.map(|(title, template)| {
            let mut words = title.split(' ').map(str::to_owned);
            let mut word = || words.next().unwrap_or_default();
            let (api_version, plural, kind) = (word(), word(), word());
            let changes = TEMPLATES["changes"].get(&kind);
            Self { api_version, plural, kind, namespaced: word().is_empty(), template, changes }
        })
        .collect()
    }

    /// The path of its objects.
    pub fn collection(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let place = if self.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        format!("/{root}/{}{place}/{}", self.api_version, self.plural)
    }

    /// The name of its Go type in the facts.
    pub fn go_type(&self) -> String {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("core", &self.api_version));
        let package = group.split('.').next().unwrap_or_default();
        format!("io.k8s.api.{package}.{version}.{}", self.kind)
    }

    /// What patches of its objects are made of.
    pub fn changing(&self) -> &'static Value {
        self.changes.unwrap_or(self.template)
    }

    /// Whether its template has a status, and it a subresource for it.
    pub fn has_status(&self) -> bool {
        self.changing().get("status").is_some()
    }

    /// Whether it can be scaled.
    pub fn has_scale(&self) -> bool {
        ["deployments", "replicasets", "statefulsets"].contains(&self.plural.as_str())
    }
}

/// A shared piece of templates.
fn piece(name: &str) -> &'static Value {
    &TEMPLATES[name]
}
