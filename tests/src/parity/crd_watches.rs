//! Watches of custom resources, and the objects, when their CRD is changed or deleted.

use super::script::Definition;
use super::{Behaviour, Script};
use crate::compare::{Request, exchange::Events};
use serde_json::{Value, json};

/// What is changed about a definition, by a JSON patch.
const CHANGES: &[(&str, &str)] = &[
    (
        "a field more",
        r#"[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/more", "value": {"type": "string"}}]"#,
    ),
    (
        "a column",
        r#"[{"op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]}]"#,
    ),
    ("a short name", r#"[{"op": "add", "path": "/spec/names/shortNames", "value": ["wdgt"]}]"#),
    ("nothing", "[]"),
    ("a label of its own", r#"[{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]"#),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, patch) in CHANGES {
        let named = format!("definitions: watches when it gets {name}");
        all.push(Behaviour::new(named, move |script: Script| changed(script, patch)));
    }
    all.push(Behaviour::new("definitions: watches when a version is no longer served", unserved));
    all.push(Behaviour::new("definitions: deleted, its watches tell of its objects and end", deleted));
    all.push(Behaviour::new("definitions: made again, its objects stay gone", made_again));
    all
}

/// A definition with two objects, and a watch that has told of both.
async fn watched(script: &mut Script) -> anyhow::Result<(Definition, Events)> {
    let spec = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let defined = script.define(script.with_spec(spec)).await?;
    for name in ["one", "two"] {
        script.post(&defined.objects, defined.object(name, json!({"spec": {"a": name}}))).await?;
    }
    let request = Request::new("GET", &defined.objects).with("watch", "1");
    let mut events = script.open_watch(request).await?;
    for _ in 0..2 {
        let event = events.next().await?.unwrap_or_default();
        anyhow::ensure!(event["type"] == "ADDED", "the watch begins with {event}");
    }
    Ok((defined, events))
}

async fn changed(mut script: Script, patch: &'static str) -> anyhow::Result<Script> {
    let (defined, events) = watched(&mut script).await?;
    let patch: Value = serde_json::from_str(patch)?;
    script.edit(&defined.path, patch).await?;
    // Whether it ends by that or goes on, what is written afterwards tells.
    script.until_it_ends_or_goes_on(events, &defined).await?;
    script.get(defined.item("one")).await?;
    Ok(script)
}

async fn unserved(mut script: Script) -> anyhow::Result<Script> {
    let (defined, events) = watched(&mut script).await?;
    let second = json!({
        "name": "v2", "served": true, "storage": false,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    });
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/0/served", "value": false},
        {"op": "add", "path": "/spec/versions/-", "value": second},
    ]);
    script.edit(&defined.path, patch).await?;
    script.until_it_ends(events).await?;
    script.until(&defined.item("one").replace("/v1/", "/v2/"), 200).await?;
    script.until(&defined.objects, 404).await?;
    script.get(defined.objects.clone()).await?;
    Ok(script)
}

async fn deleted(mut script: Script) -> anyhow::Result<Script> {
    let (defined, events) = watched(&mut script).await?;
    script.delete(&defined.path, json!({})).await?;
    script.until_it_ends(events).await?;
    script.until(&defined.path, 404).await?;
    script.until(&defined.objects, 404).await?;
    script.get(defined.item("one")).await?;
    Ok(script)
}

async fn made_again(mut script: Script) -> anyhow::Result<Script> {
    let (defined, events) = watched(&mut script).await?;
    drop(events);
    script.delete(&defined.path, json!({})).await?;
    script.until(&defined.path, 404).await?;
    script.until(&defined.objects, 404).await?;
    let again = script.define(script.with_spec(json!({"type": "object"}))).await?;
    script.get(again.objects.clone()).await?;
    script.get(again.item("one")).await?;
    script.post(&again.objects, again.object("one", json!({"spec": {}}))).await?;
    Ok(script)
}
