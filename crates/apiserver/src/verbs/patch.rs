//! PATCH: JSON patch, JSON merge patch, strategic merge patch and apply.

use super::strategic;
use crate::facts::FACTS;
use crate::flow::guaranteed_update::{Preconditions, guaranteed_update};
use crate::flow::{decode, managed, prepare, yaml};
use crate::http::Answer;
use crate::object::text;
use crate::operation::Call;
use crate::operation::Operation;
use crate::request::media::content_type;
use crate::request::media::content_type::PatchType;
use crate::request::write_options::{Strictness, Write, WriteOptions};
use crate::resource::Resource;
use crate::status::causes;
use crate::status::{Named, Status};
use crate::typed::{self, unstructured};
use serde_json::{Map, Value};
use windlass_schema::field::{FieldError, Path};
use windlass_schema::patch::{self, PatchError};
use windlass_schema::{default, json};

/// A patch, read.
pub(super) enum Patch {
    Json(Value),
    Merge { patch: Value, duplicates: Vec<String> },
    Strategic(Result<(Map<String, Value>, Vec<String>), String>),
    Apply { intent: Value, duplicates: Vec<String> },
}

pub(crate) async fn patch(call: &Call<'_>) -> Result<Answer, Status> {
    let resource = &call.resource;
    let kind = content_type::patch(&call.content_type, resource.custom)?;
    let options =
        WriteOptions::read(&call.query, Write::Patch { apply: kind == PatchType::Apply }, &call.user_agent)?;
    let operation = call.operation(options);
    let patch = read(kind, &call.body, operation.options.strictness);
    // Through the status, too, of kinds that an update may create.
    let created_anyhow = operation.resource.rules.is_some_and(|rules| rules.create_on_update);
    let may_create = kind == PatchType::Apply && (operation.subresource.is_empty() || created_anyhow);
    let make = |live: Option<&Value>| {
        let mut warnings = Vec::new();
        let object = match &patch {
            Ok(patch) => make(&operation, patch, live, &mut warnings),
            Err(_) if live.is_none() && kind != PatchType::Apply => {
                Err(Status::not_found(resource.named(), &operation.name))
            }
            Err(status) => Err(status.clone()),
        };
        *call.warnings.lock() = warnings;
        object
    };
    let preconditions = Preconditions { may_create, ..Preconditions::default() };
    let (outcome, created) = guaranteed_update(&operation, &preconditions, make).await?;
    super::answer(&outcome, call, if created { 201 } else { 200 }).await
}

/// Reads a patch. Its errors wait until it is known what is to be patched.
pub(super) fn read(kind: PatchType, bytes: &[u8], strictness: Strictness) -> Result<Patch, Status> {
    let undecodable = |error: String| Status::bad_request(format!("error decoding patch: {error}"));
    let unmarshal = |value: &Value, go: &str| {
        format!("json: cannot unmarshal {} into Go value of type {go}", typed::shape(value))
    };
    if kind == PatchType::Apply {
        let document = yaml::read(bytes).map_err(|error| {
            Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: {error}"))
        })?;
        return match document.value {
            intent @ (Value::Object(_) | Value::Null) => {
                Ok(Patch::Apply { intent, duplicates: document.duplicates })
            }
            other => Err(Status::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: {}",
                unmarshal(&other, "map[string]interface {}")
            ))),
        };
    }
    if kind == PatchType::Strategic {
        return Ok(Patch::Strategic(strategic::read(bytes)));
    }
    let document = json::read(bytes).map_err(|error| undecodable(error.to_string()))?;
    let lenient = strictness == Strictness::Ignore;
    match (kind, document.value) {
        // Its own reader has its own words.
        (PatchType::Json, patch) if lenient => Ok(Patch::Json(patch)),
        (PatchType::Json, Value::Array(operations)) => {
            let odd = operations.iter().find(|item| !item.is_object() && !item.is_null());
            match (odd, operations.iter().find_map(no_text)) {
                (Some(odd), _) => Err(undecodable(unmarshal(odd, "handlers.jsonPatchOp"))),
                (None, Some(why)) => Err(undecodable(why)),
                (None, None) => Ok(Patch::Json(Value::Array(operations))),
            }
        }
        (PatchType::Json, Value::Null) => Ok(Patch::Json(Value::Null)),
        (PatchType::Json, other) => Err(undecodable(unmarshal(&other, "[]handlers.jsonPatchOp"))),
        (_, patch @ Value::Object(_)) => Ok(Patch::Merge { patch, duplicates: document.duplicates }),
        // A list takes the place of the object.
        (_, patch @ Value::Array(_)) if lenient => Ok(Patch::Merge { patch, duplicates: Vec::new() }),
        (_, other) if lenient || other.is_null() => Err(Status::bad_request("Invalid JSON Patch")),
        (_, other) => Err(undecodable(unmarshal(&other, "map[string]interface {}"))),
    }
}

/// Which of an operation's texts is none.
fn no_text(operation: &Value) -> Option<String> {
    let wrong = |name: &str| {
        let value = operation.get(name).filter(|value| !value.is_string() && !value.is_null())?;
        let shape = typed::shape(value);
        Some(format!("json: cannot unmarshal {shape} into Go struct field jsonPatchOp.{name} of type string"))
    };
    ["op", "path", "from"].into_iter().find_map(wrong)
}

pub(super) fn make(
    operation: &Operation<'_>,
    patch: &Patch,
    live: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let resource = &operation.resource;
    let (mut left, mut fits, mut duplicates) = (None, Ok(()), &Vec::new());
    let patched = match (patch, live) {
        (Patch::Apply { intent, duplicates }, _) => {
            let mut object = applied(operation, intent, live)?;
            given_twice(operation, duplicates, warnings)?;
            prepare::name(operation, &object)?;
            prepare::namespace(operation, &mut object)?;
            prepare::owners(operation, &mut object, true);
            return Ok(object);
        }
        (_, None) => return Err(Status::not_found(resource.named(), &operation.name)),
        (Patch::Json(patch), Some(live)) => patch::json_patch(live, patch).map_err(|error| match error {
            PatchError::Malformed(why) => Status::bad_request(why),
            PatchError::TooMany { most, got } => Status::too_many_operations(most, got),
            _ => Status::patch_rejected(),
        })?,
        (Patch::Merge { patch, duplicates: given }, Some(live)) => {
            duplicates = given;
            let mut patched = live.clone();
            patch::merge(&mut patched, patch);
            patched
        }
        (Patch::Strategic(read), Some(live)) => {
            let (patch, given) = read.as_ref().map_err(Status::bad_request)?;
            duplicates = given;
            let (patched, fit) = strategic::merge(resource, patch, live)?;
            (left, fits) = (Some(patched.left), fit);
            patched.object
        }
    };
    // What errors show: what is left of the patch, or else what it made.
    let to_show = left.unwrap_or_else(|| patched.clone());
    let unfit = |why: &str| {
        let shown = match patch {
            Patch::Strategic(_) => windlass_schema::strategic::print(&to_show),
            _ => quoted(&to_show),
        };
        let error = FieldError::invalid(&Path::new("patch"), shown, why);
        Status::invalid(Named { group: "", kind: "" }, "", causes(&[error]))
    };
    fits.map_err(|why| unfit(&why))?;
    let (_, kind) = decode::version_and_kind(&patched).map_err(|why| unfit(&why))?;
    if resource.custom && kind.is_empty() {
        return Err(unfit(&format!("Object 'Kind' is missing in '{}'", quoted(&patched))));
    }
    let decoded = decode::changed(resource, patched, live);
    let mut decoded = decoded.map_err(|why| match patch {
        Patch::Strategic(_) => unfit(&strategic::decoding_error(why)),
        _ => unfit(&why),
    })?;
    if matches!(patch, Patch::Strategic(_)) {
        decoded.complaints.sort();
    }
    let duplicates = duplicates.iter().map(|path| format!("duplicate field {path:?}"));
    decoded.complaints.splice(0..0, duplicates);
    if operation.options.strictness == Strictness::Strict && !decoded.complaints.is_empty() {
        return Err(unfit(&format!("strict decoding error: {}", decoded.complaints.join(", "))));
    }
    if operation.options.strictness == Strictness::Warn {
        warnings.extend(decoded.complaints);
    }
    let mut object = decoded.value;
    prepare::name(operation, &object)?;
    prepare::namespace(operation, &mut object)?;
    managed::update(operation, live, &mut object);
    prepare::owners(operation, &mut object, true);
    Ok(object)
}

/// What a strict reader minds about an intent is told after what is wrong with it.
fn given_twice(
    operation: &Operation<'_>,
    duplicates: &[String],
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    match operation.options.strictness {
        Strictness::Strict if !duplicates.is_empty() => {
            let lines: String = duplicates.iter().map(|line| format!("\n  {line}")).collect();
            Err(Status::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{lines}"
            )))
        }
        Strictness::Warn => {
            warnings.extend(duplicates.iter().cloned());
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The object that an apply makes, defaulted. Custom objects keep what it leaves behind, nulls too, until they are judged.
fn applied(operation: &Operation<'_>, intent: &Value, live: Option<&Value>) -> Result<Value, Status> {
    let resource = &operation.resource;
    let mut applied = managed::apply(operation, live, intent)?;
    if live.is_none() {
        refuse_uid(operation, &applied)?;
    }
    if !resource.custom {
        let fits = unstructured::fit(&FACTS.structs, &resource.definition, &mut applied);
        let decoded = fits.and_then(|()| decode::object(resource, applied));
        return Ok(decoded.map_err(|why| unconvertible(resource, intent, &why))?.value);
    }
    if let Some(schema) = &resource.schema {
        default::fill_in(schema, &mut applied);
    }
    Ok(applied)
}

/// A patched object as errors quote it: numbers as they were written, so that `1.0` is not yet `1`.
fn quoted(patched: &Value) -> String {
    patched.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// An intent that names a UID is about an object that exists.
fn refuse_uid(operation: &Operation<'_>, applied: &Value) -> Result<(), Status> {
    match text(applied, &["metadata", "uid"]) {
        "" => Ok(()),
        uid => {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            Err(Status::conflict(operation.resource.named(), &operation.name, &why))
        }
    }
}

/// 500, with no reason: so the reference tells of an intent whose values do not fit its type.
fn unconvertible(resource: &Resource, intent: &Value, why: &str) -> Status {
    let (namespace, name) = (text(intent, &["metadata", "namespace"]), text(intent, &["metadata", "name"]));
    let kind = format!("{}/{}, Kind={}", resource.group, resource.version, resource.kind);
    Status::plain(format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: unable to convert unstructured \
         object to {kind}: {}",
        strategic::decoding_error(why.to_owned())
    ))
}
