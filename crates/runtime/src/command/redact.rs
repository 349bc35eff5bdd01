//! A capture without the data of Secrets, which still replays.

use k8s_openapi::ByteString;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Where `kubectl apply` keeps the whole object, data included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Replaces what each Secret of a capture holds. Entries keep their names, and equal values stay equal, so that a decision
/// that compares them or looks for an entry decides the same.
pub(crate) fn redact(capture: &mut Value) {
    let mut names = BTreeMap::new();
    if is_secret(capture.get("object").and_then(|object| object.get("kind")), None)
        && let Some(object) = capture.get_mut("object")
    {
        redact_secret(object, &mut names);
    }
    let kinds = capture.pointer_mut("/observed/kinds").and_then(Value::as_array_mut);
    for entry in kinds.into_iter().flatten() {
        let (kind, group) = (entry.pointer("/kind/kind"), entry.pointer("/kind/group"));
        if !is_secret(kind, group) {
            continue;
        }
        let objects = entry.get_mut("objects").and_then(Value::as_array_mut);
        objects.into_iter().flatten().for_each(|secret| redact_secret(secret, &mut names));
    }
}

fn is_secret(kind: Option<&Value>, group: Option<&Value>) -> bool {
    kind.is_some_and(|kind| kind == "Secret") && group.is_none_or(|group| group == "")
}

/// `names` has what stands for each value.
fn redact_secret(secret: &mut Value, names: &mut BTreeMap<String, String>) {
    let mut replace = |entries: Option<&mut Map<String, Value>>, encoded: bool| {
        for value in entries.into_iter().flat_map(|entries| entries.values_mut()) {
            let number = names.len() + 1;
            let stands = names.entry(plain(value, encoded)).or_insert_with(|| format!("redacted-{number}"));
            *value = if encoded { encode(stands) } else { stands.clone().into() };
        }
    };
    replace(secret.get_mut("data").and_then(Value::as_object_mut), true);
    replace(secret.get_mut("stringData").and_then(Value::as_object_mut), false);
    let annotations = secret.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(applied) = annotations.and_then(|all| all.get_mut(LAST_APPLIED)) {
        *applied = "redacted".into();
    }
}

/// The same content is the same, whether it is encoded or not.
fn plain(value: &Value, encoded: bool) -> String {
    let decoded = encoded.then(|| serde_json::from_value::<ByteString>(value.clone()).ok()).flatten();
    match decoded.map(|bytes| String::from_utf8(bytes.0)) {
        Some(Ok(plain)) => plain,
        _ => value.as_str().unwrap_or_default().to_owned(),
    }
}

/// In base64, as the data of a Secret is.
fn encode(text: &str) -> Value {
    serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_keeps_its_entries_and_which_of_them_are_equal() {
        let secret = json!({"metadata": {"name": "s", "annotations": {LAST_APPLIED: "hunter2"}},
            "data": {"a": "aHVudGVyMg==", "b": "aHVudGVyMg==", "c": "AP8="}, "stringData": {"d": "hunter2"}});
        let map = json!({"metadata": {"name": "m"}, "data": {"a": "hunter3"}});
        let mut capture = json!({"controller": "c", "object": {"kind": "Vault"}, "observed": {"now": "2026-01-01T00:00:00Z", "kinds": [
            {"kind": {"group": "", "kind": "Secret"}, "objects": [secret]},
            {"kind": {"group": "", "kind": "ConfigMap"}, "objects": [map]},
        ]}});
        redact(&mut capture);
        let text = capture.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("aHVudGVyMg") && !text.contains("AP8="),
            "{text}"
        );
        assert!(text.contains("hunter3"));
        let data = &capture["observed"]["kinds"][0]["objects"][0]["data"];
        assert_eq!(data["a"], data["b"]);
        assert_ne!(data["a"], data["c"]);
        let d = &capture["observed"]["kinds"][0]["objects"][0]["stringData"]["d"];
        assert_eq!(data["a"], encode(d.as_str().unwrap()));
    }

    #[test]
    fn a_secret_that_is_decided_about_is_redacted_too() {
        let mut capture =
            json!({"object": {"kind": "Secret", "data": {"a": "aHVudGVyMg=="}}, "observed": {}});
        redact(&mut capture);
        assert!(!capture.to_string().contains("aHVudGVyMg"));
    }
}
