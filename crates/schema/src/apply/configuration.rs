//! A configuration laid over an object by a mutating policy: as server-side apply merges, without owners and without removal.

use super::merge::merge;
use super::path::PathElement;
use super::typed;
use super::types::{ListKind, MapKind, Member, TypeView};
use crate::schema::Schema;
use serde_json::Value;
use std::sync::Arc;

/// What `live` becomes when `configuration` is laid over it.
///
/// # Errors
/// When one of them is not of its type, or what is only replaced as a whole would be merged.
pub fn merge_configuration(
    schema: Option<Arc<Schema>>,
    live: &Value,
    configuration: &Value,
) -> Result<Value, String> {
    let view = TypeView::of_kind(schema);
    typed::check(&view, configuration, false)
        .map_err(|errors| format!("failed to convert patch object to typed object: {errors}"))?;
    let mut atomic = Vec::new();
    find_atomic(&view, configuration, "", &mut atomic);
    if !atomic.is_empty() {
        let why = "may not mutate atomic arrays, maps or structs";
        return Err(format!("invalid ApplyConfiguration: {why}: {}", atomic.join(", ")));
    }
    typed::check(&view, live, true)
        .map_err(|errors| format!("failed to convert original object to typed object: {errors}"))?;
    Ok(merge(&view, live, configuration))
}

/// Where the configuration has what is replaced as a whole; it was checked, so that it is no deeper than it may be.
fn find_atomic(view: &TypeView, value: &Value, path: &str, found: &mut Vec<String>) {
    let shapes = view.shapes();
    match value {
        Value::Object(fields) if shapes.map.is_some() => {
            if shapes.map == Some(MapKind::Atomic) {
                found.push(path.to_owned());
            }
            for (name, value) in fields {
                if let Member::Declared(field) = view.field(name) {
                    find_atomic(&field, value, &format!("{path}.{name}"), found);
                }
            }
        }
        Value::Array(items) if shapes.list.is_some() => {
            if shapes.list == Some(ListKind::Atomic) {
                found.push(path.to_owned());
            }
            let item = view.item();
            for (index, value) in items.iter().enumerate() {
                find_atomic(&item, value, &format!("{path}{}", PathElement::Index(index as i64)), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(configuration: Value) -> Result<Value, String> {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "integer"},
            "words": {"type": "array", "items": {"type": "string"}},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}},
        }}}});
        let live = json!({"spec": {"a": 1, "words": ["x"], "list": [{"name": "one", "n": 1}]}});
        merge_configuration(Some(Arc::new(Schema::from_json(&schema).unwrap())), &live, &configuration)
    }

    #[test]
    fn what_a_configuration_says_is_laid_over() {
        let configuration = json!({"spec": {"a": 2, "list": [{"name": "two"}, {"name": "one", "n": 3}]}});
        let merged = merged(configuration).unwrap();
        assert_eq!(merged["spec"]["a"], 2);
        assert_eq!(merged["spec"]["words"], json!(["x"]));
        assert_eq!(merged["spec"]["list"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_is_replaced_as_a_whole_is_not_merged() {
        let why = merged(json!({"spec": {"words": ["y"]}})).unwrap_err();
        assert_eq!(
            why,
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.words"
        );
        let why = merged(json!({"spec": {"other": 1}})).unwrap_err();
        assert!(why.contains(".spec.other: field not declared in schema"), "{why}");
    }
}
