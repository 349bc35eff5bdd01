//! The strategic merge patch of a built-in kind: read, merged, and made to fit the kind again.

use crate::facts::FACTS;
use crate::resource::Resource;
use crate::status::Status;
use crate::typed::{self, Place, Type, unstructured};
use serde_json::{Map, Value};
use windlass_schema::json;
use windlass_schema::strategic::{self, StrategicError};

/// What a strategic merge patch makes of an object.
pub(super) struct Patched {
    pub(super) object: Value,
    /// What is left of the patch: errors about the object show it.
    pub(super) left: Value,
}

/// Reads a patch, with the paths of duplicate fields. That it is unreadable is told only when its object was found.
pub(super) fn read(bytes: &[u8]) -> Result<(Map<String, Value>, Vec<String>), String> {
    let document = json::read(bytes).map_err(|error| error.to_string())?;
    match document.value {
        Value::Object(patch) => Ok((patch, document.duplicates)),
        Value::Null => Ok(Default::default()),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            typed::shape(&other)
        )),
    }
}

/// Merges. The outer error is one of the merge; the inner one says why the object is none of its kind any more.
pub(super) fn merge(
    resource: &Resource,
    patch: &Map<String, Value>,
    live: &Value,
) -> Result<(Patched, Result<(), String>), Status> {
    let root = Type::Struct(resource.definition.clone());
    let place = Place { structs: &FACTS.structs, kind: &root };
    let live = live.as_object().cloned().unwrap_or_default();
    let mut left = patch.clone();
    let merged = strategic::merge(live, &mut left, &place).map_err(|error| match error {
        StrategicError::Malformed(why) => Status::bad_request(why),
        StrategicError::Unprocessable(_) => Status::patch_rejected(),
        StrategicError::Failed(why) => Status::plain(why),
    })?;
    let mut object = Value::Object(merged);
    let fits = unstructured::fit(&FACTS.structs, &resource.definition, &mut object);
    // The object is of its kind whatever the patch says.
    if let Some(fields) = object.as_object_mut() {
        fields.insert("kind".to_owned(), Value::String(resource.kind.clone()));
        fields.insert("apiVersion".to_owned(), Value::String(resource.api_version()));
    }
    Ok((Patched { object, left: Value::Object(left) }, fits))
}

/// Bytes are the only values that are read as JSON once more, and their errors tell so.
pub(super) fn decoding_error(why: String) -> String {
    match why.starts_with("illegal base64 data") {
        true => format!("error decoding from json: {why}"),
        false => why,
    }
}
