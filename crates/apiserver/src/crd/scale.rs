//! The scale subresource of a custom resource: its replicas paths, and whether what is there is a number of replicas.

use crate::object::text;
use serde_json::Value;
use std::collections::BTreeMap;
use windlass_schema::field::{FieldError, Path};

/// Where a version of a custom resource keeps what its scale shows.
#[derive(Debug, Clone, Default)]
pub struct ScalePaths {
    /// The wanted replicas, such as `.spec.replicas`.
    pub spec: String,
    /// Those that there are.
    pub status: String,
    /// The selector of their pods; may be empty.
    pub selector: String,
    /// Per `apiVersion` of the kind, where the wanted replicas are; none for a version without a scale.
    pub versions: BTreeMap<String, Option<Vec<String>>>,
}

/// The names on a simple path.
pub(crate) fn steps(path: &str) -> Vec<String> {
    path.strip_prefix('.').unwrap_or(path).split('.').map(str::to_owned).collect()
}

/// The paths of a version's scale, if it has one. `all` are the versions of its definition.
pub(crate) fn paths(version: &Value, group: &str, all: &[Value]) -> Option<ScalePaths> {
    let scale = of(version)?;
    let versions = all.iter().map(|version| {
        let path = of(version).map(|scale| steps(text(scale, &["specReplicasPath"])));
        (format!("{group}/{}", text(version, &["name"])), path)
    });
    Some(ScalePaths {
        spec: text(scale, &["specReplicasPath"]).to_owned(),
        status: text(scale, &["statusReplicasPath"]).to_owned(),
        selector: text(scale, &["labelSelectorPath"]).to_owned(),
        versions: versions.collect(),
    })
}

fn of(version: &Value) -> Option<&Value> {
    version.pointer("/subresources/scale").filter(|scale| !scale.is_null())
}

/// A number on a path; none if there is nothing. The error is in Go's words.
pub(crate) fn number(object: &Value, path: &str) -> Result<Option<i64>, String> {
    let Some(found) = walk(object, path)? else { return Ok(None) };
    match found.as_i64() {
        Some(number) => Ok(Some(number)),
        None => Err(wrong(path, found, "int64")),
    }
}

/// A text on a path; none if there is nothing.
pub(crate) fn string<'a>(object: &'a Value, path: &str) -> Result<Option<&'a str>, String> {
    let Some(found) = walk(object, path)? else { return Ok(None) };
    found.as_str().map(Some).ok_or_else(|| wrong(path, found, "string"))
}

fn walk<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut here = object;
    let mut way = String::new();
    for step in steps(path) {
        way = format!("{way}.{step}");
        match here {
            Value::Object(fields) => match fields.get(&step) {
                Some(field) => here = field,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(wrong(&way, other, "map[string]interface{}")),
        }
    }
    Ok(Some(here))
}

fn wrong(path: &str, found: &Value, wanted: &str) -> String {
    let (shown, kind) = match found {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(truth) => (truth.to_string(), "bool"),
        Value::Number(number) if number.is_f64() => (number.to_string(), "float64"),
        Value::Number(number) => (number.to_string(), "int64"),
        Value::String(text) => (text.clone(), "string"),
        Value::Array(_) => (found.to_string(), "[]interface {}"),
        Value::Object(_) => (found.to_string(), "map[string]interface {}"),
    };
    format!("{path} accessor error: {shown} is of the type {kind}, expected {wanted}")
}

/// Whether what is on the paths are replicas; only those of the status where the status alone is written.
pub(crate) fn validate(paths: &ScalePaths, object: &Value, status_only: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let numbers = [(&paths.spec, !status_only), (&paths.status, true)];
    for (path, _) in numbers.into_iter().filter(|(_, looked_at)| *looked_at) {
        let mut refuse =
            |value: i64, why: String| errors.push(FieldError::invalid(&Path::new(path), value, why));
        match number(object, path) {
            Err(why) => refuse(0, why),
            Ok(Some(number)) if number < 0 => refuse(number, "should be a non-negative integer".to_owned()),
            Ok(Some(number)) if number > i64::from(i32::MAX) => {
                refuse(number, format!("should be less than or equal to {}", i32::MAX));
            }
            Ok(_) => {}
        }
    }
    if !paths.selector.is_empty()
        && let Err(why) = string(object, &paths.selector)
    {
        errors.push(FieldError::invalid(&Path::new(&paths.selector), "", why));
    }
    errors
}
