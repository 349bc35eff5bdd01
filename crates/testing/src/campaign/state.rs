//! The state of the world in comparable form. What is taken out, and nothing else: identities, versions and times; what
//! Secrets hold becomes "generated", and so does the end of generated names; what the API gives a Service, and the addresses of
//! pods, "allocated"; owners are named instead of numbered; the test's namespace is named alike.

use super::place::Place;
use crate::TestCluster;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Every object of some collections, normalised.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct State {
    #[serde(skip)]
    places: BTreeSet<Place>,
    objects: BTreeMap<String, Vec<Value>>,
}

/// Stands for the namespace of the test.
const HERE: &str = "{namespace}";

impl State {
    pub(super) async fn observe(
        cluster: &TestCluster,
        places: &BTreeSet<Place>,
        without_orphans: bool,
    ) -> anyhow::Result<Self> {
        let here = cluster.namespace();
        let mut found = BTreeMap::new();
        let mut known = BTreeSet::new();
        for place in places {
            let place = place.clone().moved(HERE, here);
            let items = list(cluster, &place).await?;
            // An owner may be where nobody wrote.
            let everywhere =
                if without_orphans { list(cluster, &place.everywhere()).await? } else { Vec::new() };
            let uids =
                everywhere.iter().filter_map(|item| item["metadata"]["uid"].as_str().map(str::to_owned));
            known.extend(uids);
            found.insert(place.moved(here, HERE), items);
        }
        let names = Names { here, generated: found.values().flatten().filter_map(generated).collect() };
        let mut objects = BTreeMap::new();
        for (place, mut items) in found.clone() {
            items.retain(|item| !without_orphans || !is_orphan(item, &known));
            items.iter_mut().for_each(|item| normalise(item, &names));
            items.sort_by_cached_key(ToString::to_string);
            // A collection that nothing is left in is as good as one that nobody wrote to.
            if !items.is_empty() {
                objects.insert(place.path(), items);
            }
        }
        Ok(Self { places: found.into_keys().collect(), objects })
    }

    /// Where it was looked for.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.places.iter().cloned()
    }

    /// The objects, by the path of their collection.
    pub(super) fn to_json(&self) -> Value {
        json!(self.objects)
    }
}

async fn list(cluster: &TestCluster, place: &Place) -> anyhow::Result<Vec<Value>> {
    let request = http::Request::get(place.path()).body(Vec::new())?;
    let mut list: Value = match cluster.client().request(request).await {
        // Its kind went away with its objects.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        answer => answer?,
    };
    let mut items = match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    // What a controller manager puts into every namespace is nobody's here.
    items.retain(|item| item["metadata"]["name"] != "kube-root-ca.crt");
    Ok(items)
}

fn is_orphan(item: &Value, known: &BTreeSet<String>) -> bool {
    let owners = item["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owners: Vec<&str> = owners.filter_map(|owner| owner["uid"].as_str()).collect();
    !owners.is_empty() && owners.iter().all(|owner| !known.contains(*owner))
}

/// What is called differently in each life.
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
    walk(object, "", names);
    // Secrets in a list do not say that they are; nothing else has both.
    if object.get("type").is_some()
        && let Some(data) = object.get_mut("data").and_then(Value::as_object_mut)
    {
        data.values_mut().for_each(|value| *value = json!("generated"));
    }
}

/// What the API or a node gives, first come, first served.
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
            // A field set names an owner by its uid.
            if let Some(owner) = fields.keys().find(|name| name.starts_with(OWNER_KEY)).cloned()
                && let Some(field) = fields.remove(&owner)
            {
                fields.insert("k:{owner}".into(), field);
            }
            fields.iter_mut().for_each(|(name, field)| walk(field, name, names));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| walk(item, key, names));
            if matches!(key, "managedFields" | "ownerReferences" | "endpoints") {
                items.sort_by_key(ToString::to_string);
            }
        }
        Value::String(text) if text == names.here && names.here != "default" => *text = HERE.to_owned(),
        Value::String(text) if names.generated.contains_key(text) => text.clone_from(&names.generated[text]),
        Value::String(text) if is_time(text) => *text = "{time}".to_owned(),
        _ => {}
    }
}

/// `2026-01-01T00:00:00Z`, with or without fractions.
fn is_time(text: &str) -> bool {
    text.ends_with('Z') && text.contains('T') && text.parse::<windlass_clock::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Building, Data, config_map, secret};

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
            let places = ["configmaps", "secrets"]
                .map(|of| Place::of(&format!("POST /api/v1/namespaces/default/{of}")).unwrap());
            states.push(State::observe(&cluster, &places.into(), true).await.unwrap());
            let whole = State::observe(&cluster, &states[0].places().collect(), false).await.unwrap();
            assert_eq!(whole == states[0], value == "one", "the orphan counts unless it is to be left out");
        }
        assert_eq!(states[0], states[1]);
    }
}
