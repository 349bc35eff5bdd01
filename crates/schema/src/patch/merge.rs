//! JSON merge patch: RFC 7386, with one peculiarity of the API server.

use serde_json::Value;

/// Merges a patch into a value: objects field by field, null removes, everything else replaces.
///
/// Where the RFC would keep nulls in objects inside of a new list, the server drops them, unless the list replaces an
/// object that is a field.
pub fn merge(target: &mut Value, patch: &Value) {
    merge_in(target, patch, true);
}

fn merge_in(target: &mut Value, patch: &Value, root: bool) {
    let Value::Object(changes) = patch else {
        let keeps_nulls = target.is_object() && !root;
        *target = patch.clone();
        if !keeps_nulls {
            drop_nulls(target);
        }
        return;
    };
    let Value::Object(fields) = target else {
        *target = patch.clone();
        return drop_nulls(target);
    };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge_in(fields.entry(name.as_str()).or_insert(Value::Null), change, false);
        }
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, field| {
            drop_nulls(field);
            !field.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            // The server's habit.
            (json!({}), json!({"a": [{"b": null}, null]}), json!({"a": [{}, null]})),
            (json!({"a": {}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]})),
        ] {
            let mut target = target;
            merge(&mut target, &patch);
            assert_eq!(target, result, "{patch}");
        }
    }
}
