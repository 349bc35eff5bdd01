//! The bytes that an object is stored as: in the storage version, which [`convert`] brings it into.

use super::{convert, decode};
use crate::facts::FACTS;
use crate::kinds;
use crate::operation::Operation;
use crate::resource::Resource;
use crate::status::Status;
use crate::typed;
use serde_json::Value;
use windlass_store::{Body, Entry};

/// A new object.
pub(crate) async fn create(operation: &Operation<'_>, object: &Value) -> Result<Body, Status> {
    let body = replace(operation, object).await?;
    Ok(match operation.resource.rules.and_then(|rules| (rules.unsettled)(object)) {
        Some(written) => body.written_as(&written),
        None => body,
    })
}

/// A changed object over an entry, which has what the path of the request leaves as it was.
pub(crate) async fn update(operation: &Operation<'_>, entry: &Entry, object: &Value) -> Result<Body, Status> {
    let Some(shape) = operation.resource.shape.filter(|_| operation.resource.has_subresource("status"))
    else {
        return replace(operation, object).await;
    };
    // Through another shape and back it would not be quite the same.
    let (mut stored, old) = (kinds::convert::to_stored(shape, object), entry.value());
    let untouched = if operation.subresource == "status" { "spec" } else { "status" };
    if let (Some(stored), Some(part)) = (stored.as_object_mut(), old.get(untouched)) {
        stored.insert(untouched.to_owned(), part.clone());
    }
    Ok(Body::encode(&stored, operation.resource.fields_of(&stored)))
}

/// An object, whatever was there before.
pub(crate) async fn replace(operation: &Operation<'_>, object: &Value) -> Result<Body, Status> {
    let resource = &operation.resource;
    if operation.options.apply && resource.custom {
        let settled = decode::settled(resource, object.clone());
        let body = in_storage_version(operation, &settled).await?;
        // Only a conversion would have tidied up what is stored.
        let converted = resource.stored_as != resource.api_version();
        return Ok(if converted || settled == *object { body } else { body.written_as(object) });
    }
    in_storage_version(operation, object).await
}

/// What the server itself makes of a stored object, in the version that this is in.
pub(crate) fn as_stored(resource: &Resource, object: &Value) -> Body {
    Body::encode(object, resource.stored_fields_of(object))
}

async fn in_storage_version(operation: &Operation<'_>, object: &Value) -> Result<Body, Status> {
    let resource = &operation.resource;
    if let Some(shape) = resource.shape {
        let object = kinds::convert::to_stored(shape, object);
        return Ok(Body::encode(&object, resource.fields_of(&object)));
    }
    if !resource.custom && has_empty_list(object) {
        let object = typed::settled(&FACTS.structs, &resource.definition, object.clone());
        return Ok(Body::encode(&object, resource.fields_of(&object)));
    }
    if !resource.custom || resource.stored_as == resource.api_version() {
        return Ok(Body::encode(object, resource.fields_of(object)));
    }
    let object = convert::to_storage(operation, object.clone()).await?;
    Ok(as_stored(resource, &object))
}

/// An object as a dry run answers it: as if it had been stored.
pub(crate) async fn dry_run(operation: &Operation<'_>, object: Value) -> Result<Value, Status> {
    let resource = &operation.resource;
    if resource.custom {
        let object = if operation.options.apply { decode::settled(resource, object) } else { object };
        return convert::through_storage(operation, object).await;
    }
    Ok(match has_empty_list(&object) {
        true => typed::settled(&FACTS.structs, &resource.definition, object),
        false => object,
    })
}

fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty_list),
        Value::Object(fields) => fields.values().any(has_empty_list),
        _ => false,
    }
}
