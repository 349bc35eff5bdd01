//! Objects of the built-in kinds as protobuf, by the facts of their types.
//!
//! For reads, the protobuf of an object is made once from its stored JSON and kept beside it in the store, as other
//! encodings are.

use crate::facts::FACTS;
use crate::typed;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use windlass_schema::proto;
pub use windlass_schema::proto::ProtoError;

/// What every document says of itself.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Type<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

/// The JSON of an object, a list or a document of a built-in kind as protobuf, in its envelope.
///
/// # Errors
/// It is no JSON, or of a kind that has no protobuf form.
pub fn encode(json: &[u8]) -> Result<Vec<u8>, ProtoError> {
    let named: Type<'_> = serde_json::from_slice(json).map_err(|error| ProtoError(error.to_string()))?;
    let unknown = || ProtoError(format!("{} of {:?} has no protobuf form", named.kind, named.api_version));
    let definition = FACTS.struct_of(&named.api_version, &named.kind).ok_or_else(unknown)?;
    let value = serde_json::from_slice(json).map_err(|error| ProtoError(error.to_string()))?;
    // Only what Go has read is in the one form that is written: an amount may also be a number.
    let value = typed::convert(&FACTS.structs, &definition, value, "", &mut Vec::new())
        .map_err(|failure| ProtoError(failure.0))?;
    let json = value.to_string();
    proto::encode(&FACTS.structs, &definition, &named.api_version, &named.kind, json.as_bytes())
}

/// Protobuf in its envelope as the JSON of the same object of a built-in kind.
///
/// # Errors
/// It is no envelope, or its content no message of the kind that it names.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtoError> {
    let envelope = proto::open(bytes)?;
    let unknown =
        || ProtoError(format!("{} of {:?} is no built-in kind", envelope.kind, envelope.api_version));
    let definition = FACTS.struct_of(&envelope.api_version, &envelope.kind).ok_or_else(unknown)?;
    let value = from_envelope(&envelope, &definition)?;
    typed::convert(&FACTS.structs, &definition, value, "", &mut Vec::new())
        .map_err(|failure| ProtoError(failure.0))
}

/// The message in an envelope, as the struct `definition`, with the type that the envelope names. An object of another
/// type is not read at all: that it is one is told by whoever looks at its type.
pub(crate) fn from_envelope(
    envelope: &proto::Envelope<'_>,
    definition: &str,
) -> Result<Value, proto::ProtoError> {
    let named = &envelope.kind;
    let expected = definition.rsplit('.').next().unwrap_or_default();
    let mut value = match named.is_empty() || named == expected {
        true => proto::decode(&FACTS.structs, definition, envelope.raw)?,
        false => Value::Object(Map::new()),
    };
    if let Some(object) = value.as_object_mut() {
        for (field, text) in [("apiVersion", &envelope.api_version), ("kind", &envelope.kind)] {
            if !text.is_empty() {
                object.insert(field.to_owned(), Value::String(text.clone().into_owned()));
            }
        }
    }
    Ok(value)
}
