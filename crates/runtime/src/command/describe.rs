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
    pub(crate) deletes: Vec<Kind>,
    pub(crate) claims: Vec<Kind>,
    /// Of what it owns, what may be where it cannot name its owner.
    pub(crate) anywhere: Vec<Kind>,
    /// What its own code does with a client.
    #[serde(skip)]
    pub(crate) uses: Uses,
    pub(crate) actions: Vec<String>,
    pub(crate) facts: Vec<String>,
    /// Whether it decides purely, so that its plans can be shown.
    pub(crate) decides: bool,
    /// Whether it cleans_up something before an object goes.
    pub(crate) cleans_up: bool,
    pub(crate) concurrency: usize,
}

impl Described {
    /// Whether it puts a finalizer, or the kinds to remember, on its objects.
    fn marks_its_objects(&self) -> bool {
        self.cleans_up || !self.anywhere.is_empty() || !self.prunes.is_empty()
    }

    /// Whether it deletes children of a kind itself.
    fn removes(&self, kind: &Kind) -> bool {
        [&self.deletes, &self.prunes, &self.anywhere].iter().any(|kinds| kinds.contains(kind))
    }
}

/// What a cache needs.
const WATCH: &[&str] = &["list", "watch"];
/// What code may read that has a client.
const READ: &[&str] = &["get", "list", "watch"];
/// What is written is also read, when it is not clear what came of a write. Applying what is not there makes it.
const APPLY: &[&str] = &["create", "get", "list", "patch", "watch"];

/// By group and resource, the verbs.
pub(crate) type Uses = BTreeMap<(String, String), BTreeSet<String>>;

/// All of it, as JSON.
pub(crate) fn describe(
    program: &str,
    namespaces: &[String],
    definitions: &[CustomResourceDefinition],
    controllers: &[Described],
) -> Value {
    let mut rules = Uses::new();
    let mut allow = |group: &str, resource: String, verbs: &[&str]| {
        let allowed: &mut BTreeSet<String> = rules.entry((group.to_owned(), resource)).or_default();
        allowed.extend(verbs.iter().map(ToString::to_string));
    };
    for controller in controllers {
        let Kind { group, plural, .. } = &controller.kind;
        // One that writes by hand may do whatever there is to do.
        let by_hand = !controller.decides;
        allow(group, plural.to_string(), READ);
        if by_hand || controller.marks_its_objects() {
            allow(group, plural.to_string(), &["patch"]);
        }
        allow(group, format!("{plural}/status"), if by_hand { &["patch", "update"] } else { &["patch"] });
        // Children that block its deletion name it as their owner: some clusters ask for this then.
        if !controller.owns.is_empty() {
            allow(group, format!("{plural}/finalizers"), &["update"]);
        }
        for kind in &controller.owns {
            allow(&kind.group, kind.plural.to_string(), APPLY);
            if by_hand || controller.claims.contains(kind) {
                allow(&kind.group, kind.plural.to_string(), &["update"]);
            }
            if by_hand || controller.removes(kind) {
                allow(&kind.group, kind.plural.to_string(), &["delete"]);
            }
        }
        for kind in controller.sees.iter().chain(&controller.refers) {
            allow(&kind.group, kind.plural.to_string(), if by_hand { READ } else { WATCH });
        }
        for ((group, resource), verbs) in &controller.uses {
            allow(group, resource.clone(), &verbs.iter().map(String::as_str).collect::<Vec<_>>());
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
        "electionRules": [rule("coordination.k8s.io", "leases", &["get", "create", "update"].map(str::to_owned).into())],
    })
}

fn rule(group: &str, resource: &str, verbs: &BTreeSet<String>) -> Value {
    json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs })
}
