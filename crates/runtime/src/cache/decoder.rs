//! From what the server sent to what is held: identified, decoded, trimmed and measured.

use super::decoded_lru::{DecodedLru, FEW, Held};
use super::json_spans::{elements, member, members, value_of};
use super::overlay::ObjectVersion;
use super::typed_decoder::OfType;
use crate::key::Key;
use crate::kind::{Cached, Kind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
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
    ObjectVersion {
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
    /// That of the object in a text; empty where there is none.
    pub(super) fn in_text(text: &'a [u8]) -> Self {
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow, default)]
            metadata: Identity<'a>,
        }
        Self::from_prefix(text, 0).unwrap_or_else(|| {
            serde_json::from_slice::<Object<'a>>(text).map(|object| object.metadata).unwrap_or_default()
        })
    }

    /// That of the object which begins at `at`, if it is written plainly: without a look at the rest of it.
    pub(super) fn from_prefix(text: &'a [u8], at: usize) -> Option<Self> {
        let metadata = value_of(text, at, "metadata")?;
        let mut identity = Self::default();
        for (name, value) in members(text, metadata) {
            let field = match &text[name] {
                b"\"namespace\"" => &mut identity.namespace,
                b"\"name\"" => &mut identity.name,
                b"\"uid\"" => &mut identity.uid,
                b"\"resourceVersion\"" => &mut identity.resource_version,
                _ => continue,
            };
            let plain = text.get(value.start + 1..value.end - 1).filter(|_| text[value.start] == b'"')?;
            if plain.contains(&b'\\') {
                return None;
            }
            *field = Cow::Borrowed(std::str::from_utf8(plain).ok()?);
            if identity.is_whole() {
                // What follows is mostly managedFields, and long.
                break;
            }
        }
        Some(identity)
    }

    fn is_whole(&self) -> bool {
        let Self { namespace, name, uid, resource_version } = self;
        [namespace, name, uid, resource_version].into_iter().all(|field| !field.is_empty())
    }

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
    /// By itself.
    Text(&'a [u8]),
    /// Read, but for its type.
    Json(&'a Value),
}

/// What is alike for all types: how objects are identified, and what of them nobody reads.
pub(super) struct Wants {
    pub(super) kind: Kind,
    pub(super) cluster: Arc<str>,
    /// Whether metadata alone is wanted.
    pub(super) partial: bool,
    managers: Managers,
    /// Shared by all keys: there are few namespaces and many objects.
    namespaces: Mutex<HashSet<Arc<str>>>,
}

impl Wants {
    /// Which object it is, and how new.
    pub(super) fn identify(&self, identity: &Identity<'_>) -> Result<(Key, ObjectVersion), Unreadable> {
        let version = identity.resource_version.parse().ok();
        let (Some(version), false, false) = (version, identity.uid.is_empty(), identity.name.is_empty())
        else {
            let name = if identity.name.is_empty() { "without a name" } else { &identity.name };
            return Err(Unreadable::ObjectVersion {
                kind: self.kind.kind.to_string(),
                name: name.to_owned(),
            });
        };
        let namespace = (!identity.namespace.is_empty()).then(|| self.namespace(&identity.namespace));
        let key = Key::sharing(self.cluster.clone(), namespace, &identity.name);
        Ok((key, ObjectVersion { uid: Arc::from(&*identity.uid), version }))
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

    /// The text of the object, without what nobody reads.
    fn lean<'a>(&self, raw: Raw<'a>) -> Cow<'a, [u8]> {
        let text = match raw {
            Raw::Json(value) => return self.lean_text(value.to_string().as_bytes()).into_owned().into(),
            Raw::Text(text) => text,
            Raw::Event(line) => match member(line, 0, "object") {
                Some(object) => &line[object.value],
                // What cannot be found cannot be read either.
                None => line,
            },
        };
        self.lean_text(text)
    }

    /// Of managedFields those of our own controllers, as texts; as trees of maps they take ten times the memory. And of
    /// metadata alone, nothing else.
    fn lean_text<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let metadata = match self.partial {
            true => member(text, 0, "metadata").map(|metadata| metadata.value),
            // Where it ends does not matter.
            false => value_of(text, 0, "metadata").map(|start| start..text.len()),
        };
        let Some(metadata) = metadata else { return text.into() };
        let (start, end) = match self.partial {
            true => (metadata.start, metadata.end),
            false => (0, text.len()),
        };
        let mut lean = Vec::with_capacity(end - start + 16);
        if self.partial {
            lean.extend_from_slice(b"{\"metadata\":");
        }
        match member(text, metadata.start, "managedFields") {
            Some(fields) => {
                let before = lean.len() + (fields.value.start - start);
                lean.extend_from_slice(&text[start..fields.value.start]);
                match self.put_own_entries(&text[fields.value.clone()], &mut lean) {
                    true => lean.extend_from_slice(&text[fields.value.end..end]),
                    false => {
                        lean.truncate(before - (fields.value.start - fields.whole.start));
                        lean.extend_from_slice(&text[fields.whole.end..end]);
                    }
                }
            }
            None if !self.partial => return text.into(),
            None => lean.extend_from_slice(&text[start..end]),
        }
        if self.partial {
            lean.push(b'}');
        }
        lean.into()
    }

    /// Of managedFields, those of our own controllers: what they manage, as text, and none of when. Whether there are any.
    fn put_own_entries(&self, entries: &[u8], lean: &mut Vec<u8>) -> bool {
        if self.partial {
            // Without the values they say nothing.
            return false;
        }
        let managers = self.managers.read();
        let mut before = b'[';
        for entry in elements(entries) {
            let (mut manager, mut fields, mut others) = (None, None, [None, None, None]);
            for (name, value) in members(entries, entry.start) {
                let value = &entries[value];
                match &entries[name] {
                    b"\"manager\"" => manager = Some(value),
                    b"\"fieldsV1\"" => fields = std::str::from_utf8(value).ok(),
                    b"\"operation\"" => others[0] = Some(("operation", value)),
                    b"\"apiVersion\"" => others[1] = Some(("apiVersion", value)),
                    b"\"subresource\"" => others[2] = Some(("subresource", value)),
                    _ => {}
                }
            }
            let Some(manager) = manager else { continue };
            if !serde_json::from_slice::<Cow<'_, str>>(manager).is_ok_and(|name| managers.contains(&*name)) {
                continue;
            }
            lean.push(before);
            before = b',';
            lean.extend_from_slice(b"{\"manager\":");
            lean.extend_from_slice(manager);
            for (name, value) in others.into_iter().flatten() {
                lean.extend_from_slice(b",\"");
                lean.extend_from_slice(name.as_bytes());
                lean.extend_from_slice(b"\":");
                lean.extend_from_slice(value);
            }
            if let Some(fields) = fields {
                lean.extend_from_slice(b",\"fieldsV1\":");
                // Writing to memory cannot fail, nor can a text be anything but JSON.
                let _ = serde_json::to_writer(&mut *lean, fields);
            }
            lean.push(b'}');
        }
        let any = before == b',';
        if any {
            lean.push(b']');
        }
        any
    }

    /// Where the text was not as it usually is: the same of what was read.
    pub(super) fn trim(&self, meta: &mut ObjectMeta) {
        if let Some(entries) = &mut meta.managed_fields {
            let managers = self.managers.read();
            entries
                .retain(|entry| entry.manager.as_deref().is_some_and(|manager| managers.contains(manager)));
        }
        if self.partial || meta.managed_fields.as_ref().is_some_and(Vec::is_empty) {
            meta.managed_fields = None;
        }
    }
}

/// Takes in the objects of one kind.
pub(super) struct Decoder {
    pub(super) wants: Wants,
    pub(super) objects: Arc<DecodedLru>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("kind", &self.wants.kind).finish_non_exhaustive()
    }
}

impl Decoder {
    pub(super) fn new<K: Cached>(
        kind: Kind,
        cluster: Arc<str>,
        managers: Managers,
        transforms: Transforms<K>,
    ) -> Self {
        let reads = Arc::new(OfType { kind: kind.clone(), transforms });
        let objects = Arc::new(DecodedLru::new(kind.clone(), reads));
        let wants =
            Wants { kind, cluster, partial: K::metadata_api(), managers, namespaces: Mutex::default() };
        Self { wants, objects }
    }

    /// The object, as it is to be held beside this number of others.
    pub(super) fn read(&self, key: &Key, raw: Raw<'_>, others: usize) -> Result<Held, Unreadable> {
        let (text, reads) = (self.wants.lean(raw), &self.objects.reads);
        let object = reads.read(&text, key, &self.wants)?;
        if others < FEW || reads.changes() {
            return Ok(self.objects.whole(object));
        }
        Ok(self.objects.compress(object, &text))
    }
}
