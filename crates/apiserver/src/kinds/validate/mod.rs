//! What Kubernetes asks of the structs that objects of built-in kinds are made of.
//!
//! Most of it is rows: a struct, a field, and a check. What depends on more than one field is a function of its struct, in
//! a file per theme. One walk over an object and its type finds all of them, wherever they are.

mod admission_policies;
mod check;
mod container;
mod limits;
mod network;
mod placement;
mod pod;
mod policy;
mod rows;
mod schedule;
mod security;
mod service;
mod storage;
mod volume;
mod webhooks;
mod workload;

use super::{text, walk};
use crate::facts::FACTS;
use check::Check;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::LazyLock;
use windlass_schema::field::{ErrorKind, FieldError, Path};

pub(super) use limits::quota_update;
pub(super) use placement::node_update;
pub(super) use storage::{claim_update, csi_node_update, driver_update, networks_update, volume_update};
pub(super) use workload::{lives_on, matches};

type Object = Map<String, Value>;

/// What a struct is asked as a whole.
type Whole = fn(&Object, &Path, &mut Vec<FieldError>);

#[derive(Default)]
struct Rows {
    fields: Vec<(&'static str, &'static Check)>,
    whole: Vec<Whole>,
}

static ROWS: LazyLock<HashMap<&'static str, Rows>> = LazyLock::new(|| {
    let mut rows: HashMap<&str, Rows> = HashMap::new();
    for (name, field, check) in rows::FIELDS {
        rows.entry(name).or_default().fields.push((field, check));
    }
    for (name, whole) in rows::STRUCTS {
        rows.entry(name).or_default().whole.push(*whole);
    }
    rows
});

/// What is wrong with an object of this type.
pub(crate) fn object(definition: &str, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk::visit(&FACTS.structs, definition, object, &Path::root(), &mut |name, object, path| {
        if let Some(rows) = ROWS.get(name) {
            for (field, check) in &rows.fields {
                check.judge(object.get(*field).unwrap_or(&Value::Null), &path.child(field), &mut errors);
            }
            for whole in &rows.whole {
                whole(object, path, &mut errors);
            }
        }
    });
    errors.extend(mounts_of_invalid_volumes(definition, object, &errors));
    if definition.ends_with(".StatefulSet") {
        let claims =
            object.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array).into_iter().flatten();
        let claims: Vec<&str> = claims.map(|claim| text(claim, &["metadata", "name"])).collect();
        // What it claims are volumes of its pods.
        errors.retain(|error| {
            let name = error.value.as_ref().and_then(Value::as_str).unwrap_or_default();
            error.kind != ErrorKind::NotFound || !claims.contains(&name)
        });
    }
    errors
}

/// A volume that is not valid is none that a container can mount.
fn mounts_of_invalid_volumes(definition: &str, object: &Value, errors: &[FieldError]) -> Vec<FieldError> {
    let is_wrong = |path: &Path| {
        let path = path.to_string();
        errors.iter().any(|error| {
            error.path.strip_prefix(&path).is_some_and(|rest| rest.starts_with('.') || rest.is_empty())
        })
    };
    let mut more = Vec::new();
    if !errors.iter().any(|error| error.path.contains("volumes[")) {
        return more;
    }
    walk::visit(&FACTS.structs, definition, object, &Path::root(), &mut |name, spec, path| {
        if name != "core.v1.PodSpec" {
            return;
        }
        let names = |wrong: bool| -> Vec<&str> {
            let volumes = parts(spec, "volumes", path).filter(|(_, path)| is_wrong(path) == wrong);
            volumes.map(|(volume, _)| word(volume, "name")).collect()
        };
        let valid = names(false);
        let wrong: Vec<&str> = names(true).into_iter().filter(|name| !valid.contains(name)).collect();
        for containers in ["initContainers", "containers"] {
            for (container, path) in parts(spec, containers, path) {
                for mounts in ["volumeMounts", "volumeDevices"] {
                    let mounts = parts(container, mounts, &path);
                    let lost = mounts.filter(|(mount, _)| wrong.contains(&word(mount, "name")));
                    more.extend(lost.map(|(mount, path)| {
                        FieldError::not_found(&path.child("name"), word(mount, "name"))
                    }));
                }
            }
        }
    });
    more
}

/// Containers that ask for privileges, where the cluster grants none.
pub(crate) fn privileged(definition: &str, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk::visit(&FACTS.structs, definition, object, &Path::root(), &mut |name, object, path| {
        if name == "core.v1.SecurityContext" && flag(object, "privileged") {
            errors.push(FieldError::forbidden(&path.child("privileged"), "disallowed by cluster policy"));
        }
    });
    errors
}

/// The text of a field; empty if there is none.
fn word<'a>(object: &'a Object, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Object, field: &str) -> Option<i64> {
    object.get(field).and_then(Value::as_i64)
}

fn flag(object: &Object, field: &str) -> bool {
    object.get(field).and_then(Value::as_bool).unwrap_or(false)
}

fn part<'a>(object: &'a Object, field: &str) -> Option<&'a Object> {
    object.get(field).and_then(Value::as_object)
}

fn list<'a>(object: &'a Object, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The structs of a list, with their places.
fn parts<'a>(
    object: &'a Object,
    field: &str,
    path: &Path,
) -> impl Iterator<Item = (&'a Object, Path)> + use<'a> {
    let path = path.child(field);
    let items = list(object, field).iter().enumerate();
    items.filter_map(move |(index, item)| Some((item.as_object()?, path.index(index))))
}

fn has(object: &Object, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

fn invalid(errors: &mut Vec<FieldError>, path: &Path, value: impl Into<Value> + Clone, why: Vec<String>) {
    errors.extend(why.into_iter().map(|why| FieldError::invalid(path, value.clone(), why)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_about_a_field_that_exists() {
        let known = |name: &str, field: &str| {
            let prefixes =
                ["io.k8s.api.", "io.k8s.kube-aggregator.pkg.apis.", "io.k8s.apimachinery.pkg.apis."];
            prefixes.iter().any(|prefix| {
                let found = FACTS.structs.get(&format!("{prefix}{name}"));
                found.is_some_and(|known| field.is_empty() || known.fields.contains_key(field))
            })
        };
        for (name, field, _) in rows::FIELDS {
            assert!(known(name, field), "{name} has no {field}");
        }
        for (name, _) in rows::STRUCTS {
            assert!(known(name, ""), "no struct {name}");
        }
    }
}
