//! The store as its users see it: own writes at once, indexes that follow, and who is told of what.

use super::decoder::{Decoder, Identity, Managers, Raw, Transforms};
use super::scope::Scope;
use super::store::{Origin, Store};
use super::{AnyStore, Index, ObjectVersion};
use crate::cache::overlay::Stale;
use crate::key::Key;
use crate::kind::Kind;
use crate::relation::Relation;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;

fn store_in(scope: Scope) -> Store<ConfigMap> {
    let managers = Managers::default();
    managers.write().insert("us".into());
    let kind = Kind::of::<ConfigMap>();
    stored(Decoder::new(kind, "c".into(), managers, Transforms::<ConfigMap>::default()), scope)
}

fn stored<K: crate::Cached>(decoder: Decoder, scope: Scope) -> Store<K> {
    Store::of(Arc::new(AnyStore::new(decoder, scope)))
}

fn store() -> Store<ConfigMap> {
    store_in(Scope::default())
}

/// Feeds a store of one part as its watch does.
trait Fed {
    fn lists(&self, objects: Vec<Value>, version: u64) -> Result<(), Stale>;
    fn shows(&self, object: Value);
    fn shows_deleted(&self, object: &Value);
}

impl Fed for Store<ConfigMap> {
    fn lists(&self, objects: Vec<Value>, version: u64) -> Result<(), Stale> {
        let items =
            objects.iter().filter_map(|object| self.any.item(0, &Identity::of(object), Raw::Json(object), 0));
        self.any.listed(0, items.collect(), version)
    }

    fn shows(&self, object: Value) {
        let line = json!({"type": "MODIFIED", "object": object}).to_string();
        self.any.shown(0, &Identity::of(&object), Raw::Event(line.as_bytes()));
    }

    fn shows_deleted(&self, object: &Value) {
        self.any.shown_deleted(0, &Identity::of(object));
    }
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
    Origin { controller: "us".into(), reconciled: key("reconcile") }
}

fn version(store: &Store<ConfigMap>, name: &str) -> Option<String> {
    store.get(&key(name))?.metadata.resource_version.clone()
}

#[test]
fn a_read_after_a_write_under_a_delayed_watch_is_never_older() {
    let store = store();
    store.lists(vec![object("a", 3, "x")], 5).unwrap();
    store.wrote(&object("a", 9, "x"), Some(origin())).unwrap();
    for late in 6..9 {
        store.shows(object("a", late, "x"));
        assert_eq!(version(&store, "a").as_deref(), Some("9"), "the watch is at {late}");
    }
    store.shows(object("a", 12, "x"));
    assert_eq!(version(&store, "a").as_deref(), Some("12"));
}

#[test]
fn indexes_follow_writes_and_deletions_before_the_watch_does() {
    let store = store();
    store.any.index_labels();
    store.lists(vec![object("a", 3, "x")], 5).unwrap();
    store.wrote(&object("a", 6, "y"), None).unwrap();
    assert!(store.owned_by("x").is_empty());
    assert_eq!(store.owned_by("y").len(), 1);
    let labelled = |owner: &str| {
        let relation = Relation::labelled([("app", owner)]).resolve(Some("ns"), true);
        store.any.select(&relation).len()
    };
    assert_eq!((labelled("x"), labelled("y")), (0, 1));
    store.wrote_gone(&key("a"), &ObjectVersion { uid: "uid-a".into(), version: 6 }, None);
    assert!(store.owned_by("y").is_empty() && store.is_empty());
    assert_eq!(labelled("y"), 0);
}

#[test]
fn a_change_is_told_once_with_its_origin_and_its_echo_not_at_all() {
    let store = store();
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = told.clone();
    store.listen(Arc::new(move |changed| ear.lock().push((changed.origin.clone(), changed.initial))));
    store.lists(vec![object("a", 3, "x")], 5).unwrap();
    store.wrote(&object("a", 9, "x"), Some(origin())).unwrap();
    store.shows(object("a", 9, "x"));
    store.shows(object("a", 10, "x"));
    assert_eq!(*told.lock(), [(None, true), (Some(origin()), false), (None, false)]);
}

#[test]
fn of_managed_fields_only_our_own_are_kept_however_they_come() {
    let (listed, shown) = (store(), store());
    listed.lists(vec![object("a", 3, "x")], 5).unwrap();
    shown.shows(object("a", 3, "x"));
    let kept = listed.get(&key("a")).unwrap();
    let entries = kept.metadata.managed_fields.clone().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].manager.as_deref(), Some("us"));
    assert_eq!(entries[0].operation.as_deref(), Some("Apply"));
    assert_eq!(*kept, *shown.get(&key("a")).unwrap());
    let mut foreign = object("b", 6, "x");
    foreign["metadata"]["managedFields"] = json!([{"manager": "them", "fieldsV1": {"f:data": {}}}]);
    shown.shows(foreign);
    assert_eq!(shown.get(&key("b")).unwrap().metadata.managed_fields, None);
}

#[test]
fn an_object_that_cannot_be_read_leaves_the_others_alone() {
    let store = store();
    let mut broken = object("b", 4, "x");
    broken["data"] = json!("not a map");
    store.lists(vec![object("a", 3, "x"), broken, json!({}), json!(null)], 5).unwrap();
    assert_eq!(store.len(), 1);
    assert_eq!(store.stats().undecodable, 3);
    store.shows(json!({"metadata": {"name": 7}}));
    store.shows_deleted(&json!([]));
    assert_eq!(store.len(), 1);
}

#[test]
fn a_write_outside_the_watched_namespace_stays_out() {
    let store = store_in(Scope::default().within("other"));
    store.wrote(&object("a", 9, "x"), None).unwrap();
    assert!(store.is_empty(), "no watch would ever take it out again");
}

#[test]
fn an_object_that_cannot_be_read_any_more_is_left_out_named_and_let_back_in() {
    let store = store();
    store.lists(vec![object("a", 3, "x")], 5).unwrap();
    let mut broken = object("a", 6, "x");
    broken["data"] = json!(["not a map"]);
    store.shows(broken.clone());
    assert!(store.is_empty(), "its old state is not the truth");
    assert_eq!(store.any.progress(0), 6, "it is not asked for again");
    let stats = store.stats();
    assert_eq!((stats.undecodable, stats.objects, stats.bytes), (1, 0, 0));
    assert!(stats.unreadable["ns/a"].contains("does not fit"), "{stats:?}");
    assert!(store.wrote(&broken, None).is_ok(), "older than the watch");
    broken["metadata"]["resourceVersion"] = "7".into();
    assert!(store.wrote(&broken, None).is_err());
    store.shows(object("a", 8, "x"));
    let stats = store.stats();
    assert_eq!((stats.objects, stats.unreadable.len()), (1, 0));
    assert!(stats.bytes > 1000, "{}", stats.bytes);
    store.shows_deleted(&object("a", 9, "x"));
    assert_eq!(store.stats().bytes, 0);
}

#[test]
fn an_object_that_a_write_takes_out_of_the_scope_leaves_at_once_and_stays_out() {
    let store = store_in(Scope::default().labelled("app=x").unwrap());
    store.lists(vec![object("a", 3, "x")], 5).unwrap();
    store.wrote(&object("a", 9, "y"), None).unwrap();
    assert!(store.is_empty());
    store.shows(object("a", 7, "x"));
    assert!(store.is_empty(), "an event from before the write");
    store.shows_deleted(&object("a", 9, "y"));
    store.shows(object("a", 11, "x"));
    assert_eq!(version(&store, "a").as_deref(), Some("11"));
    store.wrote(&object("b", 12, "y"), None).unwrap();
    assert_eq!(store.len(), 1);
}

#[test]
fn an_index_of_the_users_follows_like_the_others() {
    const BY_OWNER_NAME: Index<ConfigMap> = Index::new("owner", |map| {
        map.metadata.owner_references.iter().flatten().map(|owner| owner.name.clone()).collect()
    });
    const PANICS: Index<ConfigMap> = Index::new("panics", |_| panic!("on purpose"));
    let store = store();
    store.lists(vec![object("a", 3, "x"), object("b", 4, "x")], 5).unwrap();
    let names = |term: &str| -> Vec<String> {
        store.find(BY_OWNER_NAME, term).iter().map(|map| map.metadata.name.clone().unwrap()).collect()
    };
    assert_eq!(names("x"), ["a", "b"]);
    store.wrote(&object("a", 6, "y"), None).unwrap();
    assert_eq!((names("x"), names("y")), (vec!["b".to_owned()], vec!["a".to_owned()]));
    let select = |namespace: &str, term: &str| {
        let relation = Relation::indexed(BY_OWNER_NAME, term).in_namespace(namespace).resolve(None, true);
        store.any.select(&relation).len()
    };
    assert_eq!((select("ns", "y"), select("other", "y")), (1, 0));
    assert!(store.find(PANICS, "x").is_empty());
    store.shows_deleted(&object("b", 7, "x"));
    assert!(names("x").is_empty());
}

#[test]
fn a_listener_is_told_no_more_than_it_wants_to_hear() {
    let store = store();
    let told = Arc::new(Mutex::new(0));
    let ear = told.clone();
    let listening = store.listen_while(Arc::new(move |_| *ear.lock() += 1));
    store.shows(object("a", 3, "x"));
    drop(listening);
    store.shows(object("a", 4, "x"));
    assert_eq!(*told.lock(), 1);
}

#[test]
fn what_is_held_is_not_copied_by_reads_nor_read_again_by_lists() {
    let store = store();
    store.lists(vec![object("a", 3, "x")], 5).unwrap();
    let before = store.get(&key("a")).unwrap();
    assert!(Arc::ptr_eq(&before, &store.list()[0]));
    store.lists(vec![object("a", 3, "x")], 6).unwrap();
    assert!(Arc::ptr_eq(&before, &store.get(&key("a")).unwrap()));
    assert_eq!(Arc::strong_count(&before), 2, "the cache's and ours");
}

#[test]
fn managed_fields_are_held_as_text_and_given_as_they_were() {
    let store = store();
    store.lists(vec![object("a", 3, "x")], 5).unwrap();
    let held = store.any.get(&key("a")).unwrap();
    let fields = &held.meta().managed_fields.as_ref().unwrap()[0].fields_v1.as_ref().unwrap().0;
    assert_eq!(fields.as_str(), Some(r#"{"f:data":{}}"#));
    let json = held.to_json();
    assert_eq!(json.pointer("/metadata/managedFields/0/fieldsV1"), Some(&json!({"f:data": {}})));
    assert_eq!(json["kind"], "ConfigMap");
}

#[test]
fn of_metadata_alone_nothing_else_is_held() {
    let transforms = Transforms::<PartialObjectMeta<ConfigMap>>::default();
    let decoder = Decoder::new(Kind::of::<ConfigMap>(), "c".into(), Managers::default(), transforms);
    let store: Store<PartialObjectMeta<ConfigMap>> = stored(decoder, Scope::default());
    let mut full = object("a", 3, "x");
    full["data"] = json!({"large": "x".repeat(10_000)});
    store.wrote(&full, None).unwrap();
    assert!(store.stats().bytes < 5_000, "{:?}", store.stats());
    assert_eq!(store.owned_by("x").len(), 1);
    let json = store.any.get(&key("a")).unwrap().to_json();
    assert_eq!((json["kind"].as_str(), json.get("data")), (Some("ConfigMap"), None));
}

#[test]
fn a_crowd_is_held_folded_and_read_as_it_was() {
    const MANY: u64 = 1000;
    let crowd =
        |version: u64| (0..MANY).map(move |number| object(&format!("n{number:04}"), version + number, "x"));
    let (store, few) = (store(), store());
    let items = crowd(10).enumerate();
    let items = items
        .filter_map(|(before, object)| store.any.item(0, &Identity::of(&object), Raw::Json(&object), before));
    store.any.listed(0, items.collect(), 10 + MANY).unwrap();
    few.lists(crowd(10).collect(), 10 + MANY).unwrap();
    assert_eq!(store.len(), few.len());
    assert!(store.stats().bytes * 2 < few.stats().bytes, "{:?}", store.stats());
    for name in ["n0000", "n0500", "n0999"] {
        assert_eq!(store.get(&key(name)), few.get(&key(name)));
        let json = |store: &Store<ConfigMap>| store.any.get(&key(name)).unwrap().to_json();
        assert_eq!(json(&store), json(&few), "{name}");
    }
    let read = store.get(&key("n0500")).unwrap();
    assert!(Arc::ptr_eq(&read, &store.get(&key("n0500")).unwrap()), "what was just read is not read again");
    store.shows(object("n0500", 5000, "y"));
    assert_eq!(store.owned_by("y").len(), 1);
    assert_eq!(version(&store, "n0500").as_deref(), Some("5000"));
    // Read by the crowd, they are whole from then on.
    let all = store.owned_by("x");
    assert_eq!(all.len() as u64, MANY - 1);
    assert!(all.iter().zip(store.owned_by("x")).all(|(one, again)| Arc::ptr_eq(one, &again)));
    assert!(store.stats().bytes * 2 > few.stats().bytes);
    store.lists(Vec::new(), 6000).unwrap();
    assert!(store.is_empty() && store.owned_by("x").is_empty());
}

#[test]
fn metadata_alone_and_objects_without_a_type_are_folded_too() {
    fn held<K: crate::Cached>(object: &Value, others: usize) -> Value {
        let managers = Managers::default();
        managers.write().insert("us".into());
        let decoder = Decoder::new(Kind::of::<ConfigMap>(), "c".into(), managers, Transforms::<K>::default());
        let store = stored::<K>(decoder, Scope::default());
        let item = store.any.item(0, &Identity::of(object), Raw::Json(object), others).unwrap();
        store.any.listed(0, vec![item], 5).unwrap();
        // What was read last is there without being read again: push it out.
        for number in 0..2000 {
            let mut another = object.clone();
            another["metadata"]["name"] = format!("another-{number}").into();
            store.any.item(0, &Identity::of(&another), Raw::Json(&another), others);
        }
        store.any.get(&key("a")).unwrap().to_json()
    }
    let mut object = object("a", 3, "x");
    object["data"] = json!({"text": "\"quoted\" <and> \u{e9}\n", "more": "x".repeat(500)});
    assert_eq!(held::<ConfigMap>(&object, 9999), held::<ConfigMap>(&object, 0));
    type Partial = PartialObjectMeta<ConfigMap>;
    assert_eq!(held::<Partial>(&object, 9999), held::<Partial>(&object, 0));
    // In lists of built-in kinds its kind is said only once.
    object.as_object_mut().unwrap().remove("kind");
    object.as_object_mut().unwrap().remove("apiVersion");
    type Untyped = kube::core::DynamicObject;
    assert_eq!(held::<Untyped>(&object, 9999), held::<Untyped>(&object, 0));
    assert_eq!(held::<Untyped>(&object, 9999)["kind"], "ConfigMap");
}

#[test]
fn what_is_changed_before_it_is_held_is_held_as_it_was_changed() {
    let transforms = Transforms::<ConfigMap>::default();
    transforms.write().push(Arc::new(|map: &mut ConfigMap| map.immutable = Some(true)));
    let decoder = Decoder::new(Kind::of::<ConfigMap>(), "c".into(), Managers::default(), transforms);
    let store = stored::<ConfigMap>(decoder, Scope::default());
    let object = object("a", 3, "x");
    let item = store.any.item(0, &Identity::of(&object), Raw::Json(&object), 1_000_000).unwrap();
    store.any.listed(0, vec![item], 5).unwrap();
    assert_eq!(store.get(&key("a")).unwrap().immutable, Some(true));
}
