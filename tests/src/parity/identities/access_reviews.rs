//! SubjectAccessReview and its like.

use super::{REVIEWS, allow, user};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// Reviews: the resource, and a spec in which `jane` is the user of the policy.
const REVIEWED: &[(&str, &str, &str)] = &[
    (
        "what is allowed",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "what is not",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"delete","resource":"configmaps"}}"#,
    ),
    (
        "elsewhere",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"kube-system","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "everywhere",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "by a group",
        "subjectaccessreviews",
        r#"{"groups":["system:masters"],"resourceAttributes":{"verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "by a group and a user",
        "subjectaccessreviews",
        r#"{"user":"x","groups":["system:authenticated"],"nonResourceAttributes":{"verb":"get","path":"/api/v1"}}"#,
    ),
    (
        "a path of anybody",
        "subjectaccessreviews",
        r#"{"user":"x","groups":["system:unauthenticated"],"nonResourceAttributes":{"verb":"get","path":"/healthz"}}"#,
    ),
    (
        "a path",
        "subjectaccessreviews",
        r#"{"user":"jane","nonResourceAttributes":{"verb":"get","path":"/metrics"}}"#,
    ),
    (
        "a name",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps","name":"a"}}"#,
    ),
    (
        "a subresource",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps","subresource":"status"}}"#,
    ),
    (
        "a resource with a slash",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps/status"}}"#,
    ),
    (
        "any verb",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"*","resource":"configmaps"}}"#,
    ),
    (
        "another group",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","group":"apps","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "another version",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","version":"v7","verb":"get","resource":"configmaps"}}"#,
    ),
    ("nobody", "subjectaccessreviews", r#"{"resourceAttributes":{"verb":"get","resource":"configmaps"}}"#),
    ("nothing", "subjectaccessreviews", r#"{"user":"jane"}"#),
    (
        "both",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"verb":"get","resource":"configmaps"},"nonResourceAttributes":{"path":"/","verb":"get"}}"#,
    ),
    ("nobody and nothing", "subjectaccessreviews", "{}"),
    (
        "an unknown field",
        "subjectaccessreviews",
        r#"{"user":"jane","who":"knows","resourceAttributes":{"verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "a selector",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"list","resource":"configmaps","fieldSelector":{"rawSelector":"metadata.name=a"}}}"#,
    ),
    (
        "an empty selector",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"list","resource":"configmaps","labelSelector":{}}}"#,
    ),
    (
        "a selector twice",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"verb":"list","resource":"configmaps","labelSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"Exists"}]}}}"#,
    ),
    (
        "in a namespace",
        "namespaces/NAMESPACE/localsubjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "in another namespace",
        "namespaces/NAMESPACE/localsubjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"default","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "a path in a namespace",
        "namespaces/NAMESPACE/localsubjectaccessreviews",
        r#"{"user":"jane","nonResourceAttributes":{"path":"/","verb":"get"}}"#,
    ),
    (
        "oneself",
        "selfsubjectaccessreviews",
        r#"{"resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "oneself in vain",
        "selfsubjectaccessreviews",
        r#"{"resourceAttributes":{"namespace":"NAMESPACE","verb":"delete","resource":"configmaps"}}"#,
    ),
    ("oneself and nothing", "selfsubjectaccessreviews", "{}"),
    (
        "oneself and a path",
        "selfsubjectaccessreviews",
        r#"{"nonResourceAttributes":{"path":"/api","verb":"get"}}"#,
    ),
    ("one's rules of no namespace", "selfsubjectrulesreviews", "{}"),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = vec![Behaviour::new("the rules that somebody has in a namespace", own_rules)];
    for (name, resource, spec) in REVIEWED {
        all.push(Behaviour::new(format!("an access review of {name}"), move |script| {
            reviewed(script, resource, spec)
        }));
    }
    all
}

async fn reviewed(mut script: Script, resource: &str, spec: &str) -> anyhow::Result<Script> {
    allow(&mut script, r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]}]"#).await?;
    let (namespace, user) = (script.namespace().to_owned(), user(&script));
    let spec: Value = serde_json::from_str(&spec.replace("NAMESPACE", &namespace).replace("jane", &user))?;
    let plural = resource.rsplit('/').next().unwrap_or_default();
    let kind = match plural {
        "subjectaccessreviews" => "SubjectAccessReview",
        "localsubjectaccessreviews" => "LocalSubjectAccessReview",
        "selfsubjectaccessreviews" => "SelfSubjectAccessReview",
        _ => "SelfSubjectRulesReview",
    };
    let review = json!({"kind": kind, "apiVersion": "authorization.k8s.io/v1", "spec": spec});
    let path = format!("{REVIEWS}/{}", resource.replace("NAMESPACE", &namespace));
    let request = Request::new("POST", path).body(media::JSON, review);
    let request = if kind.starts_with("Self") { request.impersonating(user) } else { request };
    script.send(request).await?;
    Ok(script)
}

async fn own_rules(mut script: Script) -> anyhow::Result<Script> {
    let rules =
        r#"[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a"],"verbs":["get","list"]}]"#;
    allow(&mut script, rules).await?;
    let review = json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": {"namespace": script.namespace()}});
    let request =
        Request::new("POST", format!("{REVIEWS}/selfsubjectrulesreviews")).body(media::JSON, review);
    let mut answer = script.quiet(request.impersonating(user(&script))).await?;
    // In whatever order they are found.
    for rules in ["/status/resourceRules", "/status/nonResourceRules"] {
        if let Some(rules) = answer.body.pointer_mut(rules).and_then(Value::as_array_mut) {
            rules.sort_by_key(ToString::to_string);
        }
    }
    script.note(&answer);
    Ok(script)
}
