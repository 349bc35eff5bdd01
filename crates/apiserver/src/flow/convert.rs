//! Conversion between the storage version of an object and the version of a request.
//!
//! On the way of a write both directions are asynchronous and may fail, once per attempt of the compare-and-swap and never
//! under a lock of the store: a conversion webhook is to be asked here. Today none is: versions of a custom resource that
//! differ in their names alone are converted here, and a request that would need a webhook is refused by [`check`].

use crate::crd::STORAGE;
use crate::kinds;
use crate::object::text;
use crate::operation::{Call, Operation};
use crate::resource::Resource;
use crate::status::Status;
use serde_json::Value;
use std::borrow::Cow;
use windlass_schema::{default, prune};
use windlass_store::{Key, ListQuery};

/// A stored object in the version of a request.
pub(crate) async fn from_storage(resource: &Resource, stored: Value) -> Result<Value, Status> {
    Ok(self::stored(resource, stored))
}

/// A custom object of a request in the version that it is stored in.
pub(crate) async fn to_storage(resource: &Resource, object: Value) -> Result<Value, Status> {
    Ok(renamed(resource, object, &resource.stored_as))
}

/// A stored custom object as its definition is now: what another generation of its schema did not prune or default is
/// pruned and defaulted, in the version that it is stored in, and then shown in the version that is asked for.
pub(crate) fn stored(resource: &Resource, mut value: Value) -> Value {
    if let Some(shape) = resource.shape {
        return kinds::convert::from_stored(shape, &resource.definition, &resource.api_version(), value);
    }
    if !resource.custom || (resource.pristine && resource.stored_as == resource.api_version()) {
        return value;
    }
    let stored_as = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if let Some(schema) = resource.schemas.get(stored_as) {
        prune::prune(schema, &mut value, true);
        default::fill(schema, &mut value);
    }
    renamed(resource, value, &resource.api_version())
}

/// A custom object in another version of its kind: the versions differ in name, and in what they know.
pub(crate) fn renamed(resource: &Resource, mut value: Value, api_version: &str) -> Value {
    if value.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
        return value;
    }
    if let Some(schema) = resource.schemas.get(api_version) {
        prune::prune(schema, &mut value, true);
    }
    if let Some(object) = value.as_object_mut() {
        object.insert("apiVersion".to_owned(), Value::String(api_version.to_owned()));
    }
    value
}

/// An object of a request in another version of its resource, in which an admission webhook is told of it. What is sent to a
/// subresource may be of another kind, and is as it is.
pub(crate) fn for_webhook<'a>(
    operation: &Operation<'_>,
    wanted: &Resource,
    object: Option<&'a Value>,
) -> Result<Option<Cow<'a, Value>>, Status> {
    let Some(object) = object else { return Ok(None) };
    let own = &operation.resource;
    if *wanted == **own || text(object, &["kind"]) != own.kind {
        return Ok(Some(Cow::Borrowed(object)));
    }
    between(own, object, &wanted.api_version()).map(|object| Some(Cow::Owned(object)))
}

/// What an admission webhook made of an object, in the version of the request.
pub(crate) fn from_webhook(operation: &Operation<'_>, object: Value) -> Result<Value, Status> {
    let own = &operation.resource;
    let version = own.api_version();
    if text(&object, &["apiVersion"]) == version || text(&object, &["kind"]) != own.kind {
        return Ok(object);
    }
    between(own, &object, &version)
}

fn between(resource: &Resource, object: &Value, api_version: &str) -> Result<Value, Status> {
    if resource.custom && !resource.converted_by_webhook {
        return Ok(renamed(resource, object.clone(), api_version));
    }
    let converted = match resource.custom {
        true => None,
        false => kinds::convert::between(&resource.plural, object, api_version),
    };
    // Built-in kinds that have one shape are the same in all versions.
    let same = !resource.custom && !kinds::convert::has_shapes(&resource.plural);
    match converted {
        Some(converted) => Ok(converted),
        None if same => {
            let mut object = object.clone();
            object["apiVersion"] = Value::String(api_version.to_owned());
            Ok(object)
        }
        None => Err(Status::internal(format!("unable to convert {} to {api_version}", resource.kind))),
    }
}

/// 500 for a request that only a webhook could make sense of.
pub(crate) async fn check(call: &Call<'_>) -> Result<(), Status> {
    let resource = &call.resource;
    if !resource.converted_by_webhook {
        return Ok(());
    }
    let key = resource.storage_key();
    let other = match call.target.name.as_deref() {
        // In another version everything is converted, on its way in as on its way out.
        _ if resource.stored_as != resource.api_version() => {
            let everything = ListQuery::all(key.as_str());
            let empty = call.api.store.list(&everything).is_ok_and(|page| page.items.is_empty());
            let reads = call.body.is_empty() && call.target.name.is_none();
            (!(reads && empty)).then(|| resource.stored_as.clone())
        }
        // In the version that is stored now, objects may still be there from when another one was.
        _ if !several_stored(call) => None,
        Some(name) => {
            let namespace = call.target.namespace.as_deref().unwrap_or_default();
            let entry = call.api.store.get(&Key::new(key, namespace, name));
            entry.and_then(|entry| other_version(&entry.value(), &resource.stored_as))
        }
        None => {
            let page = call.api.store.list(&ListQuery::all(key.as_str())).ok();
            let items = page.into_iter().flat_map(|page| page.items);
            items.into_iter().find_map(|entry| other_version(&entry.value(), &resource.stored_as))
        }
    };
    let Some(other) = other else { return Ok(()) };
    Err(Status::internal(format!(
        "conversion webhook for {other}, Kind={} failed: this API server calls no conversion webhooks; what is stored as \
         {} is served as that",
        resource.kind, resource.stored_as
    )))
}

fn other_version(object: &Value, stored_as: &str) -> Option<String> {
    let version = text(object, &["apiVersion"]);
    (version != stored_as).then(|| version.to_owned())
}

fn several_stored(call: &Call<'_>) -> bool {
    let definition = call.api.store.get(&Key::new(STORAGE, "", call.resource.definition.as_str()));
    let stored = definition.map(|entry| entry.value());
    let versions =
        stored.as_ref().and_then(|crd| crd.pointer("/status/storedVersions")).and_then(Value::as_array);
    versions.is_some_and(|versions| versions.len() > 1)
}
