//! Applies and deletes the objects of manifests: server-side apply, and no write where nothing would change.

use anyhow::{Context, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, ValidationDirective,
};
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, ResourceExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_clock::Clock;

/// The field manager.
const MANAGER: &str = "windlass";
/// The longest that a cluster may take to serve a new CRD, or to delete an object.
const PATIENCE: Duration = Duration::from_secs(30);
const EVERY: Duration = Duration::from_millis(10);

/// The outcome of an apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Became {
    Created,
    Changed,
    Same,
}

impl Became {
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Same => "unchanged",
        }
    }
}

/// The objects of a file of manifests.
pub(crate) fn read(text: &str) -> anyhow::Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("it is not YAML")?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The title of an object, as `KIND NAMESPACE/NAME`.
pub(crate) fn title(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => format!("{} {namespace}/{}", text("/kind"), text("/metadata/name")),
        None => format!("{} {}", text("/kind"), text("/metadata/name")),
    }
}

/// An error with what was tried, and a hint if it is forbidden.
pub(crate) fn tried(what: String, error: kube::Error) -> anyhow::Error {
    let refused = matches!(&error, kube::Error::Api(status) if matches!(status.code, 401 | 403));
    let error = anyhow::Error::new(error);
    match refused {
        true => error.context(format!("{what}: you are not allowed to; `windlass doctor` says what you may")),
        false => error.context(what),
    }
}

/// A cluster, and where its kinds are.
pub(crate) struct Objects {
    client: Client,
    kinds: BTreeMap<(String, String), (ApiResource, Scope)>,
}

impl Objects {
    pub(crate) fn of(client: Client) -> Self {
        Self { client, kinds: BTreeMap::new() }
    }

    /// Applies an object. A kind is served when this returns.
    pub(crate) async fn apply(&mut self, object: &Value) -> anyhow::Result<Became> {
        let title = title(object);
        let (api, name) = self.api(object).await?;
        let before =
            api.get_opt(&name).await.map_err(|error| tried(format!("cannot look at {title}"), error))?;
        let mut how = PatchParams::apply(MANAGER).force();
        how.field_validation = Some(ValidationDirective::Strict);
        let after = api.patch(&name, &how, &Patch::Apply(object)).await;
        let after = after.map_err(|error| tried(format!("cannot apply {title}"), error))?;
        if object["kind"] == "CustomResourceDefinition" {
            self.served(&name).await?;
        }
        Ok(match before {
            None => Became::Created,
            Some(before) if before.resource_version() == after.resource_version() => Became::Same,
            Some(_) => Became::Changed,
        })
    }

    /// Deletes an object and waits until it is gone; says whether it was there.
    pub(crate) async fn delete(&mut self, object: &Value) -> anyhow::Result<bool> {
        let title = title(object);
        let Some((api, name)) = self.served_api(object).await? else { return Ok(false) };
        match api.delete(&name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            Err(error) => return Err(tried(format!("cannot delete {title}"), error)),
        }
        let clock = Clock::real();
        let gone = async {
            while api.get_opt(&name).await?.is_some() {
                clock.sleep(EVERY).await;
            }
            Ok::<(), kube::Error>(())
        };
        match clock.timeout(PATIENCE, gone).await {
            Ok(gone) => gone.map_err(|error| tried(format!("cannot look at {title}"), error))?,
            Err(_) => {
                bail!("{title} still exists after {PATIENCE:?}: see its finalizers")
            }
        }
        Ok(true)
    }

    async fn served(&self, definition: &str) -> anyhow::Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let clock = Clock::real();
        let served = async {
            loop {
                let conditions =
                    definitions.get(definition).await?.status.and_then(|status| status.conditions);
                let conditions = conditions.unwrap_or_default();
                if conditions.iter().any(|one| one.type_ == "Established" && one.status == "True") {
                    return Ok::<(), kube::Error>(());
                }
                clock.sleep(EVERY).await;
            }
        };
        let served = clock.timeout(PATIENCE, served).await;
        served.map_err(|_| anyhow::anyhow!("{definition} is not served after {PATIENCE:?}"))??;
        Ok(())
    }

    /// Where an object is, and its name.
    async fn api(&mut self, object: &Value) -> anyhow::Result<(Api<DynamicObject>, String)> {
        let kind = object["kind"].as_str().unwrap_or("?");
        let version = object["apiVersion"].as_str().unwrap_or("?");
        self.served_api(object).await?.with_context(|| format!("the cluster has no kind {kind} of {version}"))
    }

    /// The same, or nothing where the cluster does not serve its kind.
    async fn served_api(&mut self, object: &Value) -> anyhow::Result<Option<(Api<DynamicObject>, String)>> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (Some(version), Some(kind), Some(name)) =
            (text("/apiVersion"), text("/kind"), text("/metadata/name"))
        else {
            bail!("an object without an apiVersion, a kind or a name");
        };
        let key = (version.to_owned(), kind.to_owned());
        if !self.kinds.contains_key(&key) {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let found = pinned_kind(&self.client, &GroupVersionKind::gvk(group, version, kind)).await;
            let (resource, capabilities) = match found {
                Ok(found) => found,
                Err(kube::Error::Discovery(_)) => return Ok(None),
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
                Err(error) => return Err(tried(format!("cannot look for kind {kind} of {}", key.0), error)),
            };
            self.kinds.insert(key.clone(), (resource, capabilities.scope));
        }
        let (resource, scope) = &self.kinds[&key];
        let client = self.client.clone();
        let api = match (scope, text("/metadata/namespace")) {
            (Scope::Cluster, _) => Api::all_with(client, resource),
            (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client, namespace, resource),
            (Scope::Namespaced, None) => Api::default_namespaced_with(client, resource),
        };
        Ok(Some((api, name.to_owned())))
    }
}
