//! From bytes to an object of the kind that the path names: read, checked against its type, pruned and defaulted.

use super::yaml;
use crate::facts::FACTS;
use crate::kinds;
use crate::object::at;
use crate::operation::Operation;
use crate::protobuf;
use crate::request::media::Media;
use crate::request::write_options::Strictness;
use crate::resource::Resource;
use crate::status::Status;
use crate::typed;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_schema::{Path, Schema, default, embedded, json, meta, proto, prune};

const OWNERS: [&str; 2] = ["metadata", "managedFields"];

/// An object, and what a strict reader minds about it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    pub(crate) complaints: Vec<String>,
}

/// Reads a body that should hold an object of `resource`.
pub(crate) fn body(resource: &Resource, bytes: &[u8], media: Media) -> Result<Decoded, Status> {
    let unrecognized = |why: &str| {
        let kind = &resource.kind;
        let body = summary(bytes);
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({body})"
        ))
    };
    let mut twice = Vec::new();
    let (value, duplicates) = match media {
        Media::Json => {
            let document = json::read(bytes).map_err(|error| {
                unrecognized(&format!("couldn't get version/kind; json parse error: {error}"))
            })?;
            (document.value, document.duplicates)
        }
        Media::Yaml => {
            let document = yaml::read(bytes).map_err(|error| unrecognized(&error))?;
            twice = document.duplicates;
            (document.value, Vec::new())
        }
        Media::Protobuf => {
            let envelope = proto::open(bytes).map_err(|error| unrecognized(&error.0))?;
            let value = protobuf::from_envelope(&envelope, &resource.definition)
                .map_err(|error| unhandled_as(resource, &envelope.api_version, &envelope.kind, &error.0))?;
            (value, Vec::new())
        }
    };
    let (version, kind) = version_and_kind(&value).map_err(|why| unrecognized(&why))?;
    if resource.custom && kind.is_empty() {
        let text = String::from_utf8_lossy(bytes);
        return Err(unrecognized(&format!("Object 'Kind' is missing in '{text}'")));
    }
    if version.matches('/').count() > 1 {
        return Err(unrecognized(&format!("unexpected GroupVersion string: {version}")));
    }
    let mut decoded = object(resource, value).map_err(|why| unhandled_as(resource, &version, &kind, &why))?;
    let expected = resource.api_version();
    if resource.custom && version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    let duplicates = duplicates.into_iter().filter(|path| !under(path, &decoded.complaints));
    let duplicates: Vec<String> = duplicates.map(|path| format!("duplicate field {path:?}")).collect();
    if resource.custom {
        decoded.complaints.splice(0..0, duplicates);
    } else {
        decoded.complaints.extend(duplicates);
    }
    decoded.complaints.splice(0..0, twice);
    Ok(decoded)
}

/// What an object says it is, as far as it says so; or why that cannot be read.
pub(crate) fn version_and_kind(value: &Value) -> Result<(String, String), String> {
    let unreadable = |value: &Value, what: &str| {
        let shape = typed::shape(value);
        format!("couldn't get version/kind; json parse error: json: cannot unmarshal {shape} into Go {what}")
    };
    let text = |object: &Map<String, Value>, field: &str| match object.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(unreadable(other, &format!("struct field .{field} of type string"))),
    };
    match value {
        Value::Null => Ok(Default::default()),
        Value::Object(object) => Ok((text(object, "apiVersion")?, text(object, "kind")?)),
        other => Err(unreadable(
            other,
            "value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }",
        )),
    }
}

/// Is `path` an unknown field, or inside one? Those are skipped unread, and so are their duplicates.
fn under(path: &str, complaints: &[String]) -> bool {
    complaints.iter().any(|complaint| {
        let unknown = complaint.strip_prefix("unknown field \"").and_then(|rest| rest.strip_suffix('"'));
        unknown.is_some_and(|unknown| {
            path.strip_prefix(unknown).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    })
}

/// An object of `resource` as it is kept, from any JSON that claims to be one; or why it is none, in Go's words.
pub(crate) fn object(resource: &Resource, value: Value) -> Result<Decoded, String> {
    changed(resource, value, None)
}

/// The same for what became of an object as it is kept: what is as it was there need not be read again.
pub(crate) fn changed(resource: &Resource, value: Value, from: Option<&Value>) -> Result<Decoded, String> {
    let mut unknown = Vec::new();
    let value = match resource.rules {
        Some(rules) => built_in(resource, rules, value, from, &mut unknown)?,
        None => custom(resource, value, &mut unknown)?,
    };
    let complaints = unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect();
    Ok(Decoded { value, complaints })
}

fn built_in(
    resource: &Resource,
    rules: &kinds::Rules,
    value: Value,
    from: Option<&Value>,
    unknown: &mut Vec<String>,
) -> Result<Value, String> {
    let given = |field: &str| value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (expected, kind) = (resource.api_version(), given("kind").unwrap_or(&resource.kind).to_owned());
    let version = given("apiVersion").unwrap_or(&expected).to_owned();
    if version != expected || kind != resource.kind {
        let group_version = version.split_once('/').map_or(("", version.as_str()), |parts| parts);
        let Some(claimed) = FACTS.struct_of(&version, &kind) else {
            return Err(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            ));
        };
        // It is read as what it says it is before that turns out to be something else.
        typed::convert(&FACTS.structs, &claimed, value, "", unknown).map_err(|failure| failure.0)?;
        let package = kinds::package(&resource.group);
        let (wanted, short) = (&resource.kind, group_version.1);
        return Err(format!("converting ({short}.{kind}) to ({package}.{wanted}): unknown conversion"));
    }
    let mut value = if value.is_null() { Value::Object(Map::new()) } else { value };
    // No owners at all is something else than owners that are not told.
    let disowned = at(&value, &OWNERS).and_then(Value::as_array).is_some_and(Vec::is_empty);
    let same = take_same(&mut value, from);
    let mut value = typed::convert(&FACTS.structs, &resource.definition, value, "", unknown)
        .map_err(|failure| failure.0)?;
    if let Some(object) = value.as_object_mut() {
        object.extend(same);
        object.insert("kind".to_owned(), Value::String(kind));
        object.insert("apiVersion".to_owned(), Value::String(version));
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut).filter(|_| disowned) {
        metadata.insert("managedFields".to_owned(), Value::Array(Vec::new()));
    }
    kinds::defaults::fill(&FACTS.structs, &resource.definition, &mut value);
    (rules.default)(&mut value);
    // What is stored in another shape is seen through it from the beginning.
    Ok(match resource.shape {
        Some(shape) => {
            let stored = kinds::convert::to_stored(shape, &value);
            kinds::convert::from_stored(shape, &resource.definition, &resource.api_version(), stored)
        }
        None => value,
    })
}

fn custom(resource: &Resource, mut value: Value, unknown: &mut Vec<String>) -> Result<Value, String> {
    // What is in another version is read as that, before it is refused.
    let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let schema = resource.schemas.get(version).or(resource.schema.as_ref()).cloned();
    coerce(schema.as_ref(), &mut value, unknown)?;
    if let Some(schema) = &schema {
        default::fill_in(schema, &mut value);
    }
    Ok(value)
}

/// What decoding does to a custom object before it is defaulted: metadata is read as what it is, here and in embedded
/// resources; what is unknown goes, and so do nulls that mean nothing.
fn coerce(schema: Option<&Arc<Schema>>, value: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
    if let Some(object) = value.as_object_mut()
        && let Some(metadata) = object.get_mut("metadata")
    {
        if metadata.is_null() {
            object.remove("metadata");
        } else {
            unknown.extend(meta::decode(metadata)?);
        }
    }
    if let Some(schema) = schema {
        unknown.extend(prune::prune(schema, value, true));
        default::drop_nulls(schema, value);
        let dropped = embedded::coerce(schema, value, &Path::root());
        unknown.extend(dropped.map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// A custom object that was converted into the version of its resource, as it is read: what that does not know is left out.
pub(crate) fn coerced(resource: &Resource, value: Value) -> Result<Value, String> {
    coerced_as(resource.schema.as_ref(), value)
}

/// The same by the schema of another version.
pub(crate) fn coerced_as(schema: Option<&Arc<Schema>>, mut value: Value) -> Result<Value, String> {
    coerce(schema, &mut value, &mut Vec::new())?;
    Ok(value)
}

/// A custom object as it is after it went through the store: what an apply may leave behind is gone.
pub(crate) fn settled(resource: &Resource, mut value: Value) -> Value {
    if resource.custom {
        // It was found valid: nothing in it can be of a wrong type.
        let _ = coerce(resource.schema.as_ref(), &mut value, &mut Vec::new());
        if let Some(schema) = &resource.schema {
            default::fill_in(schema, &mut value);
        }
    }
    value
}

/// Takes out of an object what is in another as well, apart from what says which object it is.
fn take_same(value: &mut Value, other: Option<&Value>) -> Vec<(String, Value)> {
    let (Value::Object(members), Some(Value::Object(others))) = (value, other) else { return Vec::new() };
    let is_same = |name: &str, member: &Value| {
        !matches!(name, "apiVersion" | "kind" | "metadata") && others.get(name) == Some(member)
    };
    let names = members.iter().filter(|(name, member)| is_same(name, member)).map(|(name, _)| name.clone());
    names.collect::<Vec<_>>().iter().filter_map(|name| members.remove_entry(name)).collect()
}

/// 400 for an object that cannot be what it says.
pub(crate) fn unhandled(resource: &Resource, why: &str) -> Status {
    unhandled_as(resource, &resource.api_version(), &resource.kind, why)
}

fn unhandled_as(resource: &Resource, version: &str, kind: &str, why: &str) -> Status {
    let kind = if kind.is_empty() { &resource.kind } else { kind };
    let version = match version.rsplit('/').next() {
        None | Some("") => &resource.version,
        Some(version) => version,
    };
    let expected = &resource.kind;
    Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {expected}: {why}"))
}

/// How errors show a body: some of it, in hexadecimal if it is no JSON object.
fn summary(bytes: &[u8]) -> String {
    const LONGEST: usize = 30;
    let (shown, more) = match bytes.get(..LONGEST) {
        Some(head) if bytes.len() > LONGEST => (head, " ..."),
        _ => (bytes, ""),
    };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => format!("{}{more}", shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// Refuses, warns about or ignores what decoding found to be unknown or duplicate.
pub(crate) fn judge(
    operation: &Operation<'_>,
    decoded: Decoded,
    warnings: &Mutex<Vec<String>>,
) -> Result<Value, Status> {
    match operation.options.strictness {
        Strictness::Strict if !decoded.complaints.is_empty() => {
            let text = format!("strict decoding error: {}", decoded.complaints.join(", "));
            Err(unhandled(&operation.resource, &text))
        }
        Strictness::Warn => {
            warnings.lock().extend(decoded.complaints);
            Ok(decoded.value)
        }
        _ => Ok(decoded.value),
    }
}
