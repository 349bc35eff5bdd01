//! Updates, patches and dry runs of one config map `a` with a label and two keys.

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use serde_json::{Value, json};

/// Merge patches.
const MERGES: &[(&str, &str)] = &[
    ("a null removes a key", r#"{"data": {"x": null}}"#),
    ("a null for what is not there", r#"{"data": {"z": null}}"#),
    ("a null removes a whole map", r#"{"data": null}"#),
    ("an empty patch changes nothing", "{}"),
    ("the same value changes nothing", r#"{"data": {"x": "1"}}"#),
    ("another name", r#"{"metadata": {"name": "b"}}"#),
    ("another namespace", r#"{"metadata": {"namespace": "elsewhere"}}"#),
    ("another kind", r#"{"kind": "Secret"}"#),
    ("another apiVersion", r#"{"apiVersion": "v2"}"#),
    ("another uid", r#"{"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}"#),
    ("an old version", r#"{"metadata": {"resourceVersion": "1"}}"#),
    ("a version that is none", r#"{"metadata": {"resourceVersion": "x"}}"#),
    ("a time of creation", r#"{"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}"#),
    ("a time of deletion", r#"{"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}"#),
    ("a generation", r#"{"metadata": {"generation": 7}}"#),
    ("a value of the wrong type", r#"{"data": {"x": 1}}"#),
    ("a map that becomes a list", r#"{"data": ["x"]}"#),
    ("a patch that is a list", "[]"),
    ("a patch that is a string", r#""x""#),
    ("a patch that is null", "null"),
    ("a patch that is no JSON", "{"),
    ("a patch that is empty", ""),
    ("an unknown field", r#"{"colour": "red"}"#),
];

/// JSON patches.
const EDITS: &[(&str, &str)] = &[
    ("add to a map", r#"[{"op": "add", "path": "/data/z", "value": "3"}]"#),
    ("add replaces", r#"[{"op": "add", "path": "/data/x", "value": "3"}]"#),
    ("replace what is not there", r#"[{"op": "replace", "path": "/data/z", "value": "3"}]"#),
    ("remove", r#"[{"op": "remove", "path": "/data/x"}]"#),
    ("remove what is not there", r#"[{"op": "remove", "path": "/data/z"}]"#),
    ("move", r#"[{"op": "move", "from": "/data/x", "path": "/data/z"}]"#),
    ("copy", r#"[{"op": "copy", "from": "/data/x", "path": "/data/z"}]"#),
    ("copy from nowhere", r#"[{"op": "copy", "from": "/data/q", "path": "/data/z"}]"#),
    (
        "a test that holds",
        r#"[{"op": "test", "path": "/data/x", "value": "1"}, {"op": "remove", "path": "/data/x"}]"#,
    ),
    (
        "a test that fails",
        r#"[{"op": "test", "path": "/data/x", "value": "9"}, {"op": "remove", "path": "/data/x"}]"#,
    ),
    ("a test of what is absent", r#"[{"op": "test", "path": "/data/q", "value": "9"}]"#),
    ("a test for null of what is absent", r#"[{"op": "test", "path": "/data/q", "value": null}]"#),
    ("an escaped key", r#"[{"op": "add", "path": "/metadata/labels/example.com~1a", "value": "b"}]"#),
    (
        "add to the end of a list",
        r#"[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"}]"#,
    ),
    ("add within a list", r#"[{"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/b"}]"#),
    (
        "add past the end of a list",
        r#"[{"op": "add", "path": "/metadata/finalizers/7", "value": "example.com/b"}]"#,
    ),
    ("add below what is absent", r#"[{"op": "add", "path": "/binaryData/z", "value": "Mw=="}]"#),
    ("an operation that there is not", r#"[{"op": "append", "path": "/data/x", "value": "1"}]"#),
    ("no operation", r#"[{"path": "/data/x", "value": "1"}]"#),
    ("no path", r#"[{"op": "add", "value": "1"}]"#),
    ("a path without a slash", r#"[{"op": "add", "path": "data", "value": {}}]"#),
    ("a patch that is an object", r#"{"op": "add"}"#),
    ("an empty list changes nothing", "[]"),
    ("the whole object replaced", r#"[{"op": "replace", "path": "", "value": {}}]"#),
];

/// What an update of the object changes before it is sent back.
const UPDATES: &[(&str, &str)] = &[
    ("nothing", "{}"),
    ("no version", r#"{"metadata": {"resourceVersion": null}}"#),
    ("an empty version", r#"{"metadata": {"resourceVersion": ""}}"#),
    ("version zero", r#"{"metadata": {"resourceVersion": "0"}}"#),
    ("a version that is none", r#"{"metadata": {"resourceVersion": "new"}}"#),
    ("another name", r#"{"metadata": {"name": "b"}}"#),
    ("no name", r#"{"metadata": {"name": null}}"#),
    ("another namespace", r#"{"metadata": {"namespace": "elsewhere"}}"#),
    ("no namespace", r#"{"metadata": {"namespace": null}}"#),
    ("another uid", r#"{"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}"#),
    ("no uid", r#"{"metadata": {"uid": null}}"#),
    ("another kind", r#"{"kind": "Secret"}"#),
    ("no kind", r#"{"kind": null}"#),
    ("another apiVersion", r#"{"apiVersion": "apps/v1"}"#),
    ("no managed fields", r#"{"metadata": {"managedFields": []}}"#),
    ("the finalizers dropped", r#"{"metadata": {"finalizers": null}}"#),
    ("a list for a map", r#"{"data": []}"#),
    ("an unknown field", r#"{"colour": "red"}"#),
];

/// Query parameters of writes.
const OPTIONS: &[(&str, &[(&str, &str)])] = &[
    ("a rehearsal", &[("dryRun", "All")]),
    ("a rehearsal that there is not", &[("dryRun", "Some")]),
    ("an empty rehearsal", &[("dryRun", "")]),
    ("two rehearsals", &[("dryRun", "All"), ("dryRun", "All")]),
    ("a field manager", &[("fieldManager", "me")]),
    ("an empty field manager", &[("fieldManager", "")]),
    ("a field manager that cannot be printed", &[("fieldManager", "a\u{7}b")]),
    ("strict validation", &[("fieldValidation", "Strict")]),
    ("warnings from validation", &[("fieldValidation", "Warn")]),
    ("no validation", &[("fieldValidation", "Ignore")]),
    ("a validation that there is not", &[("fieldValidation", "Maybe")]),
    ("force without apply", &[("force", "true")]),
];

fn object() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1", "y": "2"},
        "metadata": {"name": "a", "labels": {"app": "web"}, "finalizers": ["example.com/a"]}})
}

/// Creates the object; the response is not compared.
async fn made(script: &mut Script) -> anyhow::Result<(String, Value)> {
    let maps = script.maps();
    let made = script.quiet(Request::new("POST", &maps).body(media::JSON, object())).await?;
    Ok((format!("{maps}/a"), made.body))
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (family, media_type, patches) in
        [("merge patch", media::MERGE_PATCH, MERGES), ("JSON patch", media::JSON_PATCH, EDITS)]
    {
        for (name, patch) in patches {
            all.push(Behaviour::new(format!("{family}: {name}"), move |mut script: Script| async move {
                let (item, _) = made(&mut script).await?;
                script.send(Request::new("PATCH", &item).raw(media_type, *patch)).await?;
                script.get(&item).await?;
                Ok(script)
            }));
        }
    }
    for (name, change) in UPDATES {
        all.push(Behaviour::new(format!("update: {name}"), move |mut script: Script| async move {
            let (item, found) = made(&mut script).await?;
            let mut object = object();
            object["metadata"]["namespace"] = json!(script.namespace());
            for field in ["resourceVersion", "uid"] {
                object["metadata"][field] = found["metadata"][field].clone();
            }
            change_by(&mut object, serde_json::from_str(change)?);
            script.put(&item, object).await?;
            Ok(script)
        }));
    }
    for (name, query) in OPTIONS {
        all.push(Behaviour::new(format!("write options: {name}"), move |mut script: Script| async move {
            let maps = script.maps();
            let asked = |request: Request| query.iter().fold(request, |request, (name, value)| request.with(name, *value));
            let text = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"colour":"red","data":{"x":"1","x":"2"}}"#;
            script.send(asked(Request::new("POST", &maps)).raw(media::JSON, text)).await?;
            script.send(asked(Request::new("PATCH", format!("{maps}/a"))).body(media::MERGE_PATCH, json!({"colour": "blue"}))).await?;
            script.send(asked(Request::new("DELETE", format!("{maps}/a")))).await?;
            script.get(&maps).await?;
            Ok(script)
        }));
    }
    all
}

fn change_by(object: &mut Value, change: Value) {
    match change {
        Value::Object(change) if object.is_object() => {
            for (key, change) in change {
                change_by(&mut object[&key], change);
            }
        }
        other => *object = other,
    }
}
