//! Is a value what its schema asks for? The answer comes in Kubernetes' own errors: kinds, paths, texts and order.
//!
//! Fields are visited in the order of their names where the real server's order is random.

mod numbers;
mod outcome;
mod walk;

use crate::field::{FieldError, Path};
use crate::schema::Schema;
use crate::{embedded, lists};
use serde_json::Value;
use std::sync::Arc;

/// Checks a new value: the schema's own rules, then embedded resources, then the keys of sets and maps.
pub fn validate(schema: &Arc<Schema>, value: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = against_schema(schema, value, path);
    errors.extend(embedded::validate(schema, value, path));
    errors.extend(lists::validate(schema, value, path));
    errors
}

/// Checks a changed value. What was wrong before and did not change is let through, as Kubernetes does.
pub fn validate_update(schema: &Arc<Schema>, new: &Value, old: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = walk::check(schema, new, Some(old)).into_field_errors(path);
    errors.extend(embedded::validate(schema, new, path));
    if lists::validate(schema, old, path).is_empty() {
        errors.extend(lists::validate(schema, new, path));
    }
    errors
}

/// The schema's own rules alone.
pub(crate) fn against_schema(schema: &Arc<Schema>, value: &Value, path: &Path) -> Vec<FieldError> {
    walk::check(schema, value, None).into_field_errors(path)
}
