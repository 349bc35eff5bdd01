//! The state of the sample's world in comparable form. What is taken out, and nothing else: identities, versions and times;
//! generated secrets become "generated"; owners are named instead of numbered; orphans as [`Orphans`] says.

use crate::sample::{Tenant, Vault};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Resource;
use kube::api::{Api, ListParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Every object of the sample in one namespace, normalised.
#[derive(Debug, Clone, PartialEq)]
pub struct State(pub Value);

impl State {
    /// Looks at the world.
    ///
    /// # Errors
    /// When a list fails.
    pub async fn observe(client: &kube::Client, namespace: &str, orphans: Orphans) -> anyhow::Result<Self> {
        let (vaults, tenants) =
            (list::<Vault>(client, namespace).await?, list::<Tenant>(client, namespace).await?);
        let owners: Vec<Value> =
            vaults.iter().chain(&tenants).map(|owner| owner["metadata"]["uid"].clone()).collect();
        let mut state = json!({
            "configmaps": orphans.judge(list::<ConfigMap>(client, namespace).await?, &owners),
            "secrets": orphans.judge(list::<Secret>(client, namespace).await?, &owners),
            "vaults": vaults,
            "tenants": tenants,
        });
        for items in state.as_object_mut().into_iter().flat_map(|kinds| kinds.values_mut()) {
            items.as_array_mut().into_iter().flatten().for_each(normalise);
        }
        Ok(Self(state))
    }
}

/// What becomes of objects whose owners are all gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
    /// They are part of the state: an operator must leave none.
    Count,
    /// They are left out. An operator that was shown the past may make one for a parent that it cannot know to be gone; a
    /// garbage collector, which no ground of these tests has, removes it.
    AreCollected,
}

impl Orphans {
    fn judge(self, items: Vec<Value>, owners: &[Value]) -> Vec<Value> {
        let kept = |item: &Value| match item["metadata"]["ownerReferences"].as_array() {
            Some(references) => references.iter().any(|reference| owners.contains(&reference["uid"])),
            None => true,
        };
        items.into_iter().filter(|item| self == Self::Count || kept(item)).collect()
    }
}

async fn list<K>(client: &kube::Client, namespace: &str) -> anyhow::Result<Vec<Value>>
where
    K: Resource<Scope = kube::core::NamespaceResourceScope>
        + DeserializeOwned
        + Serialize
        + Clone
        + std::fmt::Debug,
    K::DynamicType: Default,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let mut items = Vec::new();
    for item in api.list(&ListParams::default()).await?.items {
        let item = serde_json::to_value(item)?;
        // What a controller manager puts into every namespace is not the sample's.
        if item["metadata"]["name"] != "kube-root-ca.crt" {
            items.push(item);
        }
    }
    Ok(items)
}

fn normalise(object: &mut Value) {
    walk(object, "");
    let secret = object.get("type").is_some();
    if secret && let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
        data.values_mut().for_each(|value| *value = json!("generated"));
    }
}

const OWNER_KEY: &str = "k:{\"uid\":";

fn walk(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => {
            for name in
                ["uid", "resourceVersion", "creationTimestamp", "lastTransitionTime", "time", "namespace"]
            {
                fields.remove(name);
            }
            // A field set names an owner by its uid.
            if let Some(owner) = fields.keys().find(|name| name.starts_with(OWNER_KEY)).cloned()
                && let Some(field) = fields.remove(&owner)
            {
                fields.insert("k:{owner}".into(), field);
            }
            fields.iter_mut().for_each(|(name, field)| walk(field, name));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| walk(item, key));
            if key == "managedFields" || key == "ownerReferences" {
                items.sort_by_key(ToString::to_string);
            }
        }
        _ => {}
    }
}
