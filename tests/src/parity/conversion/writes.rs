//! Creates, updates, patches and deletions in a version that is not stored.

use super::about;
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::Behaviour;
use serde_json::{Value, json};

pub(super) fn behaviours() -> Vec<Behaviour> {
    vec![
        about("an object is created in another version", |mut script, widgets| async move {
            script
                .post(&widgets.v2, widgets.second("a", json!({"spec": {"amount": 3, "hue": "pink"}})))
                .await?;
            script.get(widgets.one("a")).await?;
            script.get(widgets.two("a")).await?;
            script.post(&widgets.v2, widgets.second("a", json!({}))).await?;
            Ok(script)
        }),
        about("each version has defaults of its own", |mut script, widgets| async move {
            script.post(&widgets.v1, widgets.first("a", json!({"spec": {}}))).await?;
            script.post(&widgets.v2, widgets.second("b", json!({"spec": {}}))).await?;
            for name in ["a", "b"] {
                script.get(widgets.one(name)).await?;
                script.get(widgets.two(name)).await?;
            }
            Ok(script)
        }),
        about("defaults are filled in before a conversion, not after it", |mut script, widgets| async move {
            widgets.spoil(|objects| {
                for object in objects {
                    if let Some(spec) = object["spec"].as_object_mut() {
                        spec.remove("hue");
                        spec.remove("color");
                    }
                }
            });
            script.post(&widgets.v2, widgets.second("a", json!({"spec": {"amount": 1, "hue": "x"}}))).await?;
            script.get(widgets.one("a")).await?;
            script.get(widgets.two("a")).await?;
            script.get(&widgets.v2).await?;
            Ok(script)
        }),
        about("what a version does not know is pruned on either side", |mut script, widgets| async move {
            widgets.spoil(|objects| {
                for object in objects {
                    object["spec"]["unknown"] = json!(1);
                    object["more"] = json!({"a": "b"});
                }
            });
            let body = widgets.second("a", json!({"spec": {"amount": 1, "odd": true}}));
            script.post(&widgets.v2, body).await?;
            script.get(widgets.one("a")).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("nulls of a conversion are dropped", |mut script, widgets| async move {
            widgets.spoil(|objects| {
                for object in objects {
                    object["spec"]["list"] = Value::Null;
                }
            });
            script.post(&widgets.v2, widgets.second("a", json!({"spec": {"amount": 1}}))).await?;
            script.get(widgets.one("a")).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("what a conversion makes is not validated", |mut script, widgets| async move {
            widgets.spoil(|objects| {
                for object in objects {
                    object["spec"]["amount"] = json!("many");
                }
            });
            widgets.make(&mut script, &["a"]).await?;
            script.get(widgets.two("a")).await?;
            script.merge(&widgets.two("a"), json!({"spec": {"hue": "x"}})).await?;
            Ok(script)
        }),
        about("an invalid object is refused before it is converted", |mut script, widgets| async move {
            script.post(&widgets.v2, widgets.second("a", json!({"spec": {"amount": "many"}}))).await?;
            script.post(&widgets.v2, widgets.first("a", json!({"spec": {"size": 1}}))).await?;
            Ok(script)
        }),
        about("an object is updated in either version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let mut live = script.get(widgets.two("a")).await?.body;
            live["spec"]["amount"] = json!(9);
            let updated = script.put(&widgets.two("a"), live.clone()).await?.body;
            script.get(widgets.one("a")).await?;
            // An old one, and one that changes nothing.
            script.put(&widgets.two("a"), live).await?;
            script.put(&widgets.two("a"), updated).await?;
            let mut live = script.get(widgets.one("a")).await?.body;
            live["spec"]["size"] = json!(10);
            script.put(&widgets.one("a"), live).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("an update that changes nothing writes nothing", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let one = script.get(widgets.one("a")).await?.body;
            let two = script.get(widgets.two("a")).await?.body;
            script.put(&widgets.two("a"), two).await?;
            script.put(&widgets.one("a"), one).await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about("an update of what is not there", |mut script, widgets| async move {
            script.put(&widgets.two("a"), widgets.second("a", json!({"resourceVersion": "1"}))).await?;
            script.merge(&widgets.two("a"), json!({"spec": {"amount": 1}})).await?;
            script.delete(&widgets.two("a"), Value::Null).await?;
            Ok(script)
        }),
        about("a merge patch speaks the version of its path", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.merge(&widgets.two("a"), json!({"spec": {"amount": 7, "size": 8}})).await?;
            script
                .merge(
                    &widgets.one("a"),
                    json!({"spec": {"color": null}, "metadata": {"labels": {"x": "y"}}}),
                )
                .await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("a JSON patch speaks the version of its path", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let test = json!([{"op": "test", "path": "/spec/amount", "value": 1}, {"op": "replace", "path": "/spec/amount", "value": 2}]);
            script.edit(&widgets.two("a"), test.clone()).await?;
            script.edit(&widgets.one("a"), test).await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about("a patch may not change the version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.merge(&widgets.two("a"), json!({"apiVersion": format!("{}/v1", widgets.group)})).await?;
            Ok(script)
        }),
        about("the status is written in either version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let path = format!("{}/status", widgets.two("a"));
            let mut live = script.get(widgets.two("a")).await?.body;
            live["status"] = json!({"count": 5});
            live["spec"]["amount"] = json!(100);
            script.put(&path, live).await?;
            script.get(widgets.one("a")).await?;
            script.merge(&path, json!({"status": {"count": 6}})).await?;
            script.merge(&format!("{}/status", widgets.one("a")), json!({"status": {"ready": 7}})).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("a scale is written in either version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let path = format!("{}/scale", widgets.two("a"));
            let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 4}});
            script.put(&path, scale).await?;
            script.get(widgets.one("a")).await?;
            script.merge(&path, json!({"spec": {"replicas": 5}})).await?;
            script.merge(&format!("{}/scale", widgets.one("a")), json!({"spec": {"replicas": 6}})).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("a dry run goes through the storage version and back", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            widgets.spoil(|objects| {
                for object in objects {
                    object["spec"]["list"] =
                        json!([object["apiVersion"].as_str().unwrap_or_default().len().to_string()]);
                }
            });
            let new = widgets.second("b", json!({"spec": {"amount": 1, "list": ["before"]}}));
            script
                .send(Request::new("POST", &widgets.v2).with("dryRun", "All").body(media::JSON, new))
                .await?;
            let patch = json!({"spec": {"amount": 5}});
            script
                .send(
                    Request::new("PATCH", widgets.two("a"))
                        .with("dryRun", "All")
                        .body(media::MERGE_PATCH, patch),
                )
                .await?;
            script.get(widgets.two("b")).await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about("a generated name", |mut script, widgets| async move {
            let mut body = widgets.second("", json!({"spec": {"amount": 1}}));
            body["metadata"] = json!({"generateName": "made-"});
            let answer = script.quiet(Request::new("POST", &widgets.v2).body(media::JSON, body)).await?;
            script.note(&crate::compare::Answer { body: answer.body["spec"].clone(), ..answer });
            Ok(script)
        }),
        about("an object is deleted in either version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a", "b"]).await?;
            script.delete(&widgets.two("a"), Value::Null).await?;
            script.delete(&widgets.one("b"), Value::Null).await?;
            script.get(&widgets.v2).await?;
            Ok(script)
        }),
        about("an object with a finalizer is marked, and goes with it", |mut script, widgets| async move {
            let fields = json!({"spec": {"size": 1}, "finalizers": ["example.com/one"]});
            script.post(&widgets.v1, widgets.first("a", fields)).await?;
            script.delete(&widgets.two("a"), Value::Null).await?;
            script.get(widgets.one("a")).await?;
            script.merge(&widgets.two("a"), json!({"metadata": {"finalizers": null}})).await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about("a deletion in the foreground", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.delete(&widgets.two("a"), json!({"propagationPolicy": "Orphan"})).await?;
            script.merge(&widgets.two("a"), json!({"metadata": {"finalizers": null}})).await?;
            Ok(script)
        }),
        about("a dry run of a deletion", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.send(Request::new("DELETE", widgets.two("a")).with("dryRun", "All")).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("a collection is deleted in another version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a", "b", "c"]).await?;
            script.send(Request::new("DELETE", &widgets.v2).with("labelSelector", "number in (0,1)")).await?;
            script.get(&widgets.v1).await?;
            script.delete(&widgets.v2, Value::Null).await?;
            script.get(&widgets.v2).await?;
            Ok(script)
        }),
        about("a deletion by UID and version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.delete(&widgets.two("a"), json!({"preconditions": {"uid": "other"}})).await?;
            script.delete(&widgets.two("a"), json!({"preconditions": {"resourceVersion": "1"}})).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("labels that a conversion gives are stored", |mut script, widgets| async move {
            widgets.spoil(|objects| {
                for object in objects {
                    let version = object["apiVersion"]
                        .as_str()
                        .unwrap_or_default()
                        .rsplit('/')
                        .next()
                        .unwrap_or_default()
                        .to_owned();
                    object["metadata"]["labels"] = json!({"in": version});
                    object["metadata"]["annotations"] = json!({"example.com/in": version});
                }
            });
            script.post(&widgets.v2, widgets.second("a", json!({"labels": {"x": "y"}}))).await?;
            script.get(widgets.one("a")).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
    ]
}
