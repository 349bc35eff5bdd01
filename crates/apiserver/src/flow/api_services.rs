//! What follows from writes of CRDs and APIServices: every group and version of a CRD has an APIService, and what this server serves is
//! always available.
//!
//! In Kubernetes these are the controllers of kube-aggregator; here they run before the answer is sent. Who leads elsewhere is asked whether
//! it is available by [`aggregator`](crate::aggregator).

use super::{commit, managed};
use crate::aggregation::{Condition, GROUP, STORAGE};
use crate::crd::{self, flag};
use crate::object::{list, text, timestamp, uid};
use crate::operation::Operation;
use crate::state::ApiState;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_store::{Body, Change, CommitError, Key, ListQuery};

/// As whom APIServices are looked after.
const MANAGER: &str = "kube-apiserver";

/// The label of an APIService that the server made itself, and what it says if that one follows its CRD.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const CONTINUOUSLY: &str = "true";

/// How CRDs are preferred: after what is built in, and among each other by the names of their versions.
const GROUP_PRIORITY: i64 = 1000;
const VERSION_PRIORITY: i64 = 100;

/// How often a write is tried that somebody else's came before.
const ATTEMPTS: usize = 5;

/// Brings the APIServices of all CRDs to where they should be, after a restart.
pub(crate) async fn resume(api: &ApiState) {
    let stored = |resource: &str| api.store.list(&ListQuery::all(resource)).map(|page| page.items);
    let definitions = stored(crd::STORAGE).unwrap_or_default();
    let mut groups: BTreeSet<String> =
        definitions.iter().map(|entry| text(&entry.value(), &["spec", "group"]).to_owned()).collect();
    for entry in stored(STORAGE).unwrap_or_default() {
        if entry.label(MANAGED) == Some(CONTINUOUSLY) {
            groups.insert(text(&entry.value(), &["spec", "group"]).to_owned());
        }
    }
    for group in groups {
        register(api, &group).await;
    }
}

/// An APIService was created or changed.
pub(crate) async fn changed(operation: &Operation<'_>, name: &str) {
    if operation.resource.group != GROUP || operation.resource.plural != "apiservices" {
        return;
    }
    let api = operation.api;
    let Some(entry) = api.store.get(&Key::new(STORAGE, "", name)) else { return };
    let object = entry.value();
    let group = text(&object, &["spec", "group"]);
    // What was built in is served whatever its APIService says.
    if entry.label(MANAGED) == Some(CONTINUOUSLY) {
        register(api, group).await;
    }
    if object["spec"].get("service").is_none() {
        write_condition(api, name, &Condition::local(), |object| object["spec"].get("service").is_none())
            .await;
    }
}

/// An APIService was deleted.
pub(crate) async fn deleted(operation: &Operation<'_>, name: &str) {
    if operation.resource.group != GROUP || operation.resource.plural != "apiservices" {
        return;
    }
    if let Some((_, group)) = name.split_once('.') {
        register(operation.api, group).await;
    }
}

/// Brings the APIServices of the CRDs of a group to where they should be. Those that others made stay as they are.
pub(crate) async fn register(api: &ApiState, group: &str) {
    let _one_at_a_time = api.aggregation.registering.lock().await;
    let wanted = versions(api, group);
    for version in &wanted {
        ensure(api, group, version).await;
    }
    let Ok(page) = api.store.list(&ListQuery::all(STORAGE)) else { return };
    for entry in page.items {
        let object = entry.value();
        let is_left_over = text(&object, &["spec", "group"]) == group
            && entry.label(MANAGED) == Some(CONTINUOUSLY)
            && !wanted.contains(text(&object, &["spec", "version"]));
        if is_left_over {
            let change = Change::Delete { key: entry.key().clone(), expected: entry.revision() };
            // Changed in the meantime: that write looks at it again.
            if let Err(error @ CommitError::NotStored(_)) = api.store.commit(change).await {
                tracing::warn!(%error, name = &*entry.key().name, "an APIService is left over");
            }
        }
    }
}

/// The versions of a group that its CRDs serve.
fn versions(api: &ApiState, group: &str) -> BTreeSet<String> {
    let Ok(page) = api.store.list(&ListQuery::all(crd::STORAGE)) else { return BTreeSet::new() };
    let mut versions = BTreeSet::new();
    for entry in page.items {
        let definition = entry.value();
        if text(&definition, &["spec", "group"]) == group {
            let served = crd::versions(&definition).iter().filter(|version| flag(version, "served"));
            versions.extend(served.map(|version| text(version, &["name"]).to_owned()));
        }
    }
    versions
}

/// Makes an APIService of a CRD, or makes it what it was again.
async fn ensure(api: &ApiState, group: &str, version: &str) {
    let name = format!("{version}.{group}");
    let key = Key::new(STORAGE, "", name.as_str());
    let spec = json!({"group": group, "version": version, "groupPriorityMinimum": GROUP_PRIORITY,
        "versionPriority": VERSION_PRIORITY});
    for _ in 0..ATTEMPTS {
        let Some(operation) = operation(api, &name) else { return };
        let now = operation.now();
        let committed = match api.store.get(&key) {
            Some(entry) => {
                let old = entry.value();
                if entry.label(MANAGED) != Some(CONTINUOUSLY) || old["spec"] == spec {
                    return;
                }
                let mut new = old.clone();
                new["spec"] = spec.clone();
                managed::update_as(&operation, Some(&old), &mut new, MANAGER);
                Condition::local().set(&mut new, &now);
                commit::update(&operation, &name, entry.revision(), Body::encode(&new, Vec::new())).await
            }
            None => {
                let mut new = json!({
                    "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                    "metadata": {"name": name, "uid": uid(), "creationTimestamp": now,
                        "labels": {MANAGED: CONTINUOUSLY}},
                    "spec": spec, "status": {},
                });
                managed::update_as(&operation, None, &mut new, MANAGER);
                Condition::local().set(&mut new, &now);
                commit::create(&operation, &name, Body::encode(&new, Vec::new())).await
            }
        };
        match committed {
            Err(CommitError::NotStored(error)) => {
                tracing::warn!(%error, name, "a CRD is without its APIService");
                return;
            }
            Ok(_) => return,
            // Somebody else was first.
            Err(_) => {}
        }
    }
}

/// Writes a condition as the server, unless it is there already or the APIService is no longer what was judged.
pub(crate) async fn write_condition(
    api: &ApiState,
    name: &str,
    condition: &Condition,
    still: impl Fn(&Value) -> bool,
) {
    let key = Key::new(STORAGE, "", name);
    for _ in 0..ATTEMPTS {
        let (Some(entry), Some(operation)) = (api.store.get(&key), status_operation(api, name)) else {
            return;
        };
        let old = entry.value();
        if !still(&old) {
            return;
        }
        let now = timestamp(api.clock.now());
        let mut new = old.clone();
        if !condition.set(&mut new, &now) {
            return;
        }
        // What is local is so from its creation on, and that write is nobody's.
        let is_new = *condition == Condition::local() && list(&old, &["status", "conditions"]).is_empty();
        if !is_new {
            managed::update_as(&operation, Some(&old), &mut new, MANAGER);
        }
        let body = Body::encode(&new, Vec::new());
        match commit::update(&operation, name, entry.revision(), body).await {
            Ok(_) => return,
            Err(CommitError::NotStored(error)) => {
                tracing::warn!(%error, name, "the condition of an APIService is not written");
                return;
            }
            Err(_) => {}
        }
    }
}

/// A write of an APIService by the server itself.
fn operation<'a>(api: &'a ApiState, name: &str) -> Option<Operation<'a>> {
    let resource = api.registry.get(GROUP, "v1", "apiservices")?;
    Some(Operation::of_server(api, resource, "", name))
}

/// The same of its status.
fn status_operation<'a>(api: &'a ApiState, name: &str) -> Option<Operation<'a>> {
    Some(Operation { subresource: "status".to_owned(), ..operation(api, name)? })
}
