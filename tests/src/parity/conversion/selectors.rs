//! Label and field selectors, which look at objects in the version that is asked for.

use super::{Widgets, about, convert};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, selector) in [
        ("a field of this version", "spec.hue=green"),
        ("a field of this version that nothing has", "spec.hue=none"),
        ("a field of this version by what it is not", "spec.hue!=green"),
        ("a field of the other version", "spec.color=green"),
        ("the name", "metadata.name=b"),
        ("a field and the name", "spec.hue=green,metadata.name=c"),
    ] {
        all.push(about(&format!("a list selects by {name}"), move |script, widgets| {
            selected(script, widgets, "fieldSelector", selector)
        }));
    }
    for selector in ["number=1", "number notin (1)", "!number"] {
        all.push(about(&format!("a list selects by the labels {selector}"), move |script, widgets| {
            selected(script, widgets, "labelSelector", selector)
        }));
    }
    all.push(about("a list selects by labels that a conversion gives", |mut script, widgets| async move {
        widgets.spoil(|objects| {
            for object in objects {
                object["metadata"]["labels"] = json!({"amount": object["spec"]["amount"].to_string()});
            }
        });
        widgets.make(&mut script, &["a", "b", "c"]).await?;
        for selector in ["amount=2", "number=1"] {
            for path in [&widgets.v1, &widgets.v2] {
                script.send(Request::new("GET", path).with("labelSelector", selector)).await?;
            }
        }
        Ok(script)
    }));
    all.push(about("a list of what is selected goes on page by page", |mut script, widgets| async move {
        widgets.make(&mut script, &["a", "b", "c", "d", "e"]).await?;
        let request =
            || Request::new("GET", &widgets.v2).with("fieldSelector", "spec.hue=green").with("limit", "2");
        let first = script.send(request()).await?;
        let token = first.body["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        script.send(request().with("continue", token)).await?;
        Ok(script)
    }));
    all.push(about("a watch selects in its version", |mut script, widgets| async move {
        widgets.make(&mut script, &["a", "b"]).await?;
        let request =
            Request::new("GET", &widgets.v2).with("watch", "1").with("fieldSelector", "spec.hue=green");
        let mut events = script.open_watch(request).await?;
        script.events(&mut events, 1).await?;
        // It leaves the selection, and comes back, in the other version.
        script.merge(&widgets.one("a"), json!({"spec": {"color": "black"}})).await?;
        script.merge(&widgets.one("a"), json!({"spec": {"color": "green"}})).await?;
        script.merge(&widgets.one("a"), json!({"spec": {"size": 50}})).await?;
        script.delete(&widgets.one("a"), Value::Null).await?;
        script.events(&mut events, 4).await?;
        Ok(script)
    }));
    all.push(about("a watch of one object", |mut script, widgets| async move {
        widgets.make(&mut script, &["a", "b"]).await?;
        let request =
            Request::new("GET", &widgets.v2).with("watch", "1").with("fieldSelector", "metadata.name=b");
        let mut events = script.open_watch(request).await?;
        script.events(&mut events, 1).await?;
        script.merge(&widgets.one("a"), json!({"spec": {"size": 50}})).await?;
        script.merge(&widgets.one("b"), json!({"spec": {"size": 51}})).await?;
        script.events(&mut events, 1).await?;
        Ok(script)
    }));
    all.push(about("a collection is deleted by a field of its version", |mut script, widgets| async move {
        widgets.make(&mut script, &["a", "b", "c"]).await?;
        script.send(Request::new("DELETE", &widgets.v2).with("fieldSelector", "spec.hue=green")).await?;
        script.get(&widgets.v1).await?;
        Ok(script)
    }));
    all.push(Behaviour::new(
        "conversion: fields are selected by their version without a webhook, too",
        |mut script: Script| async move {
            let widgets = Widgets::define(&mut script, |definition| {
                definition["spec"]["conversion"] = json!({"strategy": "None"});
                // Both versions have the same fields, and select by others.
                let mut schema = definition["spec"]["versions"][0]["schema"].clone();
                schema["openAPIV3Schema"]["properties"]["more"] = json!({"type": "string"});
                definition["spec"]["versions"][1]["schema"] = schema;
                definition["spec"]["versions"][1]["selectableFields"] = json!([{"jsonPath": ".spec.size"}]);
                definition["spec"]["versions"][1]["subresources"] = json!({});
            })
            .await?;
            widgets.make(&mut script, &["a", "b", "c"]).await?;
            let body = widgets.second("d", json!({"spec": {"size": 2, "color": "green"}}));
            script.quiet(Request::new("POST", &widgets.v2).body(media::JSON, body)).await?;
            script.send(Request::new("GET", &widgets.v1).with("fieldSelector", "spec.color=green")).await?;
            script.send(Request::new("GET", &widgets.v2).with("fieldSelector", "spec.size=2")).await?;
            script.send(Request::new("GET", &widgets.v2).with("fieldSelector", "spec.color=green")).await?;
            Ok(script)
        },
    ));
    all.push(Behaviour::new("conversion: fields that become selectable select what was there before", |mut script: Script| async move {
        let widgets = Widgets::define(&mut script, |definition| {
            for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
                version["selectableFields"] = json!([]);
            }
        })
        .await?;
        widgets.make(&mut script, &["a", "b", "c"]).await?;
        let fields = json!([{"op": "add", "path": "/spec/versions/0/selectableFields", "value": [{"jsonPath": ".spec.color"}]}]);
        script.edit(&widgets.definition, fields).await?;
        let request = Request::new("GET", &widgets.v1).with("fieldSelector", "spec.color=green");
        script.until_asked(request.clone(), |answer| answer.is_success()).await?;
        script.send(request).await?;
        Ok(script)
    }));
    all
}

async fn selected(
    mut script: Script,
    widgets: Widgets,
    kind: &'static str,
    selector: &'static str,
) -> anyhow::Result<Script> {
    widgets.make(&mut script, &["a", "b", "c"]).await?;
    script.send(Request::new("GET", &widgets.v2).with(kind, selector)).await?;
    // What is written in this version is selected in the other.
    let object = convert(
        &widgets.first("d", json!({"spec": {"size": 1, "color": "green"}})),
        &format!("{}/v2", widgets.group),
    );
    script.quiet(Request::new("POST", &widgets.v2).body(media::JSON, object)).await?;
    let other = selector.replace("hue", "color");
    script.send(Request::new("GET", &widgets.v1).with(kind, other)).await?;
    Ok(script)
}
