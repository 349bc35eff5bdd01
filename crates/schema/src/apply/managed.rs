//! `metadata.managedFields`: its entries, who a manager is, and the order in which the server keeps them.

use super::fieldset::FieldSet;
use super::values::json_string;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// One entry as it stands in an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// Who wrote.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// In which version the fields are named.
    pub api_version: String,
    /// When the entry last changed.
    pub time: Option<Timestamp>,
    /// `FieldsV1`.
    pub fields_type: String,
    /// The owned fields.
    pub fields_v1: Option<Value>,
    /// Through which subresource, if through one.
    pub subresource: String,
}

impl Entry {
    fn from_json(value: &Value) -> Option<Entry> {
        let map = value.as_object()?;
        let text = |name: &str| match map.get(name) {
            None | Some(Value::Null) => Some(String::new()),
            Some(value) => value.as_str().map(ToOwned::to_owned),
        };
        let time = match map.get("time") {
            None | Some(Value::Null) => None,
            Some(time) => Some(time.as_str()?.parse().ok()?),
        };
        Some(Entry {
            manager: text("manager")?,
            operation: text("operation")?,
            api_version: text("apiVersion")?,
            time,
            fields_type: text("fieldsType")?,
            fields_v1: map.get("fieldsV1").filter(|fields| !fields.is_null()).cloned(),
            subresource: text("subresource")?,
        })
    }

    /// The entry as it stands in an object.
    pub fn into_json(self) -> Value {
        let mut map = Map::new();
        let texts = [
            ("manager", self.manager),
            ("operation", self.operation),
            ("apiVersion", self.api_version),
            ("fieldsType", self.fields_type),
            ("subresource", self.subresource),
        ];
        map.extend(
            texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(k, v)| (k.to_owned(), v.into())),
        );
        map.extend(self.time.map(|time| ("time".to_owned(), time_text(time).into())));
        map.extend(self.fields_v1.map(|fields| ("fieldsV1".to_owned(), fields)));
        Value::Object(map)
    }

    /// The server's order: by operation, then from old to new, then by name.
    fn order(&self, other: &Entry) -> Ordering {
        let key = |entry: &Entry| entry.time.map_or(0, Timestamp::as_second);
        (self.operation.cmp(&other.operation))
            .then_with(|| key(self).cmp(&key(other)))
            .then_with(|| self.manager.cmp(&other.manager))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }
}

/// Time as Kubernetes writes it: in UTC and whole seconds.
pub(crate) fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The list of an object's managers, as it is.
pub(super) fn listed(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// The entries of an object; `None` if there is no such list, or one with something else in it.
pub fn entries(object: &Value) -> Option<Vec<Entry>> {
    listed(object)?.as_array()?.iter().map(Entry::from_json).collect()
}

/// Who owns fields: one manager by one operation, and for updates in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identifier {
    /// The manager's name.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// Empty for appliers, which stay the same across versions.
    pub api_version: String,
    /// The subresource written through, if any.
    pub subresource: String,
    /// The canonical text that orders identifiers.
    text: String,
}

/// The operation of those who state what they want.
pub(crate) const APPLY: &str = "Apply";
/// The operation of everybody else.
pub(crate) const UPDATE: &str = "Update";

impl Identifier {
    pub(crate) fn new(manager: &str, operation: &str, api_version: &str, subresource: &str) -> Identifier {
        let api_version = if operation == APPLY { "" } else { api_version };
        let mut text = String::from("{");
        let fields = [
            ("manager", manager),
            ("operation", operation),
            ("apiVersion", api_version),
            ("subresource", subresource),
        ];
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            if text.len() > 1 {
                text.push(',');
            }
            json_string(name, &mut text);
            text.push(':');
            json_string(value, &mut text);
        }
        text.push('}');
        Identifier {
            manager: manager.to_owned(),
            operation: operation.to_owned(),
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
            text,
        }
    }

    /// A manager without a name is called unknown.
    pub(crate) fn of_request(
        manager: &str,
        operation: &str,
        api_version: &str,
        subresource: &str,
    ) -> Identifier {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Identifier::new(manager, operation, api_version, subresource)
    }

    /// The stand-in under which an update finds out what it changes, before that goes to its manager's entry.
    pub(crate) fn current_operation() -> Identifier {
        let text = "current-operation".to_owned();
        let empty = String::new;
        Identifier {
            manager: text.clone(),
            operation: empty(),
            api_version: empty(),
            subresource: empty(),
            text,
        }
    }
}

impl Ord for Identifier {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl PartialOrd for Identifier {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The fields that somebody owns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Owned {
    pub(crate) set: FieldSet,
    pub(crate) api_version: String,
    pub(crate) applied: bool,
}

/// All owners of an object's fields.
pub(crate) type Owners = BTreeMap<Identifier, Owned>;

/// All owners of an object's fields, and since when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Managed {
    pub(crate) owners: Owners,
    pub(crate) times: BTreeMap<Identifier, Option<Timestamp>>,
}

impl Managed {
    /// Reads entries as they stand in an object.
    pub(crate) fn decode(entries: Vec<Entry>) -> Result<Managed, String> {
        let mut managed = Managed::default();
        for (i, entry) in entries.into_iter().enumerate() {
            if entry.operation != APPLY && entry.operation != UPDATE {
                return Err("operation must be `Apply` or `Update`".into());
            }
            if entry.api_version.is_empty() {
                return Err("apiVersion must not be empty".into());
            }
            match entry.fields_type.as_str() {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
                other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {i}")),
            }
            let id =
                Identifier::new(&entry.manager, &entry.operation, &entry.api_version, &entry.subresource);
            let set = match &entry.fields_v1 {
                Some(fields) => FieldSet::from_fields_v1(fields).map_err(|error| {
                    format!("error decoding versioned set from {}: {error}", entry.manager)
                })?,
                None => FieldSet::new(),
            };
            let applied = entry.operation == APPLY;
            managed.times.insert(id.clone(), entry.time);
            managed.owners.insert(id, Owned { set, api_version: entry.api_version, applied });
        }
        Ok(managed)
    }

    /// Writes the entries into an object, in the server's order; without owners there is no such field.
    pub(crate) fn encode_into(&self, object: &mut Value) {
        remove_from(object);
        if self.owners.is_empty() {
            return;
        }
        let entries = self.to_entries().into_iter().map(Entry::into_json).collect();
        if let Some(object) = object.as_object_mut() {
            let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("managedFields".into(), Value::Array(entries));
            }
        }
    }

    /// The entries in the server's order.
    pub(crate) fn to_entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.owners.iter().map(|(id, owned)| self.entry(id, owned)).collect();
        entries.sort_by(Entry::order);
        entries
    }

    fn entry(&self, id: &Identifier, owned: &Owned) -> Entry {
        Entry {
            manager: id.manager.clone(),
            operation: if owned.applied { APPLY.into() } else { id.operation.clone() },
            api_version: owned.api_version.clone(),
            time: self.times.get(id).copied().flatten(),
            fields_type: "FieldsV1".into(),
            fields_v1: Some(owned.set.to_fields_v1()),
            subresource: id.subresource.clone(),
        }
    }

    /// Unites the oldest update entries of a version under one name until no more than `most` are left.
    pub(crate) fn cap_updates(&mut self, most: usize) {
        let mut updates: Vec<Identifier> =
            self.owners.iter().filter(|(_, owned)| !owned.applied).map(|(id, _)| id.clone()).collect();
        let mut count = updates.len();
        if count <= most {
            return;
        }
        updates.sort_by_cached_key(|id| {
            (self.times.get(id).copied().flatten().map_or(0, Timestamp::as_second), id.clone())
        });
        let mut first_of_version: BTreeMap<String, Identifier> = BTreeMap::new();
        for id in updates {
            if count <= most {
                break;
            }
            let Some(owned) = self.owners.get(&id).cloned() else { continue };
            let Some(first) = first_of_version.get(&owned.api_version) else {
                first_of_version.insert(owned.api_version, id);
                continue;
            };
            let bucket = Identifier::new("ancient-changes", UPDATE, &owned.api_version, "");
            if !self.owners.contains_key(&bucket)
                && let Some(first) = self.owners.remove(first)
            {
                self.owners.insert(bucket.clone(), first);
            }
            let time = self.times.get(&id).copied().flatten();
            if let Some(old) = self.owners.get(&bucket) {
                let set = owned.set.union(&old.set);
                self.owners.insert(bucket.clone(), Owned { set, ..owned });
            }
            self.owners.remove(&id);
            count -= 1;
            self.times.insert(bucket, time);
        }
    }
}

/// Takes `metadata.managedFields` out of an object.
pub(crate) fn remove_from(object: &mut Value) {
    drop(take_from(object));
}

/// The same, to be put back.
pub(crate) fn take_from(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// Puts `metadata.managedFields` into an object, if that has metadata.
pub(crate) fn put_into(object: &mut Value, entries: Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields".into(), entries);
    }
}

/// Whether the entries of a written object ask to forget all ownership: an empty list, or one empty entry.
pub(crate) fn asks_for_reset(entries: &[Entry]) -> bool {
    match entries {
        [] => true,
        [only] => *only == Entry::default(),
        _ => false,
    }
}

/// Puts the old times back where a write changed nothing else: so that it stays without effect.
///
/// To be called with the object as it is about to be stored, in the same version as `old`.
pub fn keep_times_if_unchanged(old: &Value, new: &mut Value) {
    fn all(object: &Value) -> &[Value] {
        let list = listed(object).and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    }
    let (old_entries, new_entries) = (all(old), all(new));
    let pairs = || old_entries.iter().zip(new_entries);
    if old_entries.is_empty()
        || old_entries.len() != new_entries.len()
        || !pairs().all(|(old, new)| same_but_time(old, new))
    {
        return;
    }
    let moved = pairs().any(|(old, new)| second(old) != second(new));
    if moved && same_beside_managed_fields(old, new) {
        let kept = Value::from(old_entries.to_vec());
        if let Some(entries) = new.pointer_mut("/metadata/managedFields") {
            *entries = kept;
        }
    }
}

/// When an entry last changed.
fn second(entry: &Value) -> Option<i64> {
    let time = entry.get("time")?.as_str()?.parse::<Timestamp>().ok()?;
    Some(time.as_second())
}

fn same_but_time(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let others = |entry: &Map<String, Value>| entry.len() - usize::from(entry.contains_key("time"));
    others(old) == others(new)
        && old.iter().all(|(name, value)| name == "time" || new.get(name) == Some(value))
}

fn same_beside_managed_fields(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let same_metadata = |old: &Value, new: &Value| match (old.as_object(), new.as_object()) {
        (Some(old), Some(new)) => {
            old.len() == new.len()
                && old.iter().zip(new).all(|((ka, a), (kb, b))| ka == kb && (ka == "managedFields" || a == b))
        }
        _ => false,
    };
    old.len() == new.len()
        && old
            .iter()
            .zip(new)
            .all(|((ka, a), (kb, b))| ka == kb && if ka == "metadata" { same_metadata(a, b) } else { a == b })
}
