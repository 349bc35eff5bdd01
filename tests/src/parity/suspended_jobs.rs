//! What may change in the pod template of a suspended Job, and when.

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use serde_json::{Value, json};

/// The status of a Job, as a patch, before its template is to change.
const STATES: &[(&str, bool, &str)] = &[
    ("never started", true, "{}"),
    ("not suspended", false, "{}"),
    ("suspended after it started", true, r#"{"startTime":"2026-01-01T00:00:00Z"}"#),
    (
        "said to be suspended after it started",
        true,
        r#"{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Suspended","status":"True"}]}"#,
    ),
    (
        "suspended with a pod that still runs",
        true,
        r#"{"startTime":"2026-01-01T00:00:00Z","active":1,"ready":0,"conditions":[{"type":"Suspended","status":"True"}]}"#,
    ),
    (
        "no longer said to be suspended",
        true,
        r#"{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Suspended","status":"False"}]}"#,
    ),
];

/// Changes of a pod template, as merge patches.
const CHANGES: &[(&str, &str)] = &[
    ("a node selector", r#"{"spec":{"nodeSelector":{"disk":"ssd"}}}"#),
    ("no node selector", r#"{"spec":{"nodeSelector":null}}"#),
    ("tolerations", r#"{"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}"#),
    ("scheduling gates", r#"{"spec":{"schedulingGates":[{"name":"example.com/gate"}]}}"#),
    ("labels and annotations", r#"{"metadata":{"labels":{"team":"a"},"annotations":{"b":"c"}}}"#),
    (
        "a node affinity",
        r#"{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}}}"#,
    ),
    (
        "a pod affinity",
        r#"{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone"}]}}}}"#,
    ),
    ("no affinity", r#"{"spec":{"affinity":null}}"#),
    (
        "the resources of a container",
        r#"{"spec":{"containers":[{"name":"main","image":"i","resources":{"requests":{"cpu":"2"}}}]}}"#,
    ),
    ("an image", r#"{"spec":{"containers":[{"name":"main","image":"other"}]}}"#),
    ("the name of a container", r#"{"spec":{"containers":[{"name":"other","image":"i"}]}}"#),
    (
        "a container more",
        r#"{"spec":{"containers":[{"name":"main","image":"i"},{"name":"more","image":"i"}]}}"#,
    ),
    ("a priority", r#"{"spec":{"priority":7}}"#),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (state, suspended, status) in STATES {
        for (change, patch) in CHANGES {
            let name = format!("the template of a job that is {state} gets {change}");
            all.push(Behaviour::new(name, move |script| changed(script, *suspended, status, patch)));
        }
    }
    all
}

async fn changed(mut script: Script, suspended: bool, status: &str, patch: &str) -> anyhow::Result<Script> {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {
        "suspend": suspended,
        "template": {"spec": {
            "restartPolicy": "Never", "nodeSelector": {"zone": "a"},
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
            ]}},
            "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        }},
    }});
    let jobs = script.path("/apis/batch/v1", "jobs");
    script.quiet(Request::new("POST", &jobs).body(media::JSON, job)).await?;
    let status: Value = serde_json::from_str(status)?;
    let request = Request::new("PATCH", format!("{jobs}/j/status"));
    script.send(request.body(media::MERGE_PATCH, json!({"status": status}))).await?;
    let template: Value = serde_json::from_str(patch)?;
    let request = Request::new("PATCH", format!("{jobs}/j"));
    let mut answer =
        script.quiet(request.body(media::MERGE_PATCH, json!({"spec": {"template": template}}))).await?;
    hide_values(&mut answer.body);
    script.note(&answer);
    Ok(script)
}

/// The reference shows what may not change as a Go struct of its own, in texts of many lines.
fn hide_values(body: &mut Value) {
    let hidden = |text: &str| match (text.find("Invalid value: "), text.rfind(": field is immutable")) {
        (Some(start), Some(end)) => format!("{}Invalid value: ...{}", &text[..start], &text[end..]),
        _ => text.to_owned(),
    };
    let causes = body.pointer_mut("/details/causes").and_then(Value::as_array_mut).into_iter().flatten();
    for text in causes.filter_map(|cause| cause.get_mut("message")) {
        *text = Value::String(hidden(text.as_str().unwrap_or_default()));
    }
    if let Some(text) = body.get_mut("message") {
        *text = Value::String(hidden(text.as_str().unwrap_or_default()));
    }
}
