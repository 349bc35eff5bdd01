//! Fields that are set when an object is created, and then left to whoever changes them.

use super::change::owns;
use serde_json::Value;

/// The intent for an object that is there: initial fields that are still ours keep the value that they have, since leaving
/// them out would remove them; those that somebody else took are left out.
pub fn keep_initial(intent: &Value, initially: &[String], live: &Value, manager: &str) -> Value {
    let mut intent = intent.clone();
    // The empty pointer is the whole object, which is not a field of it.
    for pointer in initially.iter().filter(|pointer| !pointer.is_empty()) {
        match live.pointer(pointer).filter(|_| owns(live, manager, pointer)) {
            Some(now) => {
                if let Some(field) = intent.pointer_mut(pointer) {
                    *field = now.clone();
                }
            }
            None => remove(&mut intent, pointer),
        }
    }
    intent
}

/// Removes a field, and the objects around it that it leaves empty: applied, an empty object would claim its place.
fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, field)) = pointer.rsplit_once('/') else { return };
    let Some(fields) = value.pointer_mut(parent).and_then(Value::as_object_mut) else { return };
    let was_there = fields.remove(&field.replace("~1", "/").replace("~0", "~")).is_some();
    if was_there && fields.is_empty() {
        remove(value, parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(ours: Value) -> Value {
        json!({
            "metadata": {"managedFields": [{"manager": "us", "operation": "Apply", "fieldsV1": ours}]},
            "spec": {"replicas": 5, "paused": false},
        })
    }

    fn kept(intent: Value, ours: Value) -> Value {
        keep_initial(&intent, &["/spec/replicas".to_owned()], &live(ours), "us")
    }

    #[test]
    fn what_is_still_ours_stays_as_it_is() {
        let intent = json!({"spec": {"replicas": 1, "paused": true}});
        let ours = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
        assert_eq!(kept(intent, ours), json!({"spec": {"replicas": 5, "paused": true}}));
    }

    #[test]
    fn what_another_took_is_left_out_with_nothing_around_it() {
        let ours = json!({"f:spec": {"f:paused": {}}});
        let intent = json!({"spec": {"replicas": 1, "paused": true}});
        assert_eq!(kept(intent, ours.clone()), json!({"spec": {"paused": true}}));
        assert_eq!(kept(json!({"kind": "X", "spec": {"replicas": 1}}), ours), json!({"kind": "X"}));
    }

    #[test]
    fn a_field_that_the_intent_does_not_have_is_none() {
        let intent = json!({"spec": {"paused": true}});
        assert_eq!(kept(intent.clone(), json!({"f:spec": {"f:replicas": {}}})), intent);
        assert_eq!(keep_initial(&intent, &["nonsense".into(), "".into()], &live(json!({})), "us"), intent);
    }
}
