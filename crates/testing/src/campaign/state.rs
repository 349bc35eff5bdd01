//! The state of the cluster in comparable form.
//!
//! Removed are identities, versions, generations and times, and nothing else. The data of Secrets and the suffix of generated
//! names become "generated"; what the API allocates for a Service and the addresses of pods become "allocated". Managed
//! fields of updates are left out, those of server-side apply are not. Owners are compared by name, and the test's namespace
//! has the same name in all states.

use super::Ignored;
use super::collection::Collection;
use crate::TestCluster;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Every object of some collections, normalised.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct State {
    #[serde(skip)]
    collections: BTreeSet<Collection>,
    objects: BTreeMap<String, Vec<Value>>,
}

/// Stands for the namespace of the test.
const HERE: &str = "{namespace}";

impl State {
    pub(super) async fn observe(
        cluster: &TestCluster,
        collections: &BTreeSet<Collection>,
        ignored: &Ignored,
    ) -> anyhow::Result<Self> {
        // What has lost its owners would be deleted by the garbage collector, if there were one: it is as good as gone.
        let without_orphans = !cluster.has_garbage_collector();
        let here = cluster.namespace();
        let mut found = BTreeMap::new();
        let mut known = BTreeSet::new();
        for collection in collections {
            let collection = collection.clone().moved(HERE, here);
            let items = list(cluster, &collection).await?;
            // An owner may be in a namespace that nobody wrote to.
            let everywhere =
                if without_orphans { list(cluster, &collection.everywhere()).await? } else { Vec::new() };
            let uids =
                everywhere.iter().filter_map(|item| item["metadata"]["uid"].as_str().map(str::to_owned));
            known.extend(uids);
            found.insert(collection.moved(here, HERE), items);
        }
        // A status may name pods, which only the cluster's controllers write.
        let pods = match cluster.embedded() {
            Some(_) => list_at(cluster, "/api/v1/pods").await?,
            None => list_at(cluster, &format!("/api/v1/namespaces/{here}/pods")).await?,
        };
        let generated = found.values().flatten().chain(&pods).filter_map(generated).collect();
        let names = Names { here, generated };
        let mut objects = BTreeMap::new();
        for (collection, mut items) in found.clone() {
            items.retain(|item| !without_orphans || !is_orphan(item, &known));
            items.iter_mut().for_each(|item| {
                normalise(item, &names);
                ignored(item);
            });
            items.sort_by_cached_key(ToString::to_string);
            // An empty collection equals one that nobody wrote to.
            if !items.is_empty() {
                objects.insert(collection.path(), items);
            }
        }
        Ok(Self { collections: found.into_keys().collect(), objects })
    }

    /// The collections that were read.
    pub(super) fn collections(&self) -> impl Iterator<Item = Collection> {
        self.collections.iter().cloned()
    }

    /// The objects, by the path of their collection.
    pub(super) fn to_json(&self) -> Value {
        json!(self.objects)
    }
}

async fn list(cluster: &TestCluster, collection: &Collection) -> anyhow::Result<Vec<Value>> {
    list_at(cluster, &collection.path()).await
}

async fn list_at(cluster: &TestCluster, path: &str) -> anyhow::Result<Vec<Value>> {
    let request = http::Request::get(path).body(Vec::new())?;
    let mut list: Value = match cluster.client().request(request).await {
        // Its CRD was deleted with its objects.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        answer => answer?,
    };
    let mut items = match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    // Every namespace has this ConfigMap from the controller manager.
    items.retain(|item| item["metadata"]["name"] != "kube-root-ca.crt");
    Ok(items)
}

fn is_orphan(item: &Value, known: &BTreeSet<String>) -> bool {
    let owners = item["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owners: Vec<&str> = owners.filter_map(|owner| owner["uid"].as_str()).collect();
    !owners.is_empty() && owners.iter().all(|owner| !known.contains(*owner))
}

/// Names that differ between lives.
struct Names<'a> {
    /// The namespace of the test.
    here: &'a str,
    /// Generated names, and what they are called instead.
    generated: BTreeMap<String, String>,
}

/// The name of an object if it was generated, and what it is called instead.
fn generated(object: &Value) -> Option<(String, String)> {
    let meta = |field: &str| object["metadata"][field].as_str();
    let (base, name) = (meta("generateName")?, meta("name")?);
    name.starts_with(base).then(|| (name.to_owned(), format!("{base}{{generated}}")))
}

fn normalise(object: &mut Value, names: &Names<'_>) {
    // The generation depends on the way to the state; whether the status observed the last generation does not.
    if let Some(generation) = object.pointer("/metadata/generation").and_then(Value::as_i64) {
        object["metadata"]["generation"] = json!(GENERATION);
        observe(object, generation);
    }
    walk(object, "", names);
    // Secrets in a list have no kind; nothing else has both fields.
    if object.get("type").is_some()
        && let Some(data) = object.get_mut("data").and_then(Value::as_object_mut)
    {
        data.values_mut().for_each(|value| *value = json!("generated"));
        if let Some(authority) = object.pointer_mut(ISSUED_FOR) {
            *authority = json!("generated");
        }
    }
}

/// Of a generated certificate: a fingerprint of its authority's, which is generated as well.
const ISSUED_FOR: &str = "/metadata/annotations/windlass.dev~1issued-for";

/// Stands for an object's generation.
const GENERATION: &str = "{generation}";

/// Replaces this generation by its placeholder wherever it was observed.
fn observe(value: &mut Value, generation: i64) {
    match value {
        Value::Object(fields) => {
            if let Some(observed) =
                fields.get_mut("observedGeneration").filter(|observed| **observed == json!(generation))
            {
                *observed = json!(GENERATION);
            }
            fields.values_mut().for_each(|field| observe(field, generation));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| observe(item, generation)),
        _ => {}
    }
}

/// Fields that the API or a node allocates, first come, first served.
const ALLOCATED: [&str; 8] = [
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "healthCheckNodePort",
    "nodeName",
    "podIP",
    "podIPs",
    "addresses",
];

const OWNER_KEY: &str = "k:{\"uid\":";
const ADDRESS_KEY: &str = "k:{\"ip\":";

fn walk(value: &mut Value, key: &str, names: &Names<'_>) {
    match value {
        Value::Object(fields) => {
            for name in ["uid", "resourceVersion"] {
                fields.remove(name);
            }
            for name in ALLOCATED {
                if let Some(given) = fields.get_mut(name).filter(|given| **given != json!("None")) {
                    *given = json!("{allocated}");
                }
            }
            // A field set names an owner by its uid, and an address by itself.
            for (key, stands) in [(OWNER_KEY, "k:{owner}"), (ADDRESS_KEY, "k:{address}")] {
                if let Some(name) = fields.keys().find(|name| name.starts_with(key)).cloned()
                    && let Some(field) = fields.remove(&name)
                {
                    fields.insert(stands.into(), field);
                }
            }
            fields.iter_mut().for_each(|(name, field)| walk(field, name, names));
        }
        Value::Array(items) => {
            if key == "managedFields" {
                // Entries of server-side apply depend on the owner of a field; entries of updates depend on the way to the
                // state.
                items.retain(|entry| entry["operation"] == "Apply");
            }
            items.iter_mut().for_each(|item| walk(item, key, names));
            // The entries of several writers are in the order in which they came.
            if matches!(key, "managedFields" | "ownerReferences" | "endpoints" | "conditions") {
                items.sort_by_key(ToString::to_string);
            }
        }
        Value::String(text) if text == names.here && names.here != "default" => *text = HERE.to_owned(),
        Value::String(text) if names.generated.contains_key(text) => text.clone_from(&names.generated[text]),
        Value::String(text) if is_time(text) => *text = "{time}".to_owned(),
        Value::String(text) if text.starts_with(TOKEN_VOLUME) => {
            *text = format!("{TOKEN_VOLUME}{{generated}}");
        }
        Value::String(text) => *text = without_uids(text),
        _ => {}
    }
}

/// The prefix of the volume of a pod's token.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// A text in which `{uid}` stands for every UID: names and labels are made of them.
fn without_uids(text: &str) -> String {
    /// `8-4-4-4-12` hexadecimal digits.
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    const LENGTH: usize = 36;
    let is_uid = |part: &[u8]| {
        part.iter().enumerate().all(|(at, byte)| match DASHES.contains(&at) {
            true => *byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
    };
    let (mut rest, mut clean) = (text, String::new());
    while let Some(at) = rest.as_bytes().windows(LENGTH).position(is_uid) {
        clean.push_str(&rest[..at]);
        clean.push_str("{uid}");
        rest = &rest[at + LENGTH..];
    }
    clean + rest
}

/// `2026-01-01T00:00:00Z`, with or without fractions.
fn is_time(text: &str) -> bool {
    text.ends_with('Z') && text.contains('T') && text.parse::<windlass_clock::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Building, Data, config_map, secret};

    fn nothing_ignored() -> Ignored {
        std::sync::Arc::new(|_| ())
    }

    #[test]
    fn uids_are_taken_out_of_names() {
        let uid = "8deef2f0-1d67-4ab8-9340-9742f603a2df";
        assert_eq!(without_uids(&format!("pvc-{uid}/{uid}.")), "pvc-{uid}/{uid}.");
        assert_eq!(without_uids("8deef2f0-1d67-4ab8-9340"), "8deef2f0-1d67-4ab8-9340");
        assert_eq!(without_uids("größe"), "größe");
    }

    #[tokio::test]
    async fn the_generated_names_of_pods_do_not_count_wherever_they_are_named() {
        let mut states = Vec::new();
        for _ in 0..2 {
            let cluster = TestCluster::start();
            cluster
                .eventually::<k8s_openapi::api::core::v1::ServiceAccount>("default")
                .exists()
                .await
                .unwrap();
            let pod: k8s_openapi::api::core::v1::Pod = serde_json::from_value(json!({
                "metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}]},
            }))
            .unwrap();
            let pod = cluster.create(pod).await.unwrap();
            cluster.create(config_map("a").data("pod", &pod.metadata.name.unwrap())).await.unwrap();
            let collections = [Collection::of("POST /api/v1/namespaces/default/configmaps").unwrap()];
            states.push(State::observe(&cluster, &collections.into(), &nothing_ignored()).await.unwrap());
        }
        assert_eq!(states[0], states[1]);
    }

    #[tokio::test]
    async fn two_clusters_with_the_same_objects_are_in_the_same_state() {
        let mut states = Vec::new();
        for value in ["one", "two"] {
            let cluster = TestCluster::api_only();
            let map = cluster.create(config_map("a").data("at", "2026-01-01T00:00:00Z")).await.unwrap();
            cluster.create(secret("s").data("password", value).owned_by(&map)).await.unwrap();
            let orphan = config_map("o").owned_by(&config_map("gone").with(|map| {
                map.metadata.uid = Some("u".into());
            }));
            if value == "two" {
                cluster.create(orphan).await.unwrap();
            }
            let collections = ["configmaps", "secrets"]
                .map(|of| Collection::of(&format!("POST /api/v1/namespaces/default/{of}")).unwrap());
            states.push(State::observe(&cluster, &collections.into(), &nothing_ignored()).await.unwrap());
        }
        assert_eq!(states[0], states[1]);
    }

    #[tokio::test]
    async fn an_orphan_counts_where_somebody_should_have_deleted_it() {
        let mut states = Vec::new();
        for has_orphan in [false, true] {
            // The garbage collector is what such a test is about.
            let cluster = TestCluster::without_controllers();
            let orphan = config_map("o").owned_by(&config_map("gone").with(|map| {
                map.metadata.uid = Some("u".into());
            }));
            if has_orphan {
                cluster.create(orphan).await.unwrap();
            }
            let collections = [Collection::of("POST /api/v1/namespaces/default/configmaps").unwrap()];
            states.push(State::observe(&cluster, &collections.into(), &nothing_ignored()).await.unwrap());
        }
        assert_ne!(states[0], states[1]);
    }
}
