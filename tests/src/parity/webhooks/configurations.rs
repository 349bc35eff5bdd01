//! Webhook configurations that are refused.

use super::Kind;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// Fields of a webhook that make a configuration invalid, or nearly so.
const FIELDS: &[(&str, &str)] = &[
    ("nothing wrong", "{}"),
    ("no name", r#"{"name":null}"#),
    ("a short name", r#"{"name":"short"}"#),
    ("a name that is none", r#"{"name":"Not.A.Name"}"#),
    ("no side effects said", r#"{"sideEffects":null}"#),
    ("side effects", r#"{"sideEffects":"Some"}"#),
    ("no version of reviews", r#"{"admissionReviewVersions":null}"#),
    ("an unknown version of reviews", r#"{"admissionReviewVersions":["v9"]}"#),
    ("a version that is none", r#"{"admissionReviewVersions":["V 1","v1"]}"#),
    ("a version twice", r#"{"admissionReviewVersions":["v1","v1"]}"#),
    ("an unknown failure policy", r#"{"failurePolicy":"Maybe"}"#),
    ("an unknown match policy", r#"{"matchPolicy":"Nearly"}"#),
    ("no time", r#"{"timeoutSeconds":0}"#),
    ("too much time", r#"{"timeoutSeconds":31}"#),
    ("no place", r#"{"clientConfig":{}}"#),
    ("two places", r#"{"clientConfig":{"url":"https://a.b/c","service":{"name":"s","namespace":"n"}}}"#),
    ("a URL without TLS", r#"{"clientConfig":{"url":"http://a.b/c"}}"#),
    ("a URL without a host", r#"{"clientConfig":{"url":"https:///c"}}"#),
    ("a URL with a user", r#"{"clientConfig":{"url":"https://me@a.b/c"}}"#),
    ("a URL with a query", r#"{"clientConfig":{"url":"https://a.b/c?d=e"}}"#),
    ("a URL with a fragment", r#"{"clientConfig":{"url":"https://a.b/c#d"}}"#),
    ("a URL that is none", r#"{"clientConfig":{"url":"nothing"}}"#),
    ("a Service without a name", r#"{"clientConfig":{"service":{"namespace":"n"}}}"#),
    ("a Service without a namespace", r#"{"clientConfig":{"service":{"name":"s"}}}"#),
    ("a Service at no port", r#"{"clientConfig":{"service":{"name":"s","namespace":"n","port":70000}}}"#),
    (
        "a Service at a path that is none",
        r#"{"clientConfig":{"service":{"name":"s","namespace":"n","path":"a/b"}}}"#,
    ),
    (
        "a Service at an empty segment",
        r#"{"clientConfig":{"service":{"name":"s","namespace":"n","path":"/a//b"}}}"#,
    ),
    ("a Service at two slashes", r#"{"clientConfig":{"service":{"name":"s","namespace":"n","path":"//"}}}"#),
    (
        "a Service at an odd segment",
        r#"{"clientConfig":{"service":{"name":"s","namespace":"n","path":"/a/B_c"}}}"#,
    ),
    (
        "a rule without operations",
        r#"{"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}"#,
    ),
    (
        "a rule of an unknown operation",
        r#"{"rules":[{"operations":["READ"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}"#,
    ),
    (
        "a rule of all operations and one",
        r#"{"rules":[{"operations":["*","CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}"#,
    ),
    (
        "a rule without groups",
        r#"{"rules":[{"operations":["*"],"apiVersions":["v1"],"resources":["pods"]}]}"#,
    ),
    (
        "a rule of all groups and one",
        r#"{"rules":[{"operations":["*"],"apiGroups":["*","apps"],"apiVersions":["v1"],"resources":["pods"]}]}"#,
    ),
    ("a rule without versions", r#"{"rules":[{"operations":["*"],"apiGroups":[""],"resources":["pods"]}]}"#),
    (
        "a rule of an empty version",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":[""],"resources":["pods"]}]}"#,
    ),
    ("a rule without resources", r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"]}]}"#),
    (
        "a rule of an empty resource",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":[""]}]}"#,
    ),
    (
        "a rule of all resources and one",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*","pods"]}]}"#,
    ),
    (
        "a rule of everything and one",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*/*","pods"]}]}"#,
    ),
    (
        "a rule of all subresources and one",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods/*","pods/log"]}]}"#,
    ),
    (
        "a rule of a subresource of all and of one",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*/status","pods/status"]}]}"#,
    ),
    (
        "a rule of an unknown scope",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"scope":"Some"}]}"#,
    ),
    (
        "a selector that is none",
        r#"{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}"#,
    ),
    ("a selector without values", r#"{"objectSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}}"#),
];

/// A configuration of one webhook with these fields.
pub(super) fn with(script: &Script, fields: Value) -> Value {
    let mut hook = json!({
        "name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1:1/a"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "rules": [{"operations": ["CREATE"], "apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nothing"]}],
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        match value.is_null() {
            true => drop(hook.as_object_mut().and_then(|hook| hook.remove(name))),
            false => hook[name] = value.clone(),
        }
    }
    super::configuration(script, Kind::Validating, "it", &[hook])
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, fields) in FIELDS {
        all.push(Behaviour::new(
            format!("a webhook's configuration has {name}"),
            move |mut script| async move {
                let body = with(&script, serde_json::from_str(fields)?);
                let path = Kind::Validating.path();
                if script.post(path, body).await?.is_success() {
                    script.leave(format!("{path}/{}-it", script.namespace()));
                }
                Ok(script)
            },
        ));
    }
    all.push(Behaviour::new("two webhooks of a configuration have one name", |mut script| async move {
        let mut body = with(&script, json!({}));
        if let Some(hooks) = body["webhooks"].as_array_mut() {
            let first = hooks[0].clone();
            hooks.push(first);
        }
        script.post(Kind::Validating.path(), body).await?;
        Ok(script)
    }));
    all.push(Behaviour::new(
        "a mutating webhook's configuration has its defaults",
        |mut script| async move {
            let mut body = with(&script, json!({"failurePolicy": null}));
            body["kind"] = json!("MutatingWebhookConfiguration");
            let path = Kind::Mutating.path();
            script.post(path, body).await?;
            script.leave(format!("{path}/{}-it", script.namespace()));
            let name = format!("{path}/{}-it", script.namespace());
            script
                .edit(
                    &name,
                    json!([{"op": "replace", "path": "/webhooks/0/reinvocationPolicy", "value": "Often"}]),
                )
                .await?;
            Ok(script)
        },
    ));
    all
}
