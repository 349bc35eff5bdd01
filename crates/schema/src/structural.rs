//! Is a CRD's `openAPIV3Schema` structural, and does it keep the rules for CRDs?
//!
//! The raw JSON is checked, since what is wrong with it must be named where a [`Schema`] could not even hold it.

mod completeness;
mod defaults;
mod invariants;
mod keywords;
mod node;

use crate::field::{FieldError, Path};
use crate::rules;
use crate::schema::MAX_SCHEMA_DEPTH;
use crate::schema::Schema;
use node::Node;
use serde_json::Value;
use std::sync::Arc;

/// Everything wrong with the schema at `path`, such as `spec.versions[0].schema.openAPIV3Schema`.
pub fn check(schema: &Value, path: &Path) -> Vec<FieldError> {
    let Some(root) = Node::of(schema) else {
        return vec![FieldError::type_invalid(path, schema.clone(), "must be an object")];
    };
    if too_deep(schema, 2 * MAX_SCHEMA_DEPTH) {
        let why = format!("schemas may not nest deeper than {MAX_SCHEMA_DEPTH} levels");
        return vec![FieldError::invalid(path, "", why)];
    }
    let mut errors = Vec::new();
    if root.flag("nullable") {
        errors.push(FieldError::forbidden(&path.child("nullable"), "nullable cannot be true at the root"));
    }
    // What cannot be a structural schema at all is told only if nothing else says it better.
    let unsupported = root.unsupported();
    let read = Schema::read_unsettled(schema, path);
    if unsupported.is_none() {
        let mut structural = Vec::new();
        invariants::check(root, path, &mut structural);
        completeness::check(root, path, &mut structural);
        // By their texts, as the real server sorts them.
        structural.sort_by_cached_key(ToString::to_string);
        if structural.is_empty()
            && let Ok(schema) = &read
        {
            defaults::check(&Arc::new(schema.clone()), path, &mut structural);
        }
        errors.extend(structural);
    }
    keywords::check(root, path, &mut errors);
    if errors.is_empty() {
        errors.extend(unsupported.map(|why| FieldError::invalid(path, "", why)));
    }
    match read {
        Err(wrong) if errors.is_empty() => errors.extend(wrong),
        // Rules are compiled only for what is in order: their types would be wrong too.
        Ok(schema) if errors.is_empty() => errors.extend(rules::check(&schema, path)),
        _ => {}
    }
    errors
}

fn too_deep(value: &Value, left: usize) -> bool {
    match (value, left.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => true,
        (Value::Array(items), Some(left)) => items.iter().any(|item| too_deep(item, left)),
        (Value::Object(fields), Some(left)) => fields.values().any(|field| too_deep(field, left)),
        _ => false,
    }
}
