//! PATCH: JSON patch, JSON merge patch, strategic merge patch and apply.

use super::rewrite::{Expectation, rewrite};
use super::{Answer, Call, strategic};
use crate::flow::{Operation, decode, managed, prepare};
use crate::kinds::text;
use crate::negotiate::{self, PatchType};
use crate::query::{Strictness, Write, WriteOptions, causes};
use crate::resource::Resource;
use crate::status::{Named, Status};
use crate::typed;
use serde_json::{Map, Value};
use windlass_schema::field::{FieldError, Path};
use windlass_schema::{json, patch};

/// A patch, read.
enum Patch {
    Json(Value),
    Merge { patch: Value, duplicates: Vec<String> },
    Strategic(Result<(Map<String, Value>, Vec<String>), String>),
    Apply(Value),
}

pub(crate) async fn patch(call: &Call<'_>) -> Result<Answer, Status> {
    let resource = &call.resource;
    let kind = negotiate::patch(&call.content_type, resource.custom)?;
    let options =
        WriteOptions::read(&call.query, Write::Patch { apply: kind == PatchType::Apply }, &call.user_agent)?;
    let operation = call.operation(options);
    let patch = read(kind, &call.body)?;
    let may_create = kind == PatchType::Apply && operation.subresource.is_empty();
    let make = |live: Option<&Value>| {
        let mut warnings = Vec::new();
        let object = make(&operation, &patch, live, &mut warnings);
        *call.warnings.lock() = warnings;
        object
    };
    let expectation = Expectation { may_create, ..Expectation::default() };
    let (outcome, created) = rewrite(&operation, &expectation, make).await?;
    Ok(Answer::new(if created { 201 } else { 200 }, outcome.bytes(resource)))
}

fn read(kind: PatchType, bytes: &[u8]) -> Result<Patch, Status> {
    if kind == PatchType::Apply {
        let intent = decode::yaml(bytes).map_err(|error| {
            Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: {error}"))
        })?;
        return Ok(Patch::Apply(intent));
    }
    if kind == PatchType::Strategic {
        return Ok(Patch::Strategic(strategic::read(bytes)));
    }
    let undecodable = |error: String| Status::bad_request(format!("error decoding patch: {error}"));
    let document = json::read(bytes).map_err(|error| undecodable(error.to_string()))?;
    let wanted = |go: &str| {
        undecodable(format!(
            "json: cannot unmarshal {} into Go value of type {go}",
            typed::shape(&document.value)
        ))
    };
    match (kind, &document.value) {
        (PatchType::Json, Value::Array(_)) => Ok(Patch::Json(document.value)),
        (PatchType::Json, _) => Err(wanted("[]handlers.jsonPatchOp")),
        (_, Value::Object(_)) => Ok(Patch::Merge { patch: document.value, duplicates: document.duplicates }),
        _ => Err(wanted("map[string]interface {}")),
    }
}

fn make(
    operation: &Operation<'_>,
    patch: &Patch,
    live: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let resource = &operation.resource;
    let (mut shown, mut fits, mut duplicates) = (None, Ok(()), &Vec::new());
    let patched = match (patch, live) {
        (Patch::Apply(intent), _) => {
            let applied = managed::apply(operation, live, intent)?;
            if live.is_none() {
                refuse_uid(operation, &applied)?;
            }
            applied
        }
        (_, None) => return Err(Status::not_found(resource.named(), &operation.name)),
        (Patch::Json(patch), Some(live)) => {
            patch::json_patch(live, patch).map_err(|_| Status::patch_rejected())?
        }
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
            (shown, fits) = (Some(patched.shown), fit);
            patched.object
        }
    };
    let unfit = |why: &str| {
        let shown = shown.clone().unwrap_or_else(|| json::to_string(&patched));
        let error = FieldError::invalid(&Path::new("patch"), shown, why);
        Status::invalid(Named { group: "", kind: "" }, "", causes(&[error]))
    };
    fits.map_err(|why| unfit(&why))?;
    if resource.custom && text(&patched, &["kind"]).is_empty() {
        return Err(unfit(&format!("Object 'Kind' is missing in '{}'", json::to_string(&patched))));
    }
    let decoded = match patch {
        Patch::Apply(_) => decode::applied(resource, patched.clone()),
        _ => decode::object(resource, patched.clone()),
    };
    let mut decoded = decoded.map_err(|why| match patch {
        Patch::Apply(intent) => unconvertible(resource, intent, &why),
        Patch::Strategic(_) => unfit(&strategic::told(why)),
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
    if !matches!(patch, Patch::Apply(_)) {
        managed::update(operation, live, &mut object);
    }
    Ok(object)
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
         object to {kind}: error decoding from json: {why}"
    ))
}
