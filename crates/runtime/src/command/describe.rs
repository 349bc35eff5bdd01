//! What an operator is: its controllers, and the permissions that follow from what they watch and write.

use crate::kind::Kind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A controller as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) owns: Vec<Kind>,
    pub(crate) sees: Vec<Kind>,
    pub(crate) refers: Vec<Kind>,
    pub(crate) prunes: Vec<Kind>,
    pub(crate) actions: Vec<String>,
    pub(crate) facts: Vec<String>,
    /// Whether it decides purely, so that its plans can be shown.
    pub(crate) decides: bool,
    /// Whether it undoes something before an object goes.
    pub(crate) undoes: bool,
    pub(crate) concurrency: usize,
}

const READ: &[&str] = &["get", "list", "watch"];
/// A child is made by apply, by creation or by a claim, and pruned.
const OWN: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// By group and resource, the verbs.
type Rules = BTreeMap<(String, String), BTreeSet<&'static str>>;

/// All of it, as JSON.
pub(crate) fn describe(
    program: &str,
    namespaces: &[String],
    definitions: &[CustomResourceDefinition],
    controllers: &[Described],
) -> Value {
    let mut rules = Rules::new();
    let mut allow = |group: &str, resource: String, verbs: &'static [&'static str]| {
        rules.entry((group.to_owned(), resource)).or_default().extend(verbs);
    };
    for controller in controllers {
        let Kind { group, plural, .. } = &controller.kind;
        allow(group, plural.clone(), READ);
        // The marks on the object itself: its finalizer, and the kinds of its children.
        allow(group, plural.clone(), &["patch"]);
        allow(group, format!("{plural}/status"), &["get", "patch"]);
        // Children that block its deletion name it as their owner.
        allow(group, format!("{plural}/finalizers"), &["update"]);
        for kind in &controller.owns {
            allow(&kind.group, kind.plural.clone(), OWN);
        }
        for kind in controller.sees.iter().chain(&controller.refers) {
            allow(&kind.group, kind.plural.clone(), READ);
        }
    }
    allow("", "events".to_owned(), &["create", "patch"]);
    let rules: Vec<Value> =
        rules.into_iter().map(|((group, resource), verbs)| rule(&group, &resource, &verbs)).collect();
    json!({
        "name": program,
        "namespaces": namespaces,
        "definitions": definitions,
        "controllers": controllers,
        "rules": rules,
        // In the lease's own namespace, where it is elected.
        "electionRules": [rule("coordination.k8s.io", "leases", &["get", "create", "update"].into())],
    })
}

fn rule(group: &str, resource: &str, verbs: &BTreeSet<&'static str>) -> Value {
    json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs })
}
