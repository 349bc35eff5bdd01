//! Where two values differ, a line each, for people to read.

use serde_json::Value;
use std::collections::BTreeSet;

/// More than this is not read by anyone.
const MOST: usize = 20;

/// What is not in `found` as `wanted` has it. Fields that `wanted` does not name may be anything; lists are as long as wanted.
///
/// ```
/// use serde_json::json;
/// use windlass_testing::difference::missing;
///
/// let found = json!({"spec": {"replicas": 2, "paused": true}});
/// assert!(missing(&json!({"spec": {"replicas": 2}}), &found).is_empty());
/// assert_eq!(missing(&json!({"spec": {"replicas": 3}}), &found), ["spec.replicas: is 2, should be 3"]);
/// ```
pub fn missing(wanted: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    walk(wanted, found, String::new(), false, &mut lines);
    lines
}

/// Every difference between the two.
///
/// ```
/// use serde_json::json;
/// use windlass_testing::difference::between;
///
/// assert_eq!(between(&json!({"a": 1}), &json!({"a": 1, "b": [2]})), ["b: is [2], should not be there"]);
/// ```
pub fn between(wanted: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    walk(wanted, found, String::new(), true, &mut lines);
    lines
}

fn walk(wanted: &Value, found: &Value, path: String, exact: bool, lines: &mut Vec<String>) {
    if lines.len() >= MOST {
        return;
    }
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let extra = found.keys().filter(|_| exact);
            for key in wanted.keys().chain(extra).collect::<BTreeSet<_>>() {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match (wanted.get(key), found.get(key)) {
                    (Some(wanted), Some(found)) => walk(wanted, found, path, exact, lines),
                    (Some(wanted), None) => lines.push(format!("{path}: is missing, should be {wanted}")),
                    (None, found) => {
                        lines.push(format!(
                            "{path}: is {}, should not be there",
                            found.unwrap_or(&Value::Null)
                        ));
                    }
                }
            }
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                walk(wanted, found, format!("{path}[{index}]"), exact, lines);
            }
        }
        _ if wanted == found => {}
        _ => lines.push(format!("{path}: is {found}, should be {wanted}")),
    }
}

/// A value as YAML, indented.
pub(crate) fn shown(value: &Value) -> String {
    windlass_schema::yaml::write(value).lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_are_compared_whole_and_each_difference_has_its_path() {
        let found = json!({"items": [{"name": "a", "port": 1}, {"name": "b"}]});
        assert!(missing(&json!({"items": [{"name": "a"}, {"name": "b"}]}), &found).is_empty());
        assert_eq!(
            missing(&json!({"items": [{"name": "x"}, {"port": 2}]}), &found),
            [r#"items[0].name: is "a", should be "x""#, "items[1].port: is missing, should be 2"]
        );
        assert_eq!(missing(&json!({"items": []}), &found).len(), 1);
        assert_eq!(between(&json!({"items": [{"name": "a"}, {"name": "b"}]}), &found).len(), 1);
    }

    #[test]
    fn what_differs_everywhere_is_cut_short() {
        let many = |value: u64| Value::from_iter((0..100).map(|key| (key.to_string(), json!(value))));
        assert_eq!(between(&many(1), &many(2)).len(), MOST);
    }
}
