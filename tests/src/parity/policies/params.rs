//! Parameters: objects that a policy knows by its binding.

use super::{Kind, about, follow_maps, map, only, store, writes};
use crate::parity::Behaviour;
use serde_json::{Value, json};

/// A policy whose parameter is the greatest length of a name.
fn limit() -> Value {
    json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "size(request.name) <= int(params.data.most)",
            "messageExpression": "'at most ' + params.data.most + ' by ' + params.metadata.name + ' ' + params.kind + ' ' + params.apiVersion"}]})
}

const REFERENCES: &[(&str, &str)] = &[
    ("by its name", r#"{"name":"limit","parameterNotFoundAction":"Deny"}"#),
    ("that is not there, and the request is denied", r#"{"name":"none","parameterNotFoundAction":"Deny"}"#),
    ("that is not there, and the request is allowed", r#"{"name":"none","parameterNotFoundAction":"Allow"}"#),
    ("in a namespace", r#"{"name":"limit","namespace":"<namespace>","parameterNotFoundAction":"Deny"}"#),
    ("in another namespace", r#"{"name":"limit","namespace":"default","parameterNotFoundAction":"Deny"}"#),
    ("by labels", r#"{"selector":{"matchLabels":{"limits":"one"}},"parameterNotFoundAction":"Deny"}"#),
    (
        "by labels of several",
        r#"{"selector":{"matchLabels":{"limits":"all"}},"parameterNotFoundAction":"Deny"}"#,
    ),
    (
        "by labels of none, and the request is denied",
        r#"{"selector":{"matchLabels":{"limits":"no"}},"parameterNotFoundAction":"Deny"}"#,
    ),
    (
        "by labels of none, and the request is allowed",
        r#"{"selector":{"matchLabels":{"limits":"no"}},"parameterNotFoundAction":"Allow"}"#,
    ),
    (
        "by any labels",
        r#"{"selector":{"matchExpressions":[{"key":"limits","operator":"In","values":["one"]}]},"parameterNotFoundAction":"Deny"}"#,
    ),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, reference) in REFERENCES {
        for policy in ["Fail", "Ignore"] {
            let name = format!("a parameter {name}, with failure policy {policy}");
            all.push(Behaviour::new(name, move |mut script| async move {
                follow_maps(&mut script).await?;
                script.map("before", json!({"app": "web"})).await?;
                let maps = script.maps();
                for (name, labels, most) in
                    [("limit", json!({"limits": "one"}), "1"), ("other", json!({"limits": "all"}), "1"), ("third", json!({"limits": "all"}), "9")]
                {
                    store(&mut script, &maps, map(name, json!({"labels": labels, "data": {"most": most}}))).await?;
                }
                let reference = reference.replace("<namespace>", script.namespace());
                let reference: Value = serde_json::from_str(&reference)?;
                let mut spec = limit();
                spec["failurePolicy"] = json!(policy);
                spec["matchConstraints"] = json!({
                    "resourceRules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": script.namespace()}},
                    "excludeResourceRules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                        "resourceNames": ["limit", "other", "third"]}],
                });
                only(&mut script, Kind::Validating, spec, json!({"paramRef": reference})).await?;
                writes(&mut script).await?;
                Ok(script)
            }));
        }
    }
    all.push(Behaviour::new(
        "a policy whose binding names no parameter knows nothing of it",
        |mut script| async move {
            let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{"expression": "params != null", "message": "none"}]});
            only(&mut script, Kind::Validating, spec, json!({})).await?;
            let maps = script.maps();
            script.post(&maps, map("a", json!({}))).await?;
            Ok(script)
        },
    ));
    all.push(Behaviour::new(
        "a binding names a parameter of a policy that has none",
        |mut script| async move {
            let how = json!({"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}});
            only(&mut script, Kind::Validating, json!({}), how).await?;
            let maps = script.maps();
            script.post(&maps, map("a", json!({}))).await?;
            Ok(script)
        },
    ));
    for policy in ["Fail", "Ignore"] {
        let name =
            format!("a policy with a kind of parameters that is not there, with failure policy {policy}");
        all.push(Behaviour::new(name, move |mut script| async move {
            let spec = json!({"failurePolicy": policy, "paramKind": {"apiVersion": "example.com/v1", "kind": "Nothing"}});
            let how = json!({"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}});
            only(&mut script, Kind::Validating, spec, how).await?;
            let maps = script.maps();
            script.post(&maps, map("a", json!({}))).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new("a parameter that belongs to the whole cluster", |mut script| async move {
        let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "Namespace"},
            "validations": [{"expression": "false", "messageExpression": "params.metadata.name + ' ' + params.status.phase"}]});
        let how = json!({"paramRef": {"name": "default", "parameterNotFoundAction": "Deny"}});
        only(&mut script, Kind::Validating, spec, how).await?;
        let maps = script.maps();
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a parameter of the whole cluster in a namespace", |mut script| async move {
        let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "Namespace"}});
        let how = json!({"paramRef": {"name": "default", "namespace": "default", "parameterNotFoundAction": "Deny"}});
        only(&mut script, Kind::Validating, spec, how).await?;
        let maps = script.maps();
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a parameter in the namespace of what is in none", |mut script| async move {
        let class = super::name(&script, "class");
        let mut rule = about("storage.k8s.io", "v1", "storageclasses");
        rule["resourceNames"] = json!([class]);
        let mut spec = limit();
        spec["matchConstraints"] = json!({"resourceRules": [rule]});
        let how = json!({"paramRef": {"name": "limit", "parameterNotFoundAction": "Deny"}});
        only(&mut script, Kind::Validating, spec, how).await?;
        let body = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class}, "provisioner": "x"});
        script.post("/apis/storage.k8s.io/v1/storageclasses", body).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a condition about a parameter", |mut script| async move {
        follow_maps(&mut script).await?;
        let maps = script.maps();
        store(&mut script, &maps, map("limit", json!({"data": {"name": "a"}}))).await?;
        let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConditions": [{"name": "x", "expression": "request.name == params.data.name"}],
            "variables": [{"name": "p", "expression": "params.data.name"}],
            "validations": [{"expression": "false", "messageExpression": "variables.p + '!'"}]});
        let how = json!({"paramRef": {"name": "limit", "parameterNotFoundAction": "Deny"}});
        only(&mut script, Kind::Validating, spec, how).await?;
        script.post(&maps, map("a", json!({}))).await?;
        script.post(&maps, map("b", json!({}))).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a parameter without what is asked of it", |mut script| async move {
        follow_maps(&mut script).await?;
        let maps = script.maps();
        store(&mut script, &maps, map("limit", json!({}))).await?;
        let how = json!({"paramRef": {"name": "limit", "parameterNotFoundAction": "Deny"}});
        only(&mut script, Kind::Validating, limit(), how).await?;
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    }));
    all
}
