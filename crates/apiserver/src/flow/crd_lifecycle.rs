//! What follows from a write of a CRD: its names are accepted and it is served; and when it is deleted, so are its objects.
//!
//! In Kubernetes these are controllers beside the request path; here they run before the answer is sent, so that what
//! was created can be used at once.

use super::delete::{Deletion, delete_quietly};
use super::delete_options::DeleteOptions;
use super::{api_services, commit, encode, managed};
use crate::crd::{self, CLEANUP, GROUP, STORAGE, naming, prepare};
use crate::object::{child, text, timestamp};
use crate::operation::Operation;
use crate::resource::Resource;
use crate::state::ApiState;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_store::{CommitError, Entry, Key, ListQuery};

/// As whom definitions are looked after.
const MANAGER: &str = "kube-apiserver";

/// Serves the definitions that were stored before a restart, and finishes what it interrupted.
pub(crate) async fn resume(api: &ApiState) {
    let Ok(page) = api.store.list(&ListQuery::all(STORAGE)) else { return };
    let now = timestamp(api.clock.now());
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for entry in page.items {
        let crd = entry.value();
        groups.entry(text(&crd, &["spec", "group"]).to_owned()).or_default().push(crd);
    }
    let mut unsettled = Vec::new();
    for definitions in groups.values_mut() {
        for _ in 0..definitions.len() {
            // Each in turn is taken out, and the others are what it is judged by.
            let crd = definitions.remove(0);
            let going = !text(&crd, &["metadata", "deletionTimestamp"]).is_empty();
            if going || naming::status(&crd, definitions, &now).is_some() {
                unsettled.push(text(&crd, &["metadata", "name"]).to_owned());
            } else {
                api.registry.define(&crd);
            }
            definitions.push(crd);
        }
    }
    for name in unsettled {
        settle_and_follow(api, &name).await;
    }
}

/// An object was created or changed.
pub(crate) async fn changed(operation: &Operation<'_>, name: &str) {
    if is_definitions(&operation.resource) {
        settle_and_follow(operation.api, name).await;
    }
}

/// An object was deleted.
pub(crate) async fn deleted(operation: &Operation<'_>, name: &str) {
    let resource = &operation.resource;
    if is_definitions(resource) {
        operation.api.registry.forget(name);
        settle_waiting(operation.api).await;
        register(operation.api, name).await;
    } else if resource.custom && resource.terminating {
        settle_and_follow(operation.api, &resource.definition).await;
    }
}

/// Settles a definition; if it went, its names are free for others.
async fn settle_and_follow(api: &ApiState, name: &str) {
    settle(api, name).await;
    if api.store.get(&Key::new(STORAGE, "", name)).is_none() {
        settle_waiting(api).await;
    }
    register(api, name).await;
}

/// Registers the versions of a definition, whose name says its group.
async fn register(api: &ApiState, name: &str) {
    if let Some((_, group)) = name.split_once('.') {
        api_services::register(api, group).await;
    }
}

fn is_definitions(resource: &Resource) -> bool {
    !resource.custom && resource.group == GROUP && resource.plural == "customresourcedefinitions"
}

/// Brings one definition to where it should be.
async fn settle(api: &ApiState, name: &str) {
    let _one_at_a_time = api.settling.lock().await;
    let Some(entry) = api.store.get(&Key::new(STORAGE, "", name)) else { return };
    let crd = entry.value();
    if text(&crd, &["metadata", "deletionTimestamp"]).is_empty() {
        accept_names(api, &entry, crd).await;
        return;
    }
    api.registry.define(&crd);
    let waits = crd
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .is_some_and(|list| list.contains(&json!(CLEANUP)));
    if waits {
        clean_up(api, name, &crd).await;
    }
}

/// Definitions that waited for a name may get it now.
async fn settle_waiting(api: &ApiState) {
    let Ok(page) = api.store.list(&ListQuery::all(STORAGE)) else { return };
    for entry in page.items {
        if !crd::is_true(&entry.value(), "NamesAccepted") {
            settle(api, &entry.key().name).await;
        }
    }
}

async fn accept_names(api: &ApiState, entry: &Arc<Entry>, crd: Value) {
    let group = text(&crd, &["spec", "group"]);
    let others: Vec<Value> = match api.store.list(&ListQuery::all(STORAGE)) {
        Ok(page) => page
            .items
            .iter()
            .filter(|other| other.key() != entry.key())
            .map(|other| other.value())
            .filter(|other| text(other, &["spec", "group"]) == group)
            .collect(),
        Err(_) => Vec::new(),
    };
    let now = timestamp(api.clock.now());
    let settled = match naming::status(&crd, &others, &now) {
        None => Some(crd),
        Some(status) => write_status(api, entry, &crd, |new| new["status"] = status.clone()).await,
    };
    if let Some(crd) = settled {
        api.registry.define(&crd);
    }
}

/// Deletes a definition's objects, and the definition if none is left.
async fn clean_up(api: &ApiState, name: &str, crd: &Value) {
    let now = timestamp(api.clock.now());
    let key = Key::new(STORAGE, "", name);
    if let Some(entry) = api.store.get(&key) {
        let why = "CustomResource deletion is in progress";
        write_status(api, &entry, crd, |new| {
            prepare::set_condition(new, "Terminating", "True", "InstanceDeletionInProgress", why, &now);
        })
        .await;
    }
    let served = api.registry.served();
    let resource = served.all().find(|resource| resource.custom && resource.definition == name).cloned();
    let (reason, message) = match resource {
        None => ("NeverEstablished", "resource was never established"),
        Some(resource) => {
            if !delete_all(api, &resource).await {
                return;
            }
            ("InstanceDeletionCompleted", "removed all instances")
        }
    };
    while let Some(entry) = api.store.get(&key) {
        let mut last = entry.value();
        prepare::set_condition(&mut last, "Terminating", "False", reason, message, &now);
        if let Some(finalizers) =
            child(&mut last, "metadata").get_mut("finalizers").and_then(Value::as_array_mut)
        {
            finalizers.retain(|finalizer| *finalizer != json!(CLEANUP));
        }
        let held = last
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty());
        if !held {
            child(&mut last, "metadata").remove("finalizers");
        }
        let operation = operation(api, name);
        let written = match held {
            true => match encode::update(&operation, &entry, &last).await {
                Ok(body) => commit::update(&operation, name, entry.revision(), body).await,
                Err(error) => {
                    tracing::warn!(%error, definition = name, "a definition waits to be cleaned up");
                    return;
                }
            },
            false => commit::delete(&operation, name, entry.revision()).await,
        };
        match written {
            Ok(_) if !held => return api.registry.forget(name),
            Ok(_) => return,
            Err(error @ CommitError::NotStored(_)) => {
                tracing::warn!(%error, definition = name, "a definition waits to be cleaned up");
                return;
            }
            // Someone else changed it meanwhile.
            Err(_) => {}
        }
    }
}

/// Deletes all objects of a resource; says whether none is left.
async fn delete_all(api: &ApiState, resource: &Arc<Resource>) -> bool {
    let storage = resource.storage_key();
    let Ok(page) = api.store.list(&ListQuery::all(&storage)) else { return false };
    let mut all_gone = true;
    for entry in page.items {
        let mut operation = operation(api, &entry.key().name);
        operation.resource = resource.clone();
        operation.namespace = entry.key().namespace.to_string();
        operation.subresource = String::new();
        match delete_quietly(&operation, &entry.key().name, &DeleteOptions::default()).await {
            Ok(Deletion::Pending(_)) => all_gone = false,
            Err(status) if status.reason != "NotFound" => all_gone = false,
            _ => {}
        }
    }
    all_gone
}

/// Changes a definition's status as the server; returns it as stored, or nothing if someone else changed it meanwhile:
/// that write settles it again.
async fn write_status(
    api: &ApiState,
    entry: &Arc<Entry>,
    crd: &Value,
    change: impl Fn(&mut Value),
) -> Option<Value> {
    let operation = operation(api, &entry.key().name);
    let mut new = crd.clone();
    change(&mut new);
    managed::update_as(&operation, Some(crd), &mut new, MANAGER);
    let body = encode::update(&operation, entry, &new).await.ok()?;
    let stored = commit::update(&operation, &operation.name, entry.revision(), body).await.ok()?;
    Some(stored.value())
}

/// A write of a definition's status by the server itself.
fn operation<'a>(api: &'a ApiState, name: &str) -> Operation<'a> {
    let of_server = Operation::of_server(api, api.definitions.clone(), "", name);
    Operation { subresource: "status".to_owned(), ..of_server }
}
