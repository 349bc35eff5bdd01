//! Admission webhooks about a kind whose versions are converted by a webhook.

use super::{Widgets, about};
use crate::parity::webhooks::server::{Reply, allowed, denied, patched};
use crate::parity::webhooks::{Kind, configure, hook, serve, tell};
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for kind in [Kind::Mutating, Kind::Validating] {
        let word = if kind == Kind::Mutating { "mutating" } else { "validating" };
        all.push(about(
            &format!("a {word} webhook is told of the version that it wants"),
            move |script, widgets| told(script, widgets, kind),
        ));
        all.push(about(&format!("a {word} webhook while conversion fails"), move |script, widgets| {
            unconverted(script, widgets, kind)
        }));
    }
    all.push(about(
        "a mutating webhook patches in the version that it wants",
        |mut script, widgets| async move {
            let server =
                serve(|_, _| patched(&json!([{"op": "replace", "path": "/spec/hue", "value": "patched"}])))
                    .await?;
            let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules(&widgets, "v2")}))];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            script.post(&widgets.v1, widgets.first("a", json!({"spec": {"size": 1, "color": "x"}}))).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        },
    ));
    all.push(about(
        "a webhook that wants exactly its version is not asked",
        |mut script, widgets| async move {
            let server = serve(|_, _| denied("asked")).await?;
            let fields = json!({"rules": rules(&widgets, "v2"), "matchPolicy": "Exact"});
            let hooks = vec![hook(&script, &server, "hook", fields)];
            configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
            script.post(&widgets.v1, widgets.first("a", json!({"spec": {"size": 1}}))).await?;
            script.post(&widgets.v2, widgets.second("b", json!({"spec": {"amount": 1}}))).await?;
            Ok(script)
        },
    ));
    all.push(about(
        "conditions are about the version that a webhook wants",
        |mut script, widgets| async move {
            let server = serve(|_, _| denied("asked")).await?;
            let condition = json!([{"name": "large", "expression": "object.spec.amount > 5"}]);
            let fields = json!({"rules": rules(&widgets, "v2"), "matchConditions": condition});
            let hooks = vec![hook(&script, &server, "hook", fields)];
            configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
            script.post(&widgets.v1, widgets.first("a", json!({"spec": {"size": 1}}))).await?;
            script.post(&widgets.v1, widgets.first("b", json!({"spec": {"size": 9}}))).await?;
            Ok(script)
        },
    ));
    all
}

fn rules(widgets: &Widgets, version: &str) -> Value {
    json!([{"operations": ["*"], "apiGroups": [widgets.group], "apiVersions": [version], "resources": ["widgets", "widgets/status"]}])
}

async fn told(mut script: Script, widgets: Widgets, kind: Kind) -> anyhow::Result<Script> {
    let server = serve(|_, _| allowed()).await?;
    let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules(&widgets, "v2")}))];
    configure(&mut script, &server, kind, "it", hooks).await?;
    script.post(&widgets.v1, widgets.first("a", json!({"spec": {"size": 1}}))).await?;
    script.merge(&widgets.one("a"), json!({"spec": {"size": 2}})).await?;
    script.merge(&format!("{}/status", widgets.one("a")), json!({"status": {"ready": 2}})).await?;
    script.delete(&widgets.one("a"), Value::Null).await?;
    tell(&mut script, &server, false);
    Ok(script)
}

async fn unconverted(mut script: Script, widgets: Widgets, kind: Kind) -> anyhow::Result<Script> {
    let server = serve(|_, _| -> Reply { allowed() }).await?;
    let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules(&widgets, "v2")}))];
    configure(&mut script, &server, kind, "it", hooks).await?;
    widgets.answer(|_| super::faults::refusing("not today"));
    script.post(&widgets.v1, widgets.first("a", json!({"spec": {"size": 1}}))).await?;
    script.get(&widgets.v1).await?;
    Ok(script)
}
