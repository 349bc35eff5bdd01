//! Conversion between the storage version of an object and the version of a request.
//!
//! Both directions are asynchronous and may fail, once per attempt of the compare-and-swap and never under a lock of the store: a
//! conversion webhook is asked here (`converter`). What the server does unasked, such as to delete the objects of a CRD, needs none.

mod converter;

pub(crate) use converter::Converter;

use super::decode;
use crate::kinds;
use crate::object::text;
use crate::operation::{Call, Operation};
use crate::resource::Resource;
use crate::status::Status;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use windlass_schema::{default, prune};
use windlass_store::Entry;

/// A stored object in the version of a request.
pub(crate) async fn from_storage(operation: &Operation<'_>, entry: &Arc<Entry>) -> Result<Value, Status> {
    of_resource(operation, &operation.resource, entry).await
}

/// A stored object of any resource in the version of that resource, within the time of a request.
pub(crate) async fn of_resource(
    operation: &Operation<'_>,
    resource: &Arc<Resource>,
    entry: &Arc<Entry>,
) -> Result<Value, Status> {
    match resource.selects_converted() {
        true => {
            let converter = Converter::new(operation.api, resource, Some(operation.deadline));
            Ok(converted(&converter, entry).await?.value())
        }
        false => Ok(stored(resource, entry.value())),
    }
}

/// A custom object of a request in the version that it is stored in.
pub(crate) async fn to_storage(operation: &Operation<'_>, mut object: Value) -> Result<Value, Status> {
    let resource = &operation.resource;
    if resource.conversion.is_none() {
        return Ok(renamed(resource, object, &resource.stored_as));
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        // Which version it was is nothing that is stored.
        metadata.remove("resourceVersion");
    }
    let object = one(&of(operation), object, &resource.stored_as).await?;
    decode::coerced_as(resource.schemas.get(&resource.stored_as), object).map_err(Status::plain)
}

/// An object as it would be after it went through the store and back.
pub(crate) async fn through_storage(operation: &Operation<'_>, object: Value) -> Result<Value, Status> {
    let resource = &operation.resource;
    if resource.conversion.is_none() || resource.stored_as == resource.api_version() {
        return Ok(object);
    }
    let version = object.pointer("/metadata/resourceVersion").cloned();
    let mut object = to_storage(operation, object).await?;
    if let Some(schema) = resource.schemas.get(&resource.stored_as) {
        default::fill(schema, &mut object);
    }
    let object = one(&of(operation), object, &resource.api_version()).await?;
    let mut object = decode::coerced(resource, object).map_err(Status::plain)?;
    if let (Some(version), Some(metadata)) =
        (version, object.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.insert("resourceVersion".to_owned(), version);
    }
    Ok(object)
}

/// A stored entry as its view expects it: in the version of the request, if it is selected in that.
pub(crate) async fn shown(call: &Call<'_>, entry: &Arc<Entry>) -> Result<Arc<Entry>, Status> {
    match call.resource.selects_converted() {
        true => converted(&Converter::new(call.api, &call.resource, Some(call.deadline)), entry).await,
        false => Ok(entry.clone()),
    }
}

/// A stored object as a request sees it.
pub(crate) async fn stored_value(call: &Call<'_>, entry: &Arc<Entry>) -> Result<Value, Status> {
    match call.resource.selects_converted() {
        true => Ok(shown(call, entry).await?.value()),
        false => Ok(stored(&call.resource, entry.value())),
    }
}

/// An object of a custom resource in another version of it, for those who own fields in that. Nothing is pruned.
pub(crate) async fn for_owners(
    operation: &Operation<'_>,
    object: Value,
    api_version: &str,
) -> Result<Value, String> {
    one(&of(operation), object, api_version).await.map_err(|status| status.message)
}

fn of(operation: &Operation<'_>) -> Converter {
    Converter::new(operation.api, &operation.resource, Some(operation.deadline))
}

async fn converted(converter: &Converter, entry: &Arc<Entry>) -> Result<Arc<Entry>, Status> {
    let mut converted = converter.entries(std::slice::from_ref(entry)).await?;
    converted.pop().ok_or_else(|| Status::internal("an object is lost in conversion"))
}

async fn one(converter: &Converter, object: Value, api_version: &str) -> Result<Value, Status> {
    let mut converted = converter.in_version(vec![object], api_version).await?;
    converted.pop().ok_or_else(|| Status::internal("an object is lost in conversion"))
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
pub(crate) async fn for_webhook<'a>(
    operation: &Operation<'_>,
    wanted: &Resource,
    object: Option<&'a Value>,
) -> Result<Option<Cow<'a, Value>>, Status> {
    let Some(object) = object else { return Ok(None) };
    let own = &operation.resource;
    if *wanted == **own || text(object, &["kind"]) != own.kind {
        return Ok(Some(Cow::Borrowed(object)));
    }
    let converted = between(operation, object, &wanted.api_version()).await;
    converted.map(|object| Some(Cow::Owned(object))).map_err(|status| match status.reason.is_empty() {
        true => Status::internal(status.message),
        false => status,
    })
}

/// What an admission webhook made of an object, in the version of the request.
pub(crate) async fn from_webhook(operation: &Operation<'_>, object: Value) -> Result<Value, Status> {
    let own = &operation.resource;
    let version = own.api_version();
    if text(&object, &["apiVersion"]) == version || text(&object, &["kind"]) != own.kind {
        return Ok(object);
    }
    between(operation, &object, &version).await
}

async fn between(operation: &Operation<'_>, object: &Value, api_version: &str) -> Result<Value, Status> {
    let resource = &operation.resource;
    if resource.conversion.is_some() {
        return one(&of(operation), object.clone(), api_version).await;
    }
    if resource.custom {
        return Ok(renamed(resource, object.clone(), api_version));
    }
    // Built-in kinds that have one shape are the same in all versions.
    let same = !kinds::convert::has_shapes(&resource.plural);
    match kinds::convert::between(&resource.plural, object, api_version) {
        Some(converted) => Ok(converted),
        None if same => {
            let mut object = object.clone();
            object["apiVersion"] = Value::String(api_version.to_owned());
            Ok(object)
        }
        None => Err(Status::internal(format!("unable to convert {} to {api_version}", resource.kind))),
    }
}
