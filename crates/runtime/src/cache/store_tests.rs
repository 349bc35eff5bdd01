//! The store as its users see it: own writes at once, indexes that follow, and who is told of what.

use super::store::{Managers, Origin, Store};
use super::{AnyStore, Stamp};
use crate::key::Key;
use crate::relation::Relation;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;

fn store() -> Store<ConfigMap> {
    let managers = Managers::default();
    managers.write().insert("us".into());
    Store::new("c".into(), None, managers)
}

fn key(name: &str) -> Key {
    Key::new("c".into(), Some("ns"), name)
}

fn object(name: &str, version: u64, owner: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
            "labels": {"app": owner},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": owner, "uid": owner}],
            "managedFields": [
                {"manager": "us", "operation": "Apply", "fieldsV1": {"f:data": {}}},
                {"manager": "them", "operation": "Update", "fieldsV1": {"f:data": {}}},
            ],
        },
    })
}

fn origin() -> Origin {
    Origin { controller: "us".into(), turn: key("turn") }
}

fn version(store: &Store<ConfigMap>, name: &str) -> Option<String> {
    store.get(&key(name))?.metadata.resource_version.clone()
}

#[test]
fn a_read_after_a_write_under_a_delayed_watch_is_never_older() {
    let store = store();
    store.listed(vec![object("a", 3, "x")], 5).unwrap();
    store.wrote(object("a", 9, "x"), Some(origin())).unwrap();
    for late in 6..9 {
        store.shown(object("a", late, "x"));
        assert_eq!(version(&store, "a").as_deref(), Some("9"), "the watch is at {late}");
    }
    store.shown(object("a", 12, "x"));
    assert_eq!(version(&store, "a").as_deref(), Some("12"));
}

#[test]
fn indexes_follow_writes_and_deletions_before_the_watch_does() {
    let store = store();
    store.index_labels();
    store.listed(vec![object("a", 3, "x")], 5).unwrap();
    store.wrote(object("a", 6, "y"), None).unwrap();
    assert!(store.owned_by("x").is_empty());
    assert_eq!(store.owned_by("y").len(), 1);
    let labelled = |owner: &str| {
        let relation = Relation::labelled([("app", owner)]).resolve(Some("ns"), true);
        AnyStore::select(&store, &relation).len()
    };
    assert_eq!((labelled("x"), labelled("y")), (0, 1));
    store.wrote_gone(&key("a"), &Stamp { uid: "uid-a".into(), version: 6 }, None);
    assert!(store.owned_by("y").is_empty() && store.is_empty());
    assert_eq!(labelled("y"), 0);
}

#[test]
fn a_change_is_told_once_with_its_origin_and_its_echo_not_at_all() {
    let store = store();
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = told.clone();
    store.listen(Arc::new(move |changed| ear.lock().push((changed.origin.clone(), changed.initial))));
    store.listed(vec![object("a", 3, "x")], 5).unwrap();
    store.wrote(object("a", 9, "x"), Some(origin())).unwrap();
    store.shown(object("a", 9, "x"));
    store.shown(object("a", 10, "x"));
    assert_eq!(*told.lock(), [(None, true), (Some(origin()), false), (None, false)]);
}

#[test]
fn of_managed_fields_only_our_own_are_kept() {
    let store = store();
    store.listed(vec![object("a", 3, "x")], 5).unwrap();
    let kept = store.get(&key("a")).unwrap().metadata.managed_fields.clone().unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].manager.as_deref(), Some("us"));
}

#[test]
fn an_object_that_cannot_be_read_leaves_the_others_alone() {
    let store = store();
    let mut broken = object("b", 4, "x");
    broken["data"] = json!("not a map");
    store.listed(vec![object("a", 3, "x"), broken, json!({}), json!(null)], 5).unwrap();
    assert_eq!(store.len(), 1);
    store.shown(json!({"metadata": {"name": 7}}));
    store.shown_deleted(&json!([]));
    assert_eq!(store.len(), 1);
}

#[test]
fn a_write_outside_the_watched_namespace_stays_out() {
    let store: Store<ConfigMap> = Store::new("c".into(), Some("other".into()), Managers::default());
    store.wrote(object("a", 9, "x"), None).unwrap();
    assert!(store.is_empty(), "no watch would ever take it out again");
}
