//! Into the store, unless it is only a rehearsal.

use super::{Operation, decode};
use crate::facts::FACTS;
use crate::kinds;
use crate::resource::Resource;
use crate::store::{Body, Change, CommitError, Entry, Key, Revision};
use crate::typed;
use serde_json::Value;
use std::sync::Arc;

/// The form in which an object is stored: in the storage version.
pub(crate) fn body(operation: &Operation<'_>, object: &Value) -> Body {
    let resource = &operation.resource;
    if operation.options.apply && resource.custom {
        let settled = decode::settled(resource, object.clone());
        let body = in_storage_version(resource, &settled);
        // Only a conversion would have tidied up what is stored.
        let converted = resource.stored_as != resource.api_version();
        return if converted || settled == *object { body } else { body.written_as(object) };
    }
    in_storage_version(resource, object)
}

fn in_storage_version(resource: &Resource, object: &Value) -> Body {
    if let Some(shape) = resource.shape {
        let object = kinds::convert::to_stored(shape, object);
        return Body::encode(&object, resource.fields_of(&object));
    }
    let fields = resource.fields_of(object);
    if !resource.custom && has_empty_list(object) {
        let object = typed::settled(&FACTS.structs, &resource.definition, object.clone());
        return Body::encode(&object, fields);
    }
    if !resource.custom || resource.stored_as == resource.api_version() {
        return Body::encode(object, fields);
    }
    let object = decode::renamed(resource, object.clone(), &resource.stored_as);
    Body::encode(&object, fields)
}

/// An object as a rehearsal shows it: as if it had been stored.
pub(crate) fn rehearsed(operation: &Operation<'_>, object: Value) -> Value {
    let resource = &operation.resource;
    if resource.custom {
        return if operation.options.apply { decode::settled(resource, object) } else { object };
    }
    match has_empty_list(&object) {
        true => typed::settled(&FACTS.structs, &resource.definition, object),
        false => object,
    }
}

fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty_list),
        Value::Object(fields) => fields.values().any(has_empty_list),
        _ => false,
    }
}

pub(crate) async fn create(
    operation: &Operation<'_>,
    name: &str,
    object: &Value,
) -> Result<Arc<Entry>, CommitError> {
    let mut body = body(operation, object);
    if let Some(written) = operation.resource.rules.and_then(|rules| (rules.unsettled)(object)) {
        body = body.written_as(&written);
    }
    operation.api.store.commit(Change::Create { key: operation.key(name), body }).await
}

/// Over an entry, which has what the path of the request leaves as it was.
pub(crate) async fn update(
    operation: &Operation<'_>,
    entry: &Entry,
    object: &Value,
) -> Result<Arc<Entry>, CommitError> {
    let (key, expected) = (operation.key(&operation.name), entry.revision());
    let Some(shape) = operation.resource.shape.filter(|_| operation.resource.has_subresource("status"))
    else {
        return replace(operation, key, expected, object).await;
    };
    // Through another shape and back it would not be quite the same.
    let (mut stored, old) = (kinds::convert::to_stored(shape, object), entry.value());
    let untouched = if operation.subresource == "status" { "spec" } else { "status" };
    if let (Some(stored), Some(part)) = (stored.as_object_mut(), old.get(untouched)) {
        stored.insert(untouched.to_owned(), part.clone());
    }
    let body = Body::encode(&stored, operation.resource.fields_of(&stored));
    operation.api.store.commit(Change::Update { key, expected, body }).await
}

pub(crate) async fn replace(
    operation: &Operation<'_>,
    key: Key,
    expected: Revision,
    object: &Value,
) -> Result<Arc<Entry>, CommitError> {
    let body = body(operation, object);
    operation.api.store.commit(Change::Update { key, expected, body }).await
}

pub(crate) async fn delete(
    operation: &Operation<'_>,
    name: &str,
    expected: Revision,
) -> Result<Arc<Entry>, CommitError> {
    let gone = operation.api.store.commit(Change::Delete { key: operation.key(name), expected }).await;
    if let Ok(gone) = &gone
        && &*gone.key().resource == "services"
    {
        kinds::services::release(&operation.api.taken, gone.key());
    }
    gone
}
