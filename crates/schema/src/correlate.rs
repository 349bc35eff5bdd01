//! Correlates parts of the old and the new value, and says whether they changed: for transition rules and ratcheting.

use crate::json;
use crate::schema::{Additional, ListType, Schema};
use serde_json::Value;
use std::sync::Arc;

/// The old items of a list whose items have keys, found by these keys.
pub(crate) struct Correlated<'a> {
    keys: &'a [String],
    items: std::collections::HashMap<Vec<u8>, &'a Value>,
}

impl<'a> Correlated<'a> {
    pub(crate) fn of(schema: &'a Schema, old: Option<&'a Value>) -> Option<Self> {
        let old = old?.as_array().filter(|_| schema.list_type == Some(ListType::Map))?;
        let keys = schema.list_map_keys.as_slice();
        let items = old.iter().filter_map(|item| Some((Self::key(keys, item)?, item))).collect();
        Some(Self { keys, items })
    }

    fn key(keys: &[String], item: &Value) -> Option<Vec<u8>> {
        let fields = item.as_object()?;
        let scalar = |value: &&Value| !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
        let key: Option<Vec<Value>> =
            keys.iter().map(|key| fields.get(key).filter(scalar).cloned()).collect();
        Some(json::write(&Value::Array(key?)))
    }

    pub(crate) fn item(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&Self::key(self.keys, item)?).copied()
    }
}

/// Did the value stay as it was? Lists with keys may change their order; fields that no schema knows count as changed.
pub(crate) fn unchanged(schema: &Arc<Schema>, new: &Value, old: &Value) -> bool {
    let schema = &schema.resolved();
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, new)| {
                    let schema = match (schema.properties.get(name), &schema.additional) {
                        (Some(schema), _) | (None, Some(Additional::Schema(schema))) => Some(schema),
                        _ => None,
                    };
                    schema.zip(old.get(name)).is_some_and(|(schema, old)| unchanged(schema, new, old))
                })
        }
        (Value::Array(new), Value::Array(old_items)) => {
            match (Correlated::of(schema, Some(old)), &schema.items) {
                (Some(correlated), Some(items)) => {
                    new.len() == old_items.len()
                        && new
                            .iter()
                            .all(|new| correlated.item(new).is_some_and(|old| unchanged(items, new, old)))
                }
                _ => new == old_items,
            }
        }
        (new, old) => new == old,
    }
}
