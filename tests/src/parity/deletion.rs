//! Deletion: options, finalizers, collections and namespaces.

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use serde_json::{Value, json};

/// Options of the deletion of a config map.
const OPTIONS: &[(&str, &str)] = &[
    ("its uid as a precondition", r#"{"preconditions": {"uid": "<uid 1>"}}"#),
    (
        "another uid as a precondition",
        r#"{"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}"#,
    ),
    ("its version as a precondition", r#"{"preconditions": {"resourceVersion": "<version 1>"}}"#),
    ("another version as a precondition", r#"{"preconditions": {"resourceVersion": "1"}}"#),
    ("in the foreground", r#"{"propagationPolicy": "Foreground"}"#),
    ("in the background", r#"{"propagationPolicy": "Background"}"#),
    ("leaving orphans", r#"{"propagationPolicy": "Orphan"}"#),
    ("by a policy that there is not", r#"{"propagationPolicy": "Sideways"}"#),
    ("leaving orphans, in the old way", r#"{"orphanDependents": true}"#),
    ("leaving no orphans, in the old way", r#"{"orphanDependents": false}"#),
    ("in both ways at once", r#"{"orphanDependents": true, "propagationPolicy": "Orphan"}"#),
    ("with grace", r#"{"gracePeriodSeconds": 30}"#),
    ("without grace", r#"{"gracePeriodSeconds": 0}"#),
    ("with a grace below zero", r#"{"gracePeriodSeconds": -1}"#),
    ("as a rehearsal", r#"{"dryRun": ["All"]}"#),
    ("as a rehearsal that there is not", r#"{"dryRun": ["None"]}"#),
    ("with options of a wrong type", r#"{"gracePeriodSeconds": "x"}"#),
    ("with options of their kind", r#"{"apiVersion": "v1", "kind": "DeleteOptions"}"#),
    ("with options of another kind", r#"{"apiVersion": "v1", "kind": "ConfigMap"}"#),
    ("with an unknown option", r#"{"colour": "red"}"#),
    ("with options that are a list", "[]"),
    ("with options that are no JSON", "{"),
];

/// Queries of the deletion of a collection.
const COLLECTIONS: &[(&str, &[(&str, &str)])] = &[
    ("everything", &[]),
    ("by label", &[("labelSelector", "app=web")]),
    ("by field", &[("fieldSelector", "metadata.name!=a")]),
    ("with a limit", &[("limit", "1")]),
    ("as a rehearsal", &[("dryRun", "All")]),
    ("by a bad selector", &[("labelSelector", "=")]),
    ("in the foreground", &[("propagationPolicy", "Foreground")]),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, options) in OPTIONS {
        all.push(Behaviour::new(format!("deletion: {name}"), move |mut script: Script| async move {
            script.map("a", json!({})).await?;
            let item = format!("{}/a", script.maps());
            // Placeholders are filled in where the body is a value.
            let request = Request::new("DELETE", &item);
            script
                .send(match serde_json::from_str::<Value>(options) {
                    Ok(options) => request.body(media::JSON, options),
                    Err(_) => request.raw(media::JSON, *options),
                })
                .await?;
            script.get(&item).await?;
            Ok(script)
        }));
    }
    for (name, query) in COLLECTIONS {
        all.push(Behaviour::new(
            format!("deletion of a collection: {name}"),
            move |mut script: Script| async move {
                script.map("a", json!({"app": "web"})).await?;
                script.map("b", json!({"app": "web"})).await?;
                script.map("c", json!({"app": "db"})).await?;
                let request = Request::new("DELETE", script.maps());
                script
                    .send(query.iter().fold(request, |request, (name, value)| request.with(name, *value)))
                    .await?;
                let maps = script.maps();
                script.get(&maps).await?;
                Ok(script)
            },
        ));
    }
    all.push(Behaviour::new("deletion: one finalizer of two", two_finalizers));
    all.push(Behaviour::new("deletion: no finalizer may be added afterwards", late_finalizer));
    all.push(Behaviour::new("deletion: twice while it is held", twice));
    all.push(Behaviour::new("deletion: foreground, then the finalizer goes", foreground));
    all.push(Behaviour::new("deletion: a held object can still be changed", changed_while_held));
    all.push(Behaviour::new("deletion: a new object of the name has a new uid", again));
    all.push(Behaviour::new("namespaces: created and read", namespace_made));
    all.push(Behaviour::new("namespaces: deleted, it terminates until it is finalized", namespace_ends));
    all.push(Behaviour::new("namespaces: nothing is created in one that terminates", namespace_closed));
    all.push(Behaviour::new("namespaces: some cannot be deleted", immortal));
    all.push(Behaviour::new("namespaces: nothing is created in one that is not there", nowhere));
    all.push(Behaviour::new("namespaces: the finalizers change only by finalize", namespace_spec));
    all.push(Behaviour::new("namespaces: a phase that does not fit", namespace_phase));
    all.push(Behaviour::new("namespaces: the label with its name comes back", namespace_label));
    all.push(Behaviour::new("namespaces: they are not deleted as a collection", namespace_collection));
    all
}

async fn held(script: &mut Script, finalizers: Value) -> anyhow::Result<String> {
    let maps = script.maps();
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": finalizers}});
    script.post(&maps, object).await?;
    Ok(format!("{maps}/a"))
}

async fn two_finalizers(mut script: Script) -> anyhow::Result<Script> {
    let item = held(&mut script, json!(["example.com/a", "example.com/b"])).await?;
    script.delete(&item, json!(null)).await?;
    script.edit(&item, json!([{"op": "remove", "path": "/metadata/finalizers/0"}])).await?;
    script.edit(&item, json!([{"op": "remove", "path": "/metadata/finalizers/0"}])).await?;
    script.get(&item).await?;
    Ok(script)
}

async fn late_finalizer(mut script: Script) -> anyhow::Result<Script> {
    let item = held(&mut script, json!(["example.com/a"])).await?;
    script.delete(&item, json!(null)).await?;
    script.merge(&item, json!({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})).await?;
    Ok(script)
}

async fn twice(mut script: Script) -> anyhow::Result<Script> {
    let item = held(&mut script, json!(["example.com/a"])).await?;
    script.delete(&item, json!(null)).await?;
    script.delete(&item, json!({"gracePeriodSeconds": 5})).await?;
    script.delete(&item, json!({"propagationPolicy": "Foreground"})).await?;
    script.delete(&item, json!({"propagationPolicy": "Orphan"})).await?;
    Ok(script)
}

async fn foreground(mut script: Script) -> anyhow::Result<Script> {
    script.map("a", json!({})).await?;
    let item = format!("{}/a", script.maps());
    script.delete(&item, json!({"propagationPolicy": "Foreground"})).await?;
    script.merge(&item, json!({"metadata": {"finalizers": null}})).await?;
    script.get(&item).await?;
    Ok(script)
}

async fn changed_while_held(mut script: Script) -> anyhow::Result<Script> {
    let item = held(&mut script, json!(["example.com/a"])).await?;
    script.delete(&item, json!(null)).await?;
    script.merge(&item, json!({"data": {"x": "1"}})).await?;
    script.merge(&item, json!({"metadata": {"deletionTimestamp": null}})).await?;
    Ok(script)
}

async fn again(mut script: Script) -> anyhow::Result<Script> {
    let maps = script.maps();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let first = script.post(&maps, object.clone()).await?;
    script.delete(&format!("{maps}/a"), json!(null)).await?;
    script.post(&maps, object.clone()).await?;
    let mut late = object;
    late["metadata"]["uid"] = first.body["metadata"]["uid"].clone();
    script.put(&format!("{maps}/a"), late).await?;
    Ok(script)
}

/// A namespace of the script's own, beside the one that it lives in.
async fn other(script: &mut Script) -> anyhow::Result<String> {
    let name = format!("{}-other", script.namespace());
    script
        .post(
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        )
        .await?;
    Ok(format!("/api/v1/namespaces/{name}"))
}

async fn namespace_made(mut script: Script) -> anyhow::Result<Script> {
    let path = other(&mut script).await?;
    script.get(&path).await?;
    script.get(format!("{path}/status")).await?;
    Ok(script)
}

async fn namespace_ends(mut script: Script) -> anyhow::Result<Script> {
    let path = other(&mut script).await?;
    let found = script.delete(&path, json!(null)).await?;
    let name = format!("{}-other", script.namespace());
    let mut body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}});
    body["metadata"]["resourceVersion"] = found.body["metadata"]["resourceVersion"].clone();
    script.put(&format!("{path}/finalize"), body).await?;
    script.get(&path).await?;
    Ok(script)
}

async fn namespace_closed(mut script: Script) -> anyhow::Result<Script> {
    let path = other(&mut script).await?;
    script.delete(&path, json!(null)).await?;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    script.post(&format!("{path}/configmaps"), object).await?;
    Ok(script)
}

async fn immortal(mut script: Script) -> anyhow::Result<Script> {
    for name in ["default", "kube-system", "kube-public"] {
        script.delete(&format!("/api/v1/namespaces/{name}"), json!(null)).await?;
    }
    Ok(script)
}

async fn nowhere(mut script: Script) -> anyhow::Result<Script> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    script.post("/api/v1/namespaces/there-is-no-such/configmaps", object.clone()).await?;
    script.apply("/api/v1/namespaces/there-is-no-such/configmaps/a", "one", object).await?;
    Ok(script)
}

async fn namespace_spec(mut script: Script) -> anyhow::Result<Script> {
    let path = other(&mut script).await?;
    script.merge(&path, json!({"spec": {"finalizers": ["kubernetes", "example.com/a"]}})).await?;
    script.merge(&path, json!({"spec": {"finalizers": ["bad finalizer"]}})).await?;
    Ok(script)
}

async fn namespace_phase(mut script: Script) -> anyhow::Result<Script> {
    let path = other(&mut script).await?;
    script.merge(&format!("{path}/status"), json!({"status": {"phase": "Terminating"}})).await?;
    script.merge(&path, json!({"status": {"phase": "Terminating"}})).await?;
    Ok(script)
}

async fn namespace_label(mut script: Script) -> anyhow::Result<Script> {
    let path = other(&mut script).await?;
    script.merge(&path, json!({"metadata": {"labels": null}})).await?;
    script.merge(&path, json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}})).await?;
    Ok(script)
}

async fn namespace_collection(mut script: Script) -> anyhow::Result<Script> {
    script.delete("/api/v1/namespaces", json!(null)).await?;
    Ok(script)
}
