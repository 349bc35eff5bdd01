//! What an object waits for: from its conditions, and from what the running operator says.

use serde_json::{Value, json};
use std::fmt::Write;

/// As JSON. `operator` is what the operator says of the object, or why it says nothing.
pub(crate) fn to_json(title: &str, object: &Value, operator: &Result<Value, String>) -> Value {
    let conditions = object.pointer("/status/conditions").cloned().unwrap_or_else(|| json!([]));
    match operator {
        Ok(operator) => json!({ "object": title, "conditions": conditions, "operator": operator }),
        Err(why) => json!({ "object": title, "conditions": conditions, "operatorSilent": why }),
    }
}

/// For people.
pub(crate) fn to_text(title: &str, object: &Value, operator: &Result<Value, String>) -> String {
    let mut text = format!("{title}\n");
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    for condition in conditions.into_iter().flatten() {
        let of = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or("?");
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "  {} is {} since {}: {}: {}",
            of("type"),
            of("status"),
            of("lastTransitionTime"),
            of("reason"),
            of("message")
        );
    }
    if conditions.is_none_or(Vec::is_empty) {
        text.push_str("  no conditions are reported\n");
    }
    match operator {
        Err(why) => {
            let _ = writeln!(text, "  the operator does not say more: {why}");
        }
        Ok(operator) => {
            for one in operator.as_array().into_iter().flatten() {
                let awaited = |name: &str| one.pointer(&format!("/awaited/{name}")).and_then(Value::as_str);
                let controller = one.get("controller").and_then(Value::as_str).unwrap_or("?");
                let queue = queue(one);
                let Some(state) = awaited("state") else {
                    let _ = writeln!(text, "  {controller}: nothing is awaited{queue}");
                    continue;
                };
                let of = |name: &str| awaited(name).unwrap_or("?");
                let next = match awaited("looksAgain") {
                    Some(time) => format!("looks again at {time}, or when something changes"),
                    None => "looks again when something changes".to_owned(),
                };
                let _ = writeln!(
                    text,
                    "  {controller}: {state} since {}: {}: {}; {next}{queue}",
                    of("since"),
                    of("reason"),
                    of("message")
                );
            }
        }
    }
    text
}

/// Where it is in the queue, if it is worth a word.
fn queue(one: &Value) -> String {
    let of = |name: &str| one.pointer(&format!("/queue/{name}"));
    let is = |name: &str| of(name) == Some(&Value::Bool(true));
    let mut text = String::new();
    if one.get("leads") == Some(&Value::Bool(false)) {
        text.push_str("; it waits to become the leader, and does no work");
    }
    match of("failures").and_then(Value::as_u64) {
        Some(1) => text.push_str("; the last reconcile failed"),
        Some(failures) if failures > 1 => {
            let _ = write!(text, "; the last {failures} reconciles failed");
        }
        _ => {}
    }
    if is("reconciling") {
        text.push_str("; a reconcile runs now");
    } else if is("queued") && of("due").is_none_or(Value::is_null) {
        text.push_str("; a reconcile is due, and waits for a worker");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_awaited_is_told_with_its_times() {
        let object = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Starts",
            "message": "it starts", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        let told = Ok(json!([
            {"controller": "vault", "awaited": {"state": "waiting", "reason": "Starts", "message": "it starts",
             "since": "2026-01-01T00:00:00Z", "looksAgain": "2026-01-01T00:01:00Z"},
             "queue": {"queued": true, "due": "2026-01-01T00:01:00Z", "reconciling": false, "failures": 3}},
            {"controller": "other", "awaited": null, "queue": {"queued": true, "due": null, "failures": 0}},
        ]));
        assert_eq!(
            to_text("Vault shop/v", &object, &told),
            "Vault shop/v\n  Ready is False since 2026-01-01T00:00:00Z: Starts: it starts\n  vault: waiting since \
             2026-01-01T00:00:00Z: Starts: it starts; looks again at 2026-01-01T00:01:00Z, or when something changes; \
             the last 3 reconciles failed\n  other: nothing is awaited; a reconcile is due, and waits for a worker\n"
        );
        let silent = to_text("Vault shop/v", &json!({}), &Err("not reached".into()));
        assert_eq!(
            silent,
            "Vault shop/v\n  no conditions are reported\n  the operator does not say more: not reached\n"
        );
    }
}
