//! The story that the sample lives through in the crash test, and what of its world is compared at the end.

use crate::sample::{Tenant, TenantSpec, Vault, VaultSpec};
use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::Duration;
use windlass_clock::Clock;

/// How long each part of the story may take.
const PART: Duration = Duration::from_secs(30);

/// One telling of the story, in a namespace of its own.
pub struct Story {
    client: Client,
    namespace: String,
    clock: Clock,
}

impl Story {
    /// Prepares the namespace.
    pub async fn begin(client: Client, namespace: &str, clock: Clock) -> Result<Self> {
        let metadata = kube::core::ObjectMeta { name: Some(namespace.to_owned()), ..Default::default() };
        let space = Namespace { metadata, ..Default::default() };
        Api::all(client.clone())
            .create(&PostParams::default(), &space)
            .await
            .context("create the namespace")?;
        Ok(Self { client, namespace: namespace.to_owned(), clock })
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A vault of two shards and its tenant are declared; the vault shrinks; the tenant leaves. Returns the world after
    /// each of the three.
    pub async fn tell(&self) -> Result<Vec<Value>> {
        let vault = Vault::new("v", VaultSpec { shards: 2, region: None });
        let tenant = Tenant::new("t", TenantSpec { vault: "v".into(), quota: 7 });
        self.api().create(&PostParams::default(), &vault).await?;
        self.api().create(&PostParams::default(), &tenant).await?;
        self.until("both are ready", async || Ok(self.settled("v-shard-0,v-shard-1").await?)).await?;
        let mut worlds = vec![self.world().await?];

        let shrink = Patch::Merge(json!({ "spec": { "shards": 1 } }));
        self.api::<Vault>().patch("v", &PatchParams::default(), &shrink).await?;
        self.until("the vault has shrunk", async || Ok(self.settled("v-shard-0").await?)).await?;
        worlds.push(self.world().await?);

        self.api::<Tenant>().delete("t", &DeleteParams::default()).await?;
        let gone = async || Ok(self.api::<Tenant>().get_opt("t").await?.is_none());
        self.until("the tenant is gone", gone).await?;
        worlds.push(self.world().await?);
        Ok(worlds)
    }

    async fn settled(&self, shards: &str) -> Result<bool> {
        let Some(vault) = self.api::<Vault>().get_opt("v").await? else { return Ok(false) };
        let Some(tenant) = self.api::<Tenant>().get_opt("t").await? else { return Ok(false) };
        let Some(access) = self.api::<ConfigMap>().get_opt("t-access").await? else { return Ok(false) };
        let children = self.api::<ConfigMap>().list(&ListParams::default()).await?.items.len();
        let vault_ready = vault.status.as_ref().is_some_and(|status| {
            status.shards.join(",") == shards && ready(&status.conditions, vault.metadata.generation)
        });
        let tenant_ready = tenant
            .status
            .as_ref()
            .is_some_and(|status| ready(&status.conditions, tenant.metadata.generation));
        let told = access.data.is_some_and(|data| data.get("shards").is_some_and(|told| told == shards));
        Ok(vault_ready && tenant_ready && told && children == shards.split(',').count() + 1)
    }

    async fn until(&self, what: &str, done: impl AsyncFn() -> Result<bool>) -> Result<()> {
        let began = self.clock.moment();
        while !done().await? {
            if self.clock.moment() - began > PART {
                bail!("in {}, after {PART:?}: not {what}\n{:#}", self.namespace, self.world().await?);
            }
            self.clock.sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Everything that the sample made or reported, normalised.
    pub async fn world(&self) -> Result<Value> {
        Ok(json!({
            "vaults": self.list::<Vault>().await?,
            "tenants": self.list::<Tenant>().await?,
            "configMaps": self.list::<ConfigMap>().await?,
            "secrets": self.list::<Secret>().await?,
        }))
    }

    async fn list<K>(&self) -> Result<Vec<Value>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Serialize
            + Debug,
    {
        let list = self.api::<K>().list(&ListParams::default()).await?;
        list.items.iter().map(|object| Ok(without_accidents(serde_json::to_value(object)?))).collect()
    }
}

fn ready(conditions: &[Condition], generation: Option<i64>) -> bool {
    conditions.iter().any(|condition| {
        condition.type_ == "Ready"
            && condition.status == "True"
            && condition.observed_generation == generation
    })
}

/// The normalisation: leaves out what two undisturbed runs differ in too, and nothing else. Identities, versions, times,
/// the namespace's name, and the values (but not the lengths) of what was generated.
pub fn without_accidents(mut object: Value) -> Value {
    let secret = object.get("type").is_some() && object.get("data").is_some();
    if secret && let Some(Value::Object(data)) = object.get_mut("data") {
        data.values_mut().for_each(|value| *value = value.as_str().map(str::len).into());
    }
    strip(&mut object);
    object
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for accident in
                ["uid", "resourceVersion", "creationTimestamp", "namespace", "lastTransitionTime", "time"]
            {
                fields.remove(accident);
            }
            // In managedFields, a UID is part of a field's name.
            let names: Vec<String> =
                fields.keys().filter(|name| name.starts_with("k:{\"uid\"")).cloned().collect();
            for name in names {
                if let Some(inside) = fields.remove(&name) {
                    fields.insert("k:{uid}".to_owned(), inside);
                }
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
