//! An object whose type is known only to those who ask for it: what crosses from typed caches to untyped parts.

use crate::kind::{Cached, names_itself};
use crate::labels::OWNER_UID_LABEL;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A cached object of any kind, shared and never copied.
pub trait AnyObject: Any + Send + Sync + fmt::Debug {
    /// Its metadata.
    fn meta(&self) -> &ObjectMeta;
    /// The whole of it as JSON; metadata alone of what [`is_partial`](AnyObject::is_partial).
    fn to_json(&self) -> Value;
    /// Whether it is metadata alone: what else there is was not asked for.
    fn is_partial(&self) -> bool;
    /// Its own type again, to look at.
    fn as_any(&self) -> &dyn Any;
    /// Its own type again, for a downcast.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Cached> AnyObject for K {
    fn meta(&self) -> &ObjectMeta {
        kube::Resource::meta(self)
    }

    fn is_partial(&self) -> bool {
        K::metadata_api()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn to_json(&self) -> Value {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(fields) = &mut json {
            // Derived types may leave these to whoever knows the type.
            if let Some(names) = names_itself::<K>() {
                fields.entry("apiVersion").or_insert_with(|| K::api_version(names).into());
                fields.entry("kind").or_insert_with(|| K::kind(names).into());
            }
            unfold_fields(fields);
        }
        json
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Makes the `fieldsV1` of an object that is to be held a text: as a tree of maps it takes ten times the memory, and it
/// is looked at only before a write.
pub(super) fn fold_fields(meta: &mut ObjectMeta) {
    for entry in meta.managed_fields.iter_mut().flatten() {
        entry.fields_type = None;
        entry.time = None;
        if let Some(fields) = &mut entry.fields_v1
            && fields.0.is_object()
        {
            fields.0 = Value::String(fields.0.to_string());
        }
    }
}

fn unfold_fields(object: &mut serde_json::Map<String, Value>) {
    let entries = object.get_mut("metadata").and_then(|meta| meta.get_mut("managedFields"));
    for entry in entries.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) = entry.get_mut("fieldsV1")
            && let Some(tree) = fields.as_str().and_then(|text| serde_json::from_str(text).ok())
        {
            *fields = tree;
            entry["fieldsType"] = "FieldsV1".into();
        }
    }
}

/// An object as the type that its store was opened as.
pub(crate) fn typed<K: Cached>(object: Arc<dyn AnyObject>) -> Arc<K> {
    object.into_any().downcast().expect("a store holds objects of its type")
}

/// The UIDs of those an object belongs to: its owners, and the one that its label names where owners cannot be named.
pub(crate) fn owner_uids(meta: &ObjectMeta) -> impl Iterator<Item = &str> {
    let owners = meta.owner_references.iter().flatten().map(|owner| owner.uid.as_str());
    let elsewhere = meta.labels.as_ref().and_then(|labels| labels.get(OWNER_UID_LABEL));
    owners.chain(elsewhere.map(String::as_str))
}
