//! Gets, lists, watches and tables in a version that is not stored.

use super::about;
use crate::compare::Request;
use crate::parity::Behaviour;
use serde_json::{Value, json};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = vec![
        about("an object is read in either version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.get(widgets.one("a")).await?;
            script.get(widgets.two("a")).await?;
            script.get(widgets.two("b")).await?;
            Ok(script)
        }),
        about("objects are listed in either version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a", "b", "c"]).await?;
            script.get(&widgets.v1).await?;
            script.get(&widgets.v2).await?;
            Ok(script)
        }),
        about("a list goes on page by page", |mut script, widgets| async move {
            widgets.make(&mut script, &["a", "b", "c", "d", "e"]).await?;
            let first = script.send(Request::new("GET", &widgets.v2).with("limit", "2")).await?;
            let token = first.body["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            script.send(Request::new("GET", &widgets.v2).with("limit", "2").with("continue", token)).await?;
            Ok(script)
        }),
        about("a list of any version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a", "b"]).await?;
            // The reference may answer with less than there is.
            script
                .until_it(&widgets.v2, |answer| {
                    answer.body["items"].as_array().is_some_and(|all| all.len() == 2)
                })
                .await?;
            script.send(Request::new("GET", &widgets.v2).with("resourceVersion", "0")).await?;
            Ok(script)
        }),
        about("an empty list", |mut script, widgets| async move {
            script.get(&widgets.v2).await?;
            Ok(script)
        }),
        about("a watch begins with what is there", |mut script, widgets| async move {
            widgets.make(&mut script, &["a", "b"]).await?;
            script.get(&widgets.v2).await?;
            script.watch(Request::new("GET", &widgets.v2).with("watch", "1"), 2).await?;
            Ok(script)
        }),
        about("a watch that lists first", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.get(&widgets.v2).await?;
            let request = Request::new("GET", &widgets.v2)
                .with("watch", "1")
                .with("sendInitialEvents", "true")
                .with("allowWatchBookmarks", "true")
                .with("resourceVersionMatch", "NotOlderThan");
            script.watch(request, 1).await?;
            Ok(script)
        }),
        about(
            "a watch tells of what happens in the version that it is of",
            |mut script, widgets| async move {
                widgets.make(&mut script, &["z"]).await?;
                let mut watches = Vec::new();
                for path in [&widgets.v1, &widgets.v2] {
                    let mut events = script.open_watch(Request::new("GET", path).with("watch", "1")).await?;
                    script.events(&mut events, 1).await?;
                    watches.push(events);
                }
                script.post(&widgets.v1, widgets.first("a", json!({"spec": {"size": 1}}))).await?;
                script.post(&widgets.v2, widgets.second("b", json!({"spec": {"amount": 2}}))).await?;
                script.merge(&widgets.one("a"), json!({"spec": {"size": 3}})).await?;
                script.delete(&widgets.two("b"), json!(null)).await?;
                for mut events in watches {
                    script.events(&mut events, 4).await?;
                }
                Ok(script)
            },
        ),
        about("a watch ends when the definition changes", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let mut events = script.open_watch(Request::new("GET", &widgets.v2).with("watch", "1")).await?;
            script.events(&mut events, 1).await?;
            let column = json!([{"op": "add", "path": "/spec/versions/1/additionalPrinterColumns/0/name", "value": "other"}]);
            script.edit(&widgets.definition, column).await?;
            script.until_it_ends(events).await?;
            Ok(script)
        }),
        about("a watch tells of the objects of a definition that goes", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let mut events = script.open_watch(Request::new("GET", &widgets.v2).with("watch", "1")).await?;
            script.events(&mut events, 1).await?;
            script.quiet(Request::new("DELETE", &widgets.definition)).await?;
            script.until_it_ends(events).await?;
            script.until(&widgets.v2, 404).await?;
            Ok(script)
        }),
        about("a scale is read in either version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.get(format!("{}/scale", widgets.one("a"))).await?;
            script.get(format!("{}/scale", widgets.two("a"))).await?;
            script.get(format!("{}/status", widgets.two("a"))).await?;
            Ok(script)
        }),
    ];
    for (name, form, listed) in [
        ("a table of an object", TABLE, false),
        ("a table of a list", TABLE, true),
        ("the metadata of an object", METADATA, false),
        ("the metadata of a list", METADATA_LIST, true),
    ] {
        all.push(about(name, move |mut script, widgets| async move {
            widgets.make(&mut script, &["a", "b"]).await?;
            let path = if listed { widgets.v2.clone() } else { widgets.two("a") };
            let request = Request::new("GET", path).with("includeObject", "Object");
            let mut answer = script.quiet(request.accepting(form)).await?;
            // Columns have no descriptions here.
            if let Some(columns) = answer.body.get_mut("columnDefinitions").and_then(Value::as_array_mut) {
                columns.iter_mut().for_each(|column| column["description"] = Value::Null);
            }
            script.note(&answer);
            Ok(script)
        }));
    }
    all.push(about("a table that is watched", |mut script, widgets| async move {
        widgets.make(&mut script, &["a"]).await?;
        script.get(&widgets.v2).await?;
        let request = Request::new("GET", &widgets.v2).with("watch", "1").with("includeObject", "None");
        let mut events = script.open_watch(request.accepting(TABLE)).await?;
        let event = events.next().await?.unwrap_or_default();
        script.note_reviews(vec![event["object"]["rows"].clone()]);
        Ok(script)
    }));
    all
}
