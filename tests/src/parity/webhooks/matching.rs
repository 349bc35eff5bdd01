//! Which requests a webhook is asked about: by rules, and by the labels of objects and namespaces.

use super::server::{Server, denied};
use super::{Kind, configure, hook, map, serve};
use crate::parity::Behaviour;
use serde_json::{Value, json};

/// Fields of a webhook that refuses whatever it is asked about.
const FIELDS: &[(&str, &str)] = &[
    (
        "everything",
        r#"{"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"],"scope":"Namespaced"}]}"#,
    ),
    (
        "every resource",
        r#"{"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"scope":"Namespaced"}]}"#,
    ),
    (
        "creations",
        r#"{"rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    (
        "updates",
        r#"{"rules":[{"operations":["UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    (
        "deletions",
        r#"{"rules":[{"operations":["DELETE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    (
        "connections",
        r#"{"rules":[{"operations":["CONNECT"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*/*"]}]}"#,
    ),
    (
        "another group",
        r#"{"rules":[{"operations":["*"],"apiGroups":["apps"],"apiVersions":["*"],"resources":["*"]}]}"#,
    ),
    (
        "another version",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v2"],"resources":["configmaps"]}]}"#,
    ),
    (
        "another resource",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["secrets"]}]}"#,
    ),
    (
        "a subresource",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps/status"]}]}"#,
    ),
    (
        "the second rule",
        r#"{"rules":[{"operations":["*"],"apiGroups":["apps"],"apiVersions":["*"],"resources":["*"]},{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}"#,
    ),
    ("no rule", r#"{"rules":null}"#),
    (
        "namespaced resources",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"scope":"Namespaced"}]}"#,
    ),
    (
        "resources of the cluster",
        r#"{"rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"scope":"Cluster"}]}"#,
    ),
    ("objects with a label", r#"{"objectSelector":{"matchLabels":{"app":"web"}}}"#),
    ("objects with another label", r#"{"objectSelector":{"matchLabels":{"app":"other"}}}"#),
    (
        "objects without a label",
        r#"{"objectSelector":{"matchExpressions":[{"key":"app","operator":"DoesNotExist"}]}}"#,
    ),
    (
        "objects with one of some labels",
        r#"{"objectSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["a","web"]}]}}"#,
    ),
    (
        "objects with none of some labels",
        r#"{"objectSelector":{"matchExpressions":[{"key":"app","operator":"NotIn","values":["web"]}]}}"#,
    ),
    ("objects that were or are", r#"{"objectSelector":{"matchLabels":{"new":"label"}}}"#),
    ("no namespace", r#"{"namespaceSelector":{"matchLabels":{"no":"namespace"}}}"#),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, fields) in FIELDS {
        for kind in [Kind::Validating, Kind::Mutating] {
            let word = if kind == Kind::Mutating { "mutating" } else { "validating" };
            let name = format!("a {word} webhook is asked about {name}");
            let fields: Value = serde_json::from_str(fields).unwrap_or_default();
            all.push(Behaviour::new(name, move |script| {
                let fields = fields.clone();
                async move { played(script, kind, fields).await }
            }));
        }
    }
    all.push(exempt());
    all.push(changed());
    all.push(cluster_scoped());
    all.push(dry_run());
    all
}

/// Writes of a ConfigMap of each kind, of which some are refused.
async fn played(
    mut script: crate::parity::Script,
    kind: Kind,
    fields: Value,
) -> anyhow::Result<crate::parity::Script> {
    let maps = script.maps();
    script.map("before", json!({"app": "web"})).await?;
    let server = serve(|_, _| denied("asked")).await?;
    let hooks = vec![hook(&script, &server, "hook", fields)];
    configure(&mut script, &server, kind, "it", hooks).await?;
    script.post(&maps, map("a", json!({"labels": {"app": "web"}}))).await?;
    script.post(&maps, map("b", json!({"labels": {"other": "label"}}))).await?;
    let path = format!("{maps}/before");
    script.merge(&path, json!({"metadata": {"labels": {"new": "label"}}})).await?;
    script.merge(&path, json!({"metadata": {"labels": {"new": null}}})).await?;
    script.delete(&path, Value::Null).await?;
    Ok(script)
}

fn exempt() -> Behaviour {
    Behaviour::new("webhooks are not asked about webhooks and policies", |mut script| async move {
        let server = serve(|_, _| denied("asked")).await?;
        let rules = json!([{"operations": ["*"], "apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["*"],
            "resources": ["*"]}]);
        let selector = json!({"matchLabels": {"by": script.namespace()}});
        let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules, "objectSelector": selector}))];
        configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
        for (kind, plural) in [
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ] {
            let name = format!("{}-exempt", script.namespace());
            let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
            let body = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": name, "labels": {"by": script.namespace()}}});
            script.post(&path, body).await?;
            script.delete(&format!("{path}/{name}"), Value::Null).await?;
        }
        Ok(script)
    })
}

fn changed() -> Behaviour {
    Behaviour::new("a changed configuration counts, and a deleted one no more", |mut script| async move {
        let maps = script.maps();
        let server = serve(|_, _| denied("asked")).await?;
        let hooks = vec![hook(&script, &server, "hook", json!({}))];
        configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
        script.post(&maps, map("a", json!({}))).await?;
        let path = format!("{}/{}-it", Kind::Validating.path(), script.namespace());
        script.quiet(crate::compare::Request::new("DELETE", path)).await?;
        let again = crate::compare::Request::new("POST", maps.clone()).with("dryRun", "All");
        let again = again.body(crate::compare::exchange::media::JSON, map("a", json!({})));
        script.until_asked(again, |answer| answer.is_success()).await?;
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    })
}

fn cluster_scoped() -> Behaviour {
    Behaviour::new(
        "what is in no namespace is not kept from webhooks by a selector of namespaces",
        |mut script| async move {
            let server = serve(|_, _| denied("asked")).await?;
            let rules = json!([{"operations": ["*"], "apiGroups": ["scheduling.k8s.io"], "apiVersions": ["v1"],
            "resources": ["priorityclasses"], "scope": "Cluster"}]);
            let fields = json!({"rules": rules, "namespaceSelector": {"matchLabels": {"no": "namespace"}},
            "objectSelector": {"matchLabels": {"by": script.namespace()}}});
            let hooks = vec![hook(&script, &server, "hook", fields)];
            configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
            let body = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5,
            "metadata": {"name": format!("{}-p", script.namespace()), "labels": {"by": script.namespace()}}});
            script.post("/apis/scheduling.k8s.io/v1/priorityclasses", body).await?;
            Ok(script)
        },
    )
}

fn dry_run() -> Behaviour {
    Behaviour::new(
        "a webhook without side effects on dry runs is asked about them",
        |mut script| async move {
            let maps = script.maps();
            let server: Server = serve(|_, _| denied("asked")).await?;
            let hooks = vec![hook(&script, &server, "hook", json!({"sideEffects": "NoneOnDryRun"}))];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            let request = crate::compare::Request::new("POST", maps).with("dryRun", "All");
            script.send(request.body(crate::compare::exchange::media::JSON, map("a", json!({})))).await?;
            Ok(script)
        },
    )
}
