//! Whether an object may be stored: its metadata, then what its kind or schema says.

use super::Operation;
use crate::kinds::text;
use crate::query::causes;
use crate::resource::Resource;
use crate::status::{Named, Status};
use serde_json::Value;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::meta::NameRule;
use windlass_schema::{meta, validate};

/// Checks a new object.
pub(crate) fn create(operation: &Operation<'_>, object: &Value) -> Result<(), Status> {
    let resource = &operation.resource;
    let errors = match resource.rules {
        Some(rules) => {
            let mut errors = metadata(resource, object, rules.name);
            errors.extend((rules.validate)(object));
            errors
        }
        None => match types(resource, object) {
            errors if errors.is_empty() => {
                let mut errors = metadata(resource, object, NameRule::Subdomain);
                if let Some(schema) = &resource.schema {
                    errors.extend(validate::validate(schema, object, &Path::root()));
                }
                errors
            }
            errors => errors,
        },
    };
    refuse(resource, object, &errors)
}

/// Checks a changed object. What the reference checks twice is told twice.
pub(crate) fn update(operation: &Operation<'_>, new: &Value, old: &Value) -> Result<(), Status> {
    let resource = &operation.resource;
    let path = Path::new("metadata");
    let changes = || meta::validate_update(&new["metadata"], &old["metadata"], &path);
    let mut errors = metadata(resource, new, NameRule::PathSegment);
    errors.extend(changes());
    match resource.rules {
        Some(rules) => {
            if rules.repeats_metadata {
                errors.extend(changes());
            }
            errors.extend((rules.validate_update)(new, old, &operation.subresource));
            if rules.revalidates {
                errors.extend(metadata(resource, new, rules.name));
                errors.extend((rules.validate)(new));
            }
        }
        None => {
            let wrong = types(resource, new);
            if !wrong.is_empty() {
                return refuse(resource, new, &wrong);
            }
            errors.extend(changes());
            if let Some(schema) = &resource.schema {
                errors.extend(match operation.subresource.as_str() {
                    "status" => validate::validate_status_update(schema, new, old),
                    _ => validate::validate_update(schema, new, old, &Path::root()),
                });
            }
        }
    }
    refuse(resource, new, &errors)
}

fn metadata(resource: &Resource, object: &Value, rule: NameRule) -> Vec<FieldError> {
    meta::validate(&object["metadata"], resource.namespaced, rule, &Path::new("metadata"))
}

fn types(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let (kind, version) = (text(object, &["kind"]), text(object, &["apiVersion"]));
    let mut errors = Vec::new();
    if kind != resource.kind {
        errors.push(FieldError::invalid(&Path::new("kind"), kind, format!("must be {}", resource.kind)));
    }
    let expected = resource.api_version();
    if version != expected {
        errors.push(FieldError::invalid(&Path::new("apiVersion"), version, format!("must be {expected}")));
    }
    errors
}

fn refuse(resource: &Resource, object: &Value, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    let kind = match text(object, &["kind"]) {
        "" => &resource.kind,
        kind => kind,
    };
    let named = Named { group: &resource.group, kind };
    Err(Status::invalid(named, text(object, &["metadata", "name"]), causes(errors)))
}
