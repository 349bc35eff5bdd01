//! Server-side apply, and who owns fields in which version.

use super::about;
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::Behaviour;
use serde_json::{Value, json};

pub(super) fn behaviours() -> Vec<Behaviour> {
    vec![
        about("an apply creates in another version", |mut script, widgets| async move {
            script
                .apply(&widgets.two("a"), "one", widgets.second("a", json!({"spec": {"amount": 1}})))
                .await?;
            script.get(widgets.one("a")).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("an apply in one version, and again in the other", |mut script, widgets| async move {
            script
                .apply(
                    &widgets.one("a"),
                    "one",
                    widgets.first("a", json!({"spec": {"size": 1, "color": "red"}})),
                )
                .await?;
            script
                .apply(
                    &widgets.two("a"),
                    "one",
                    widgets.second("a", json!({"spec": {"amount": 2, "hue": "x"}})),
                )
                .await?;
            script.apply(&widgets.one("a"), "one", widgets.first("a", json!({"spec": {"size": 3}}))).await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("an apply gives up fields that it had in another version", |mut script, widgets| async move {
            let all = json!({"spec": {"size": 1, "color": "red", "list": ["a", "b"]}});
            script.apply(&widgets.one("a"), "one", widgets.first("a", all)).await?;
            script
                .apply(&widgets.two("a"), "one", widgets.second("a", json!({"spec": {"amount": 1}})))
                .await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about("an apply conflicts with an owner in another version", |mut script, widgets| async move {
            script.apply(&widgets.one("a"), "one", widgets.first("a", json!({"spec": {"size": 1}}))).await?;
            script
                .apply(&widgets.two("a"), "two", widgets.second("a", json!({"spec": {"amount": 2}})))
                .await?;
            let forced =
                Request::new("PATCH", widgets.two("a")).with("fieldManager", "two").with("force", "true");
            script
                .send(forced.body(media::APPLY_PATCH, widgets.second("a", json!({"spec": {"amount": 2}}))))
                .await?;
            script.apply(&widgets.one("a"), "one", widgets.first("a", json!({"spec": {"size": 1}}))).await?;
            Ok(script)
        }),
        about("owners in two versions share what they agree on", |mut script, widgets| async move {
            script
                .apply(
                    &widgets.one("a"),
                    "one",
                    widgets.first("a", json!({"spec": {"size": 1, "color": "x"}})),
                )
                .await?;
            script
                .apply(
                    &widgets.two("a"),
                    "two",
                    widgets.second("a", json!({"spec": {"amount": 1, "hue": "x"}})),
                )
                .await?;
            script.apply(&widgets.one("a"), "one", widgets.first("a", json!({"spec": {"size": 1}}))).await?;
            script
                .apply(&widgets.two("a"), "two", widgets.second("a", json!({"spec": {"amount": 1}})))
                .await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about(
            "an update takes fields from who applied them in another version",
            |mut script, widgets| async move {
                script
                    .apply(
                        &widgets.one("a"),
                        "one",
                        widgets.first("a", json!({"spec": {"size": 1, "color": "x"}})),
                    )
                    .await?;
                let patch = Request::new("PATCH", widgets.two("a")).with("fieldManager", "two");
                script.send(patch.body(media::MERGE_PATCH, json!({"spec": {"amount": 5}}))).await?;
                script.get(widgets.one("a")).await?;
                script
                    .apply(
                        &widgets.one("a"),
                        "one",
                        widgets.first("a", json!({"spec": {"size": 2, "color": "x"}})),
                    )
                    .await?;
                Ok(script)
            },
        ),
        about("an update in each version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            for (path, field) in
                [(widgets.two("a"), "amount"), (widgets.one("a"), "size"), (widgets.two("a"), "amount")]
            {
                let patch = Request::new("PATCH", path).with("fieldManager", "two");
                let live = script.get(widgets.one("a")).await?;
                let size = live.body["spec"]["size"].as_i64().unwrap_or_default();
                let mut spec = json!({});
                spec[field] = json!(size + 1);
                script.send(patch.body(media::MERGE_PATCH, json!({"spec": spec}))).await?;
            }
            Ok(script)
        }),
        about("an apply of the status in another version", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            let path = format!("{}/status", widgets.two("a"));
            script.apply(&path, "one", widgets.second("a", json!({"status": {"count": 3}}))).await?;
            script
                .apply(
                    &format!("{}/status", widgets.one("a")),
                    "two",
                    widgets.first("a", json!({"status": {"ready": 3}})),
                )
                .await?;
            script.get(widgets.two("a")).await?;
            Ok(script)
        }),
        about("an apply of a scale in another version", |mut script, widgets| async move {
            script.apply(&widgets.one("a"), "one", widgets.first("a", json!({"spec": {"size": 1}}))).await?;
            let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 4}});
            script.apply(&format!("{}/scale", widgets.two("a")), "two", scale).await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about("an apply that changes nothing", |mut script, widgets| async move {
            let body = widgets.second("a", json!({"spec": {"amount": 1, "hue": "x"}}));
            script.apply(&widgets.two("a"), "one", body.clone()).await?;
            script.apply(&widgets.two("a"), "one", body).await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about("a dry run of an apply", |mut script, widgets| async move {
            script.apply(&widgets.one("a"), "one", widgets.first("a", json!({"spec": {"size": 1}}))).await?;
            let request =
                Request::new("PATCH", widgets.two("a")).with("fieldManager", "one").with("dryRun", "All");
            script
                .send(request.body(media::APPLY_PATCH, widgets.second("a", json!({"spec": {"hue": "x"}}))))
                .await?;
            script.get(widgets.one("a")).await?;
            Ok(script)
        }),
        about("an owner that a client names in another version", |mut script, widgets| async move {
            let mut body = widgets.second("a", json!({"spec": {"amount": 1, "hue": "x"}}));
            body["metadata"]["managedFields"] = json!([{
                "manager": "other", "operation": "Apply", "apiVersion": format!("{}/v1", widgets.group), "time": "2020-01-01T00:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}},
            }]);
            script.post(&widgets.v2, body).await?;
            script
                .apply(&widgets.two("a"), "one", widgets.second("a", json!({"spec": {"amount": 2}})))
                .await?;
            Ok(script)
        }),
        about("an owner in a version that there is not", |mut script, widgets| async move {
            let mut body = widgets.first("a", json!({"spec": {"size": 1}}));
            body["metadata"]["managedFields"] = json!([{
                "manager": "other", "operation": "Apply", "apiVersion": format!("{}/v9", widgets.group), "time": "2020-01-01T00:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}},
            }]);
            script.post(&widgets.v1, body).await?;
            script
                .apply(&widgets.two("a"), "one", widgets.second("a", json!({"spec": {"amount": 2}})))
                .await?;
            Ok(script)
        }),
        about(
            "an apply while a version of another owner cannot be converted to",
            |mut script, widgets| async move {
                script
                    .apply(&widgets.two("a"), "two", widgets.second("a", json!({"spec": {"hue": "x"}})))
                    .await?;
                let failing = |request: &Value| match request["desiredAPIVersion"]
                    .as_str()
                    .unwrap_or_default()
                    .ends_with("v2")
                {
                    true => crate::parity::webhooks::server::Reply::Response(
                        json!({"result": {"status": "Failed", "message": "not now"}}),
                    ),
                    false => super::converted(request),
                };
                widgets.answer(failing);
                script
                    .apply(&widgets.one("a"), "one", widgets.first("a", json!({"spec": {"size": 1}})))
                    .await?;
                script.merge(&widgets.one("a"), json!({"spec": {"size": 2}})).await?;
                script.get(widgets.one("a")).await?;
                Ok(script)
            },
        ),
    ]
}
