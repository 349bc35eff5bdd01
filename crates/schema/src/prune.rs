//! Pruning: removes fields that the schema does not specify.

use crate::schema::{Additional, Schema};
use serde_json::{Map, Value};
use std::sync::Arc;

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes the fields that the schema does not specify and returns their paths, sorted: `spec.list[0].x`. At the `root` of an
/// object, as in embedded resources, `apiVersion`, `kind` and `metadata` are left alone.
pub fn prune(schema: &Arc<Schema>, value: &mut Value, root: bool) -> Vec<String> {
    let mut pruner = Pruner::default();
    let schema = schema.resolved();
    pruner.node(Some(&schema), value, root || schema.embedded_resource, schema.preserve_unknown);
    pruner.dropped.sort();
    pruner.dropped
}

#[derive(Default)]
struct Pruner {
    path: String,
    dropped: Vec<String>,
}

impl Pruner {
    fn descend(&mut self, schema: Option<&Arc<Schema>>, value: &mut Value) {
        if let Value::Object(_) | Value::Array(_) = value {
            let schema = schema.map(Arc::clone).map(|schema| schema.resolved());
            let resource = schema.as_ref().is_some_and(|schema| schema.embedded_resource);
            let keep = schema.as_ref().is_some_and(|schema| schema.preserve_unknown);
            self.node(schema.as_ref(), value, resource, keep);
        }
    }

    /// `keep`: unknown fields stay, but what is known is still looked into.
    fn node(&mut self, schema: Option<&Arc<Schema>>, value: &mut Value, resource: bool, keep: bool) {
        match value {
            Value::Object(fields) => self.object(schema, fields, resource, keep),
            Value::Array(items) => {
                let outer = self.path.len();
                let item_schema = schema.and_then(|schema| schema.items.as_ref());
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    match item_schema.map(|schema| schema.resolved()) {
                        // Below a list whose unknown fields stay, they stay in its items too.
                        Some(schema) if keep => {
                            self.node(Some(&schema), item, schema.embedded_resource, true)
                        }
                        None if keep => {}
                        _ => self.descend(item_schema, item),
                    }
                    self.path.truncate(outer);
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        schema: Option<&Arc<Schema>>,
        fields: &mut Map<String, Value>,
        resource: bool,
        keep: bool,
    ) {
        let outer = self.path.len();
        fields.retain(|name, value| {
            if resource && META_FIELDS.contains(&name.as_str()) {
                return true;
            }
            let known = schema.and_then(|schema| match (schema.properties.get(name), &schema.additional) {
                (Some(schema), _) => Some(Some(schema)),
                (None, Some(Additional::Schema(schema))) => Some(Some(schema)),
                (None, Some(Additional::Allowed(_))) => Some(None),
                (None, None) => None,
            });
            if outer > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            match known {
                Some(schema) => self.descend(schema, value),
                None if keep => {}
                None if outer == 0 && META_FIELDS.contains(&name.as_str()) => {}
                None => self.dropped.push(self.path.clone()),
            }
            self.path.truncate(outer);
            known.is_some() || keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_no_schema_knows_is_dropped() {
        for (schema, value, root, left, dropped) in [
            (
                json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}),
                json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "spec": {"a": "a", "b": {"c": 1}}, "z": 1}),
                true,
                json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "spec": {"a": "a"}}),
                vec!["spec.b", "z"],
            ),
            (
                json!({"properties": {"l": {"items": {"properties": {"a": {}}}}, "m": {"additionalProperties": {"properties": {"a": {}}}}}}),
                json!({"l": [{"a": {"q": 1}, "b": 1}], "m": {"k": {"a": 1, "c": 2}}, "metadata": {}}),
                false,
                json!({"l": [{"a": {}}], "m": {"k": {"a": 1}}}),
                vec!["l[0].a.q", "l[0].b", "m.k.c"],
            ),
            (
                json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"properties": {}}}}),
                json!({"a": {"x": 1}, "b": {"y": 1}}),
                false,
                json!({"a": {}, "b": {"y": 1}}),
                vec!["a.x"],
            ),
            (
                json!({"properties": {"e": {"x-kubernetes-embedded-resource": true, "properties": {"spec": {"properties": {}}}}}}),
                json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "spec": {"y": 1}, "z": 1}}),
                false,
                json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "spec": {}}}),
                vec!["e.spec.y", "e.z"],
            ),
        ] {
            let schema = Arc::new(Schema::from_json(&schema).unwrap());
            let mut value = value;
            assert_eq!(prune(&schema, &mut value, root), dropped);
            assert_eq!(value, left);
        }
    }
}
