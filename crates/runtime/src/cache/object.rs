//! An object whose type is known only to those who ask for it: what crosses from typed caches to untyped parts.

use crate::kind::Object;
use crate::relation::Face;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A cached object of any kind, shared and never copied.
pub trait AnyObject: Any + Send + Sync + fmt::Debug {
    /// Its metadata.
    fn meta(&self) -> &ObjectMeta;
    /// The whole of it as JSON.
    fn to_json(&self) -> Value;
    /// Its own type again, for a downcast.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Object> AnyObject for K {
    fn meta(&self) -> &ObjectMeta {
        kube::Resource::meta(self)
    }

    fn to_json(&self) -> Value {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(fields) = &mut json {
            // Derived types may leave these to whoever knows the type.
            fields.entry("apiVersion").or_insert_with(|| K::api_version(&()).into());
            fields.entry("kind").or_insert_with(|| K::kind(&()).into());
        }
        json
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// What a relation can ask of an object.
pub(crate) fn face(meta: &ObjectMeta) -> Face<'_> {
    Face {
        namespace: meta.namespace.as_deref(),
        name: meta.name.as_deref().unwrap_or_default(),
        labels: meta.labels.as_ref(),
    }
}

/// The UIDs of those an object belongs to: its owners, and the one that its label names where owners cannot be named.
pub(crate) fn owner_uids(meta: &ObjectMeta) -> impl Iterator<Item = &str> {
    let owners = meta.owner_references.iter().flatten().map(|owner| owner.uid.as_str());
    let elsewhere = meta.labels.as_ref().and_then(|labels| labels.get(crate::controller::OWNER_UID_LABEL));
    owners.chain(elsewhere.map(String::as_str))
}
