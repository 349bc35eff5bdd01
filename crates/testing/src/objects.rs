//! Objects for tests, in a line each.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use windlass::{Kind, Object};

/// An object of any kind with this name and nothing else.
///
/// ```
/// use k8s_openapi::api::core::v1::ServiceAccount;
/// assert_eq!(windlass_testing::named::<ServiceAccount>("a").metadata.name.as_deref(), Some("a"));
/// ```
pub fn named<K: Object + Default>(name: impl Into<String>) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.into());
    object
}

/// An object of any kind with this name and these fields, such as a custom resource with its spec.
///
/// ```
/// use k8s_openapi::api::batch::v1::CronJob;
/// let every_hour = windlass_testing::object::<CronJob>("a", serde_json::json!({
///     "spec": {"schedule": "0 * * * *", "jobTemplate": {}},
/// }));
/// assert_eq!(every_hour.spec.schedule, "0 * * * *");
/// ```
///
/// # Panics
/// When the fields do not fit the type: a mistake in the test.
pub fn object<K: Object>(name: impl Into<String>, fields: Value) -> K {
    let mut value = fields;
    value["apiVersion"] = Kind::of::<K>().api_version().into();
    value["kind"] = Kind::of::<K>().kind.into();
    value["metadata"]["name"] = name.into().into();
    read(value)
}

/// A ConfigMap; [`Data::data`] fills it.
///
/// ```
/// use windlass_testing::{Data, config_map};
/// assert_eq!(config_map("a").data("k", "v").data.unwrap()["k"], "v");
/// ```
pub fn config_map(name: impl Into<String>) -> ConfigMap {
    named(name)
}

/// A Secret; [`Data::data`] fills it.
///
/// ```
/// use windlass_testing::{Data, secret};
/// assert_eq!(secret("a").data("k", "v").string_data.unwrap()["k"], "v");
/// ```
pub fn secret(name: impl Into<String>) -> Secret {
    named(name)
}

/// A Pod with one container, called `app`, of this image.
///
/// ```
/// let pod = windlass_testing::pod("p", "nginx");
/// assert_eq!(pod.spec.unwrap().containers[0].image.as_deref(), Some("nginx"));
/// ```
pub fn pod(name: impl Into<String>, image: &str) -> Pod {
    object(name, json!({"spec": {"containers": [{"name": "app", "image": image}]}}))
}

/// A Deployment of pods with one container, called `app`, of this image, which carry the label `app` with its name.
///
/// ```
/// use windlass_testing::{Building, deployment};
/// assert_eq!(deployment("web", "nginx").set("spec.replicas", 3).spec.unwrap().replicas, Some(3));
/// ```
pub fn deployment(name: impl Into<String>, image: &str) -> Deployment {
    let name = name.into();
    let labels = json!({ "app": name });
    let spec = json!({
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": image}]},
        },
    });
    object(name, json!({ "spec": spec }))
}

/// Things that are filled with text by key.
pub trait Data: Sized {
    /// With this value under this key.
    #[must_use]
    fn data(self, key: &str, value: &str) -> Self;
}

impl Data for ConfigMap {
    fn data(mut self, key: &str, value: &str) -> Self {
        self.data.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        self
    }
}

impl Data for Secret {
    fn data(mut self, key: &str, value: &str) -> Self {
        self.string_data.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        self
    }
}

/// What can be said of objects of every kind, one thing after the other.
///
/// ```
/// use windlass_testing::{Building, Data, config_map};
///
/// let map = config_map("a").data("k", "v").labelled("app", "shop").set("immutable", true);
/// assert_eq!(map.immutable, Some(true));
/// assert_eq!(map.metadata.labels.unwrap()["app"], "shop");
/// ```
pub trait Building: Object {
    /// In this namespace.
    #[must_use]
    fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.meta_mut().namespace = Some(namespace.into());
        self
    }

    /// With this label.
    #[must_use]
    fn labelled(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.meta_mut().labels.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// With this annotation.
    #[must_use]
    fn annotated(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.meta_mut().annotations.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Owned by that one, as its controller.
    #[must_use]
    fn owned_by<O: Object>(mut self, owner: &O) -> Self {
        let kind = Kind::of::<O>();
        self.meta_mut().owner_references.get_or_insert_default().push(OwnerReference {
            api_version: kind.api_version(),
            kind: kind.kind.into_owned(),
            name: owner.meta().name.clone().unwrap_or_default(),
            uid: owner.meta().uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        });
        self
    }

    /// With this value at this path, such as `spec.replicas` or `spec.template.spec.containers.0.image`.
    ///
    /// # Panics
    /// When it does not fit the type: a mistake in the test.
    #[must_use]
    fn set(self, path: &str, value: impl Into<Value>) -> Self {
        let mut whole = serde_json::to_value(&self).unwrap_or_default();
        let place = path.split('.').fold(&mut whole, |place, step| match step.parse::<usize>() {
            Ok(index) if place.is_array() => &mut place[index],
            _ => &mut place[step],
        });
        *place = value.into();
        read(whole)
    }

    /// Changed by a function.
    #[must_use]
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl<K: Object> Building for K {}

fn read<K: Object>(value: Value) -> K {
    match serde_json::from_value(value) {
        Ok(object) => object,
        Err(error) => panic!("this is no {}: {error}", Kind::of::<K>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCluster;

    #[tokio::test]
    async fn the_api_takes_what_is_built() {
        let cluster = TestCluster::start();
        let map = cluster.create(config_map("a").data("k", "v").annotated("note", "x")).await.unwrap();
        let secret = cluster.create(secret("s").data("k", "v").owned_by(&map)).await.unwrap();
        assert_eq!(secret.metadata.owner_references.unwrap()[0].name, "a");
        let image = "spec.template.spec.containers.0.image";
        let made =
            cluster.create(deployment("d", "one").set("spec.replicas", 2).set(image, "two")).await.unwrap();
        let spec = made.spec.unwrap();
        assert_eq!(spec.replicas, Some(2));
        assert_eq!(spec.template.spec.unwrap().containers[0].image.as_deref(), Some("two"));
    }

    #[test]
    #[should_panic(expected = "this is no ConfigMap")]
    fn a_value_of_the_wrong_type_is_a_mistake() {
        let _ = config_map("a").set("immutable", "perhaps");
    }
}
