//! The storage version, and what becomes of objects when it changes.

use super::{Widgets, about, definition};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::webhooks::server::Server;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

pub(super) fn behaviours() -> Vec<Behaviour> {
    vec![
        about("the storage version changes, and both remain readable", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            store_second(&mut script, &widgets).await?;
            script.get(widgets.one("a")).await?;
            script.get(widgets.two("a")).await?;
            script.post(&widgets.v1, widgets.first("b", json!({"spec": {"size": 5}}))).await?;
            script.get(&widgets.v1).await?;
            script.get(&widgets.v2).await?;
            Ok(script)
        }),
        about("an object is stored anew by a write that changes nothing", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            store_second(&mut script, &widgets).await?;
            let live = script.get(widgets.two("a")).await?.body;
            script.put(&widgets.two("a"), live).await?;
            script.merge(&widgets.one("a"), json!({})).await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about(
            "what is stored in an old version needs the webhook in the new one",
            |mut script, widgets| async move {
                widgets.make(&mut script, &["a"]).await?;
                store_second(&mut script, &widgets).await?;
                widgets.answer(|_| super::faults::refusing("not now"));
                script.get(widgets.two("a")).await?;
                script.get(widgets.one("a")).await?;
                Ok(script)
            },
        ),
        about("stored versions are kept until they are taken out", |mut script, widgets| async move {
            store_second(&mut script, &widgets).await?;
            let status = format!("{}/status", widgets.definition);
            for stored in [json!(["v1"]), json!(["v2"])] {
                let request = Request::new("PATCH", &status)
                    .body(media::MERGE_PATCH, json!({"status": {"storedVersions": stored}}));
                let answer = script.quiet(request).await?;
                script.note(&crate::compare::Answer {
                    body: json!([answer.body["status"]["storedVersions"], answer.body["message"]]),
                    ..answer
                });
            }
            Ok(script)
        }),
        about("a version that is stored may not be removed", |mut script, widgets| async move {
            store_second(&mut script, &widgets).await?;
            script.edit(&widgets.definition, json!([{"op": "remove", "path": "/spec/versions/0"}])).await?;
            Ok(script)
        }),
        about("objects of a version that is gone cannot be converted", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            store_second(&mut script, &widgets).await?;
            let status = format!("{}/status", widgets.definition);
            let request = Request::new("PATCH", &status)
                .body(media::MERGE_PATCH, json!({"status": {"storedVersions": ["v2"]}}));
            script.quiet(request).await?;
            let gone = json!([{"op": "remove", "path": "/spec/versions/0"}]);
            let answer = script
                .quiet(Request::new("PATCH", &widgets.definition).body(media::JSON_PATCH, gone))
                .await?;
            anyhow::ensure!(answer.is_success(), "the version was not removed: {answer}");
            script.until(&widgets.v1, 404).await?;
            script.until(&widgets.two("a"), 500).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("a version that is not served is converted from", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let unserved = json!([{"op": "replace", "path": "/spec/versions/0/served", "value": false}]);
            script
                .quiet(Request::new("PATCH", &widgets.definition).body(media::JSON_PATCH, unserved))
                .await?;
            script.until(&widgets.v1, 404).await?;
            script.get(widgets.two("a")).await?;
            script.merge(&widgets.two("a"), json!({"spec": {"amount": 8}})).await?;
            script.post(&widgets.v2, widgets.second("b", json!({"spec": {"amount": 8}}))).await?;
            script.delete(&widgets.two("a"), Value::Null).await?;
            Ok(script)
        }),
        about("the strategy becomes None", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
            let answer = script
                .quiet(Request::new("PATCH", &widgets.definition).body(media::MERGE_PATCH, none))
                .await?;
            anyhow::ensure!(answer.is_success(), "the strategy did not change: {answer}");
            script.until_it(&widgets.two("a"), |answer| answer.body["spec"].get("amount").is_none()).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        Behaviour::new("conversion: the strategy becomes Webhook", |mut script: Script| async move {
            let widgets = Widgets::define(&mut script, |definition| {
                definition["spec"]["conversion"] = json!({"strategy": "None"});
            })
            .await?;
            widgets.make(&mut script, &["a"]).await?;
            script.get(widgets.two("a")).await?;
            let client = json!({"url": widgets.server.url("convert"), "caBundle": Server::bundle()});
            let conversion = definition(&script, &client)["spec"]["conversion"].clone();
            let change = json!({"spec": {"conversion": conversion}});
            let answer = script
                .quiet(Request::new("PATCH", &widgets.definition).body(media::MERGE_PATCH, change))
                .await?;
            anyhow::ensure!(answer.is_success(), "the strategy did not change: {answer}");
            script.until_it(&widgets.two("a"), |answer| answer.body["spec"].get("amount").is_some()).await?;
            script.get(widgets.two("a")).await?;
            script.get(&widgets.v2).await?;
            Ok(script)
        }),
        about("a definition goes though its webhook is down", |mut script, mut widgets| async move {
            widgets.make(&mut script, &["a", "b"]).await?;
            widgets.server.stop();
            script.quiet(Request::new("DELETE", &widgets.definition)).await?;
            script.until(&widgets.definition, 404).await?;
            script.get(&widgets.v1).await?;
            Ok(script)
        }),
        about("a namespace goes with objects of another version", |mut script, widgets| async move {
            script.post(&widgets.v2, widgets.second("a", json!({"spec": {"amount": 1}}))).await?;
            script.delete(&widgets.v1, Value::Null).await?;
            script.get(&widgets.v2).await?;
            Ok(script)
        }),
    ]
}

/// Stores in v2 from now on, and waits until that is so.
async fn store_second(script: &mut Script, widgets: &Widgets) -> anyhow::Result<()> {
    let change = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
        {"op": "add", "path": "/spec/versions/0/additionalPrinterColumns/-",
            "value": {"name": "marker", "type": "string", "jsonPath": ".spec.color"}},
    ]);
    let answer =
        script.quiet(Request::new("PATCH", &widgets.definition).body(media::JSON_PATCH, change)).await?;
    anyhow::ensure!(answer.is_success(), "the storage version did not change: {answer}");
    // The new column is the marker.
    let table = Request::new("GET", &widgets.v1).accepting("application/json;as=Table;v=v1;g=meta.k8s.io");
    script
        .until_asked(table, |answer| {
            answer.body["columnDefinitions"].as_array().is_some_and(|columns| columns.len() == 3)
        })
        .await?;
    let stored = script.quiet(Request::new("GET", &widgets.definition)).await?;
    script.note(&crate::compare::Answer { body: stored.body["status"]["storedVersions"].clone(), ..stored });
    Ok(())
}
