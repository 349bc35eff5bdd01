//! From what the server sent to what is held: identified, read, trimmed and weighed.

use super::object::fold_fields;
use super::overlay::Stamp;
use super::spans::{Member, elements, member};
use super::weigh::weigh;
use crate::key::Key;
use crate::kind::{Cached, Kind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use kube::core::{DynamicObject, TypeMeta};
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use serde_json::Value;
use std::any::Any;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// An object that cannot be taken in.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It does not fit the type.
    #[error("{kind} {name} does not fit its type")]
    Type {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What did not fit.
        #[source]
        source: serde_json::Error,
    },
    /// It has no UID or no numeric resourceVersion, so nothing can be said about how new it is.
    #[error("{kind} {name} has no UID or no numeric resourceVersion")]
    Stamp {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The transform of its kind panicked.
    #[error("the transform for {kind} {name} panicked")]
    Transform {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
}

/// The field managers whose entries cached objects keep; everybody else's are dropped, and with them most of the memory.
pub(crate) type Managers = Arc<RwLock<HashSet<Arc<str>>>>;

/// Changes an object before it is held.
pub(super) type Transform<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

/// The transforms of a type, in the order they were given.
pub(super) type Transforms<K> = Arc<RwLock<Vec<Transform<K>>>>;

/// What identifies an object, where it was sent.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Identity<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) uid: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) resource_version: Cow<'a, str>,
}

impl<'a> Identity<'a> {
    /// That of an object which is read already.
    pub(super) fn of(object: &'a Value) -> Self {
        let text = |field: &str| {
            let found = object.get("metadata").and_then(|meta| meta.get(field)).and_then(Value::as_str);
            Cow::Borrowed(found.unwrap_or_default())
        };
        Self {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
        }
    }
}

/// An object as it was sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Raw<'a> {
    /// In the `object` of an event.
    Event(&'a [u8]),
    /// Read, but for its type.
    Json(&'a Value),
}

/// An object that is held, and about how many bytes it takes.
#[derive(Debug)]
pub(super) struct Held<K> {
    pub(super) object: Arc<K>,
    pub(super) bytes: u32,
}

impl<K> Clone for Held<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), bytes: self.bytes }
    }
}

/// Reads the objects of one kind.
pub(super) struct Intake<K> {
    pub(super) kind: Kind,
    pub(super) cluster: Arc<str>,
    managers: Managers,
    transforms: Transforms<K>,
    /// Shared by all keys: there are few namespaces and many objects.
    namespaces: Mutex<HashSet<Arc<str>>>,
}

impl<K> fmt::Debug for Intake<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<K: Cached> Intake<K> {
    pub(super) fn new(kind: Kind, cluster: Arc<str>, managers: Managers, transforms: Transforms<K>) -> Self {
        Self { kind, cluster, managers, transforms, namespaces: Mutex::default() }
    }

    /// Which object it is, and how new.
    pub(super) fn identify(&self, identity: &Identity<'_>) -> Result<(Key, Stamp), Unreadable> {
        let version = identity.resource_version.parse().ok();
        let (Some(version), false, false) = (version, identity.uid.is_empty(), identity.name.is_empty())
        else {
            let name = if identity.name.is_empty() { "without a name" } else { &identity.name };
            return Err(Unreadable::Stamp { kind: self.kind.kind.clone(), name: name.to_owned() });
        };
        let namespace = (!identity.namespace.is_empty()).then(|| self.namespace(&identity.namespace));
        let key = Key::sharing(self.cluster.clone(), namespace, Arc::from(&*identity.name));
        Ok((key, Stamp { uid: Arc::from(&*identity.uid), version }))
    }

    fn namespace(&self, name: &str) -> Arc<str> {
        const MANY: usize = 1024;
        let mut namespaces = self.namespaces.lock();
        if let Some(namespace) = namespaces.get(name) {
            return namespace.clone();
        }
        if namespaces.len() >= MANY && namespaces.len().is_power_of_two() {
            namespaces.retain(|namespace| Arc::strong_count(namespace) > 1);
        }
        let namespace: Arc<str> = Arc::from(name);
        namespaces.insert(namespace.clone());
        namespace
    }

    /// The object, as it is to be held.
    pub(super) fn read(&self, key: &Key, raw: Raw<'_>) -> Result<Held<K>, Unreadable> {
        let (kind, name) = (|| self.kind.kind.clone(), || key.to_string());
        let mut object =
            self.decode(raw).map_err(|source| Unreadable::Type { kind: kind(), name: name(), source })?;
        self.trim(object.meta_mut());
        for transform in self.transforms.read().iter() {
            catch_unwind(AssertUnwindSafe(|| transform(&mut object)))
                .map_err(|_| Unreadable::Transform { kind: kind(), name: name() })?;
        }
        if let Some(dynamic) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>()
            && dynamic.types.is_none()
        {
            // In lists of built-in kinds it is said only once.
            dynamic.types = Some(TypeMeta { api_version: self.kind.api_version(), kind: kind() });
        }
        let bytes = weigh(&object);
        Ok(Held { object: Arc::new(object), bytes })
    }

    fn decode(&self, raw: Raw<'_>) -> Result<K, serde_json::Error> {
        if let Raw::Event(line) = raw
            && let Some(fields) = managed_fields(line)
        {
            let lean = [&line[..fields.whole.start], &line[fields.whole.end..]].concat();
            let mut object: K = decode(Raw::Event(&lean))?;
            object.meta_mut().managed_fields = self.own_entries(&line[fields.value]);
            return Ok(object);
        }
        decode(raw)
    }

    /// Of managedFields, as text, those of our own controllers.
    fn own_entries(&self, entries: &[u8]) -> Option<Vec<ManagedFieldsEntry>> {
        if K::metadata_api() {
            return None;
        }
        let managers = self.managers.read();
        let own = elements(entries).filter_map(|entry| {
            let entry = &entries[entry];
            let value = |name: &str| member(entry, 0, name).map(|member| &entry[member.value]);
            let text =
                |name: &str| value(name).and_then(|value| serde_json::from_slice::<String>(value).ok());
            let manager = text("manager").filter(|manager| managers.contains(manager.as_str()))?;
            let fields = value("fieldsV1").and_then(|fields| std::str::from_utf8(fields).ok());
            Some(ManagedFieldsEntry {
                manager: Some(manager),
                operation: text("operation"),
                api_version: text("apiVersion"),
                subresource: text("subresource"),
                fields_v1: fields.map(|fields| FieldsV1(fields.into())),
                ..ManagedFieldsEntry::default()
            })
        });
        Some(own.collect())
    }

    /// Keeps the managedFields of our own controllers, which say whether an apply would change anything, and no others.
    fn trim(&self, meta: &mut ObjectMeta) {
        if K::metadata_api() {
            // Without the values they say nothing.
            meta.managed_fields = None;
        }
        if let Some(entries) = &mut meta.managed_fields {
            let managers = self.managers.read();
            entries
                .retain(|entry| entry.manager.as_deref().is_some_and(|manager| managers.contains(manager)));
        }
        if meta.managed_fields.as_ref().is_some_and(Vec::is_empty) {
            meta.managed_fields = None;
        }
        // Lists are read with room for four; most have one.
        meta.managed_fields.iter_mut().for_each(Vec::shrink_to_fit);
        meta.owner_references.iter_mut().for_each(Vec::shrink_to_fit);
        meta.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
        fold_fields(meta);
    }
}

/// The managedFields in an event.
fn managed_fields(line: &[u8]) -> Option<Member> {
    let object = member(line, 0, "object")?;
    let metadata = member(line, object.value.start, "metadata")?;
    member(line, metadata.value.start, "managedFields")
}

fn decode<K: Cached>(raw: Raw<'_>) -> Result<K, serde_json::Error> {
    if K::metadata_api() { metadata_of(raw) } else { whole(raw) }
}

fn whole<K: Cached>(raw: Raw<'_>) -> Result<K, serde_json::Error> {
    #[derive(Deserialize)]
    struct Event<K> {
        object: K,
    }
    match raw {
        Raw::Event(line) => serde_json::from_slice::<Event<K>>(line).map(|event| event.object),
        Raw::Json(value) => K::deserialize(value),
    }
}

/// Without `apiVersion` and `kind`, which say only that it is metadata.
fn metadata_of<K: Cached>(raw: Raw<'_>) -> Result<K, serde_json::Error> {
    #[derive(Deserialize)]
    struct Partial {
        metadata: ObjectMeta,
    }
    #[derive(Deserialize)]
    struct Event {
        object: Partial,
    }
    let partial = match raw {
        Raw::Event(line) => serde_json::from_slice::<Event>(line)?.object,
        Raw::Json(value) => Partial::deserialize(value)?,
    };
    let mut object: K = serde_json::from_str("{}")?;
    *object.meta_mut() = partial.metadata;
    Ok(object)
}
