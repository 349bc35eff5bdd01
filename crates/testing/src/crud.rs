//! Reading and writing objects of any kind, in the namespace of the test or outside namespaces, in a line each.

use crate::cluster::TestCluster;
use anyhow::Context;
use k8s_openapi::api::core::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ObjectList, Request};
use serde::Serialize;
use serde_json::{Value, json};
use windlass::{Kind, Object};

impl TestCluster {
    /// Creates an object, in the namespace that it names or else in the test's.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// let made = cluster.create(config_map("a")).await?;
    /// assert_eq!(made.metadata.namespace.as_deref(), Some("default"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the API refuses.
    pub async fn create<K: Object>(&self, object: K) -> anyhow::Result<K> {
        let request = self.requests::<K>(object.meta().namespace.as_deref());
        let body = serde_json::to_vec(&whole(&object)?)?;
        self.send(request.create(&PostParams::default(), body)?, "creating", "").await
    }

    /// The object of that name.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// cluster.create(config_map("a").data("k", "v")).await?;
    /// assert_eq!(cluster.get::<ConfigMap>("a").await?.data.unwrap()["k"], "v");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When there is none.
    pub async fn get<K: Object>(&self, name: &str) -> anyhow::Result<K> {
        self.find(name).await?.with_context(|| format!("there is no {} {name}", Kind::of::<K>()))
    }

    /// The object of that name, if there is one.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// assert!(cluster.find::<ConfigMap>("a").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the API does not answer.
    pub async fn find<K: Object>(&self, name: &str) -> anyhow::Result<Option<K>> {
        let request = self.requests::<K>(None).get(name, &Default::default())?;
        match self.client().request(request).await {
            Ok(found) => Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).with_context(|| format!("looking for {} {name}", Kind::of::<K>())),
        }
    }

    /// All of a kind.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// cluster.create(config_map("a")).await?;
    /// assert_eq!(cluster.list::<ConfigMap>().await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the API does not answer.
    pub async fn list<K: Object>(&self) -> anyhow::Result<Vec<K>> {
        let request = self.requests::<K>(None).list(&ListParams::default())?;
        let list: ObjectList<K> = self.client().request(request).await?;
        Ok(list.items)
    }

    /// Changes an object by a merge patch: fields that are named get these values, `null` removes.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// cluster.create(config_map("a").data("k", "v")).await?;
    /// let changed = cluster.patch::<ConfigMap>("a", serde_json::json!({"data": {"k": null, "l": "w"}})).await?;
    /// assert_eq!(changed.data.unwrap().into_iter().collect::<Vec<_>>(), [("l".to_owned(), "w".to_owned())]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the API refuses.
    pub async fn patch<K: Object>(&self, name: &str, patch: Value) -> anyhow::Result<K> {
        let request = self.requests::<K>(None).patch(name, &PatchParams::default(), &Patch::Merge(patch))?;
        self.send(request, "changing", name).await
    }

    /// Changes the status of an object, as the controller of its kind would.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// cluster.create(deployment("web", "nginx")).await?;
    /// let status = serde_json::json!({"replicas": 1, "readyReplicas": 1});
    /// let ready = cluster.patch_status::<Deployment>("web", status).await?;
    /// assert_eq!(ready.status.unwrap().ready_replicas, Some(1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the API refuses.
    pub async fn patch_status<K: Object>(&self, name: &str, status: impl Serialize) -> anyhow::Result<K> {
        let patch = Patch::Merge(json!({ "status": status }));
        let request =
            self.requests::<K>(None).patch_subresource("status", name, &PatchParams::default(), &patch)?;
        self.send(request, "changing the status of", name).await
    }

    /// Applies an object as this field manager, by force.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// let applied = cluster.apply("rival", config_map("a").data("k", "theirs")).await?;
    /// assert_eq!(applied.metadata.managed_fields.unwrap()[0].manager.as_deref(), Some("rival"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the API refuses.
    pub async fn apply<K: Object>(&self, manager: &str, object: K) -> anyhow::Result<K> {
        let name = object.meta().name.clone().context("an object to apply has a name")?;
        let params = PatchParams::apply(manager).force();
        let request = self.requests::<K>(object.meta().namespace.as_deref());
        let request = request.patch(&name, &params, &Patch::Apply(whole(&object)?))?;
        self.send(request, "applying", &name).await
    }

    /// Asks for an object to be deleted. It may stay for its finalizers.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// cluster.create(config_map("a")).await?;
    /// cluster.delete::<ConfigMap>("a").await?;
    /// cluster.eventually::<ConfigMap>("a").is_deleted().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When there is none.
    pub async fn delete<K: Object>(&self, name: &str) -> anyhow::Result<()> {
        let request = self.requests::<K>(None).delete(name, &DeleteParams::default())?;
        let _: Value = self.send(request, "deleting", name).await?;
        Ok(())
    }

    /// The events about an object, as `Reason: message`, in the order of their names.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// assert!(cluster.events::<ConfigMap>("a").await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the API does not answer.
    pub async fn events<K: Object>(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let kind = Kind::of::<K>();
        let about = self.list::<Event>().await?.into_iter().filter(|event| {
            let about = &event.involved_object;
            about.kind.as_deref() == Some(&kind.kind) && about.name.as_deref() == Some(name)
        });
        let events = about.map(|event| {
            let (reason, message) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
            format!("{reason}: {message}")
        });
        Ok(events.collect())
    }

    fn requests<K: Object>(&self, namespace: Option<&str>) -> Request {
        let kind = Kind::of::<K>();
        Request::new(kind.collection_path(Some(namespace.unwrap_or(self.namespace()))))
    }

    async fn send<T: serde::de::DeserializeOwned>(
        &self,
        request: http::Request<Vec<u8>>,
        doing: &str,
        name: &str,
    ) -> anyhow::Result<T> {
        let path = request.uri().path().to_owned();
        self.client().request(request).await.with_context(|| format!("{doing} {name} at {path}"))
    }
}

/// An object with the names of its kind, which types keep to themselves.
fn whole<K: Object>(object: &K) -> anyhow::Result<Value> {
    let kind = Kind::of::<K>();
    let mut whole = serde_json::to_value(object)?;
    whole["apiVersion"] = kind.api_version().into();
    whole["kind"] = kind.kind.into();
    Ok(whole)
}
