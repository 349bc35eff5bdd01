//! What a defaulting handler changed, as a JSON patch of the object that the API server sent.
//!
//! The handler sees the object as its Rust type, which knows some fields and fills in others. Only what the handler changed counts:
//! fields that the type does not know stay, and fields that only reading it filled in do not appear.

use serde_json::{Map, Value, json};

/// The patch (RFC 6902) that does to `sent` what turned `before` into `after`.
pub(super) fn patch(sent: &Value, before: &Value, after: &Value) -> Vec<Value> {
    let wanted = merged(sent, before, after);
    let mut operations = Vec::new();
    differences(sent, &wanted, &mut String::new(), &mut operations);
    operations
}

/// What was sent, with what differs between before and after.
fn merged(sent: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return sent.clone();
    }
    match (sent, before, after) {
        (Value::Object(sent), Value::Object(before), Value::Object(after)) => {
            let mut wanted = sent.clone();
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                wanted.remove(key);
            }
            for (key, value) in after {
                let was = before.get(key);
                if was == Some(value) {
                    continue;
                }
                let value = match (sent.get(key), was) {
                    (Some(sent), Some(was)) => merged(sent, was, value),
                    _ => value.clone(),
                };
                wanted.insert(key.clone(), value);
            }
            Value::Object(wanted)
        }
        (Value::Array(sent), Value::Array(before), Value::Array(after)) if sent.len() == before.len() => {
            let kept = sent.iter().zip(before).zip(after).map(|((sent, was), is)| merged(sent, was, is));
            kept.chain(after.iter().skip(before.len()).cloned()).collect()
        }
        _ => after.clone(),
    }
}

fn differences(from: &Value, to: &Value, path: &mut String, operations: &mut Vec<Value>) {
    match (from, to) {
        (from, to) if from == to => {}
        (Value::Object(from), Value::Object(to)) => {
            for key in from.keys().filter(|key| !to.contains_key(*key)) {
                within(path, key, |path| operations.push(json!({ "op": "remove", "path": path })));
            }
            each(from, to, path, operations);
        }
        _ => operations.push(json!({ "op": "replace", "path": path, "value": to })),
    }
}

fn each(from: &Map<String, Value>, to: &Map<String, Value>, path: &mut String, operations: &mut Vec<Value>) {
    for (key, value) in to {
        within(path, key, |path| match from.get(key) {
            Some(was) => differences(was, value, path, operations),
            None => operations.push(json!({ "op": "add", "path": path, "value": value })),
        });
    }
}

/// Does something with the path of a field.
fn within(path: &mut String, key: &str, then: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(&key.replace('~', "~0").replace('/', "~1"));
    then(path);
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_handler_changed_is_patched() {
        // The type does not know `future`, and filled `mode` in.
        let sent = json!({"spec": {"size": 1, "future": true, "gone": 1}});
        let before = json!({"spec": {"size": 1, "mode": "", "gone": 1}});
        let after = json!({"spec": {"size": 2, "mode": "", "image": "x"}});
        assert_eq!(
            patch(&sent, &before, &after),
            [
                json!({"op": "remove", "path": "/spec/gone"}),
                json!({"op": "add", "path": "/spec/image", "value": "x"}),
                json!({"op": "replace", "path": "/spec/size", "value": 2}),
            ]
        );
    }

    #[test]
    fn what_was_not_sent_is_added_whole() {
        let (sent, before) = (json!({"metadata": {}}), json!({"metadata": {}, "spec": {"hosts": []}}));
        let after = json!({"metadata": {"labels": {"a/b": "c"}}, "spec": {"hosts": ["h"]}});
        assert_eq!(
            patch(&sent, &before, &after),
            [
                json!({"op": "add", "path": "/metadata/labels", "value": {"a/b": "c"}}),
                json!({"op": "add", "path": "/spec", "value": {"hosts": ["h"]}}),
            ]
        );
        assert_eq!(patch(&sent, &before, &before), [] as [Value; 0]);
    }

    #[test]
    fn unknown_fields_in_lists_stay_and_names_are_escaped() {
        let sent = json!({"l": [{"a": 1, "new": 1}], "m": {"x/y": 1}});
        let before = json!({"l": [{"a": 1}], "m": {"x/y": 1}});
        let after = json!({"l": [{"a": 2}, {"a": 3}], "m": {"x/y": 2}});
        assert_eq!(
            patch(&sent, &before, &after),
            [
                json!({"op": "replace", "path": "/l", "value": [{"a": 2, "new": 1}, {"a": 3}]}),
                json!({"op": "replace", "path": "/m/x~1y", "value": 2}),
            ]
        );
    }
}
