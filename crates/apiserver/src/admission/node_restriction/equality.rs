//! When a field counts as unchanged.

use serde_json::Value;

/// Whether two values say the same: what is empty is as good as missing.
pub(super) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, value)| same(Some(value), b.get(key)))
                && b.iter().all(|(key, value)| a.contains_key(key) || is_empty(value))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(one), None) | (None, Some(one)) => is_empty(one),
        (a, b) => a == b,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_empty_is_as_good_as_missing() {
        let equal = |a: Value, b: Value| same(Some(&a), Some(&b)) && same(Some(&b), Some(&a));
        assert!(equal(json!({"a": 1, "b": {}}), json!({"a": 1, "c": []})));
        assert!(same(None, Some(&json!([]))));
        assert!(!equal(json!({"a": 1}), json!({"a": 2})));
        assert!(!equal(json!({"a": 1}), json!({"b": 1})));
        assert!(!equal(json!([1, 2]), json!([1])));
    }
}
