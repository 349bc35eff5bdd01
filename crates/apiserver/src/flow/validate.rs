//! Whether an object may be stored: its metadata, then what its kind or schema says.

use crate::crd::scale;
use crate::kinds;
use crate::kinds::{Fixed, Rules};
use crate::object::{at, text};
use crate::operation::Operation;
use crate::resource::Resource;
use crate::status::causes;
use crate::status::{Named, Status};
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_schema::field::{ErrorKind, FieldError, Path};
use windlass_schema::meta::NameRule;
use windlass_schema::{meta, validate};

/// Checks a new object.
pub(crate) fn create(operation: &Operation<'_>, object: &Value) -> Result<(), Status> {
    let resource = &operation.resource;
    let errors = match resource.rules {
        Some(rules) => {
            let mut errors = metadata(resource, object, rules.name);
            errors.extend(unqualified_finalizers(rules, object));
            errors.extend((rules.validate)(object));
            errors.extend(structs(operation, object));
            errors
        }
        None => match types(resource, object) {
            errors if errors.is_empty() => {
                let mut errors = metadata(resource, object, NameRule::Subdomain);
                if let Some(schema) = &resource.schema {
                    errors.extend(validate::validate(schema, object, &Path::root()));
                }
                if let Some(paths) = &resource.scale {
                    errors.extend(scale::validate(paths, object, false));
                }
                by_rules(operation, object, None, &mut errors);
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
            let own = operation.subresource.is_empty();
            let again = if own { rules.rechecks } else { rules.status_rechecks };
            for _ in 0..again.changes {
                errors.extend(changes());
                errors.extend(unqualified_finalizers(rules, new));
            }
            for _ in 0..again.whole {
                errors.extend(metadata(resource, new, rules.name));
                errors.extend(unqualified_finalizers(rules, new));
            }
            errors.extend((rules.validate_update)(new, old, &operation.subresource));
            errors.extend(changed_fixed(rules, new, old));
            for _ in 0..if own { 1 + usize::from(rules.validates_twice) } else { 0 } {
                if rules.revalidates {
                    errors.extend((rules.validate)(new));
                }
                let checked =
                    |error: &FieldError| !rules.unchecked.iter().any(|path| error.path.starts_with(path));
                errors.extend(structs(operation, new).into_iter().filter(checked));
            }
            if operation.subresource == "ephemeralcontainers" {
                errors.extend(privileged(operation, new));
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
            if let Some(paths) = &resource.scale {
                errors.extend(scale::validate(paths, new, operation.subresource == "status"));
            }
            by_rules(operation, new, Some(old), &mut errors);
        }
    }
    refuse(resource, new, &errors)
}

/// What is wrong with the structs that an object of a built-in kind is made of.
fn structs(operation: &Operation<'_>, object: &Value) -> Vec<FieldError> {
    let mut errors = kinds::validate::object(&operation.resource.definition, object);
    errors.extend(privileged(operation, object));
    errors
}

/// The containers that may not be as privileged as they are, if any may not.
fn privileged(operation: &Operation<'_>, object: &Value) -> Vec<FieldError> {
    match operation.api.allow_privileged {
        true => Vec::new(),
        false => kinds::validate::privileged(&operation.resource.definition, object),
    }
}

/// What the rules of its definition say of an object; only if nothing is wrong that could confuse them.
fn by_rules(operation: &Operation<'_>, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(rules) = &operation.resource.validations else { return };
    let confusing = [
        ErrorKind::NotSupported,
        ErrorKind::Required,
        ErrorKind::TooLong,
        ErrorKind::TooMany,
        ErrorKind::TypeInvalid,
    ];
    if errors.iter().any(|error| confusing.contains(&error.kind)) {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors \
                   to complete validation";
        errors.push(FieldError::invalid(&Path::root(), Value::Null, why));
        return;
    }
    let verdict = rules.validate(object, old);
    errors.extend(verdict.errors);
    operation.warn(verdict.warnings);
}

/// Fields that are set once.
fn changed_fixed(rules: &Rules, new: &Value, old: &Value) -> Vec<FieldError> {
    let at = |object: &'_ Value, path: &str| {
        path.split('.').try_fold(object, |value, name| value.get(name)).cloned().unwrap_or_default()
    };
    let mut errors = Vec::new();
    for (place, fixed) in rules.fixed {
        let value = at(new, place);
        if value == at(old, place) {
            continue;
        }
        let mut names = place.split('.');
        let first = Path::new(names.next().unwrap_or_default());
        let path = names.fold(first, |path, name| path.child(name));
        match fixed {
            Fixed::Invalid(why) => errors.push(FieldError::invalid(&path, value, *why)),
            Fixed::InvalidText(why) => {
                errors.push(FieldError::invalid(&path, value.as_str().unwrap_or_default(), *why));
            }
            Fixed::Forbidden(why) => errors.push(FieldError::forbidden(&path, *why)),
            Fixed::Shown(why, shown) => {
                let shown = shown(&value);
                errors.push(FieldError::invalid(&path, value, *why).showing(shown));
            }
            Fixed::Mostly(check) => errors.extend(check(new, old)),
        }
    }
    errors
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list = at(object, &["metadata", "finalizers"]).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str)
}

/// A finalizer without a domain, and not one of Kubernetes' own.
fn is_unqualified(finalizer: &str) -> bool {
    !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
}

/// Most built-in kinds ask more of finalizers than custom resources do.
fn unqualified_finalizers(rules: &Rules, object: &Value) -> Vec<FieldError> {
    if !rules.qualified_finalizers {
        return Vec::new();
    }
    let path = Path::new("metadata").child("finalizers");
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let unqualified = finalizers(object).enumerate().filter(|(_, name)| is_unqualified(name));
    unqualified.map(|(index, name)| FieldError::invalid(&path.index(index), name, why)).collect()
}

/// What is allowed and unwise: as a kind's row says, and in custom objects, finalizers that others may use too.
pub(crate) fn warnings(operation: &Operation<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    let resource = &operation.resource;
    if let Some(rules) = resource.rules {
        return if operation.subresource.is_empty() { (rules.warn)(new, old) } else { Vec::new() };
    }
    let had: BTreeSet<&str> = old.into_iter().flat_map(finalizers).collect();
    let added: BTreeSet<&str> =
        finalizers(new).filter(|name| !had.contains(name) && is_unqualified(name)).collect();
    let warning = |name: &str| {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts \
             with other finalizer writers"
        )
    };
    added.into_iter().map(warning).collect()
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
    // What is stored in the shape of another group is judged there.
    let group = resource.shape.map_or(resource.group.as_str(), |shape| shape.stored_group());
    let named = Named { group, kind };
    Err(Status::invalid(named, text(object, &["metadata", "name"]), causes(errors)))
}
