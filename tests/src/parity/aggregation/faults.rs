//! Extension API servers that say too much, or what is not theirs.

use super::server::Reply;
use super::{
    AGGREGATED, about_itself, all_of_discovery, api_service, behind, nothing, register, until_available,
};
use crate::compare::Request;
use crate::parity::Behaviour;
use crate::parity::webhooks::server::Proof;
use serde_json::json;

pub(super) fn behaviours() -> Vec<Behaviour> {
    vec![
        Behaviour::new(
            "what is built in stays what it is, whatever a server claims",
            |mut script| async move {
                let usual = about_itself(&script, nothing);
                let answer = move |asked: &super::Asked| match asked.path.as_str() {
                    "/apis" => Reply::Raw(200, AGGREGATED, all_of_discovery("apps").to_string().into_bytes()),
                    _ => usual(asked),
                };
                let _extension = behind(&mut script, Proof::Own, answer).await?;
                let object = api_service(&script, |_| {});
                register(&mut script, object).await?;
                until_available(&mut script).await?;
                let group = script.group();
                let all = Request::new("GET", "/apis").accepting(AGGREGATED);
                script.until_asked(all.clone(), |answer| answer.body.to_string().contains(&group)).await?;
                let answer = script.unseen(&all).await?;
                let apps = answer.body["items"].as_array().into_iter().flatten();
                let apps = apps.filter(|known| known["metadata"]["name"] == "apps");
                let first =
                    apps.map(|known| known["versions"][0]["resources"][0]["resource"].clone()).collect();
                script.note_reviews(first);
                script.get(script.path("/apis/apps/v1", "deployments")).await?;
                Ok(script)
            },
        ),
        Behaviour::new("two versions of one server", |mut script| async move {
            let group = script.group();
            let of_group = group.clone();
            let usual = about_itself(&script, nothing);
            let answer = move |asked: &super::Asked| match asked.path.as_str() {
                "/apis" => {
                    let mut all = all_of_discovery(&of_group);
                    let mut second = all["items"][0]["versions"][0].clone();
                    second["version"] = json!("v2");
                    second["resources"][0]["resource"] = json!("gizmos");
                    if let Some(versions) = all["items"][0]["versions"].as_array_mut() {
                        versions.push(second);
                    }
                    Reply::Raw(200, AGGREGATED, all.to_string().into_bytes())
                }
                path if path.ends_with("/v2") => {
                    Reply::Json(200, json!({"kind": "APIResourceList", "resources": []}))
                }
                _ => usual(asked),
            };
            let _extension = behind(&mut script, Proof::Own, answer).await?;
            for version in ["v1", "v2"] {
                let object = api_service(&script, |object| {
                    object["metadata"]["name"] = json!(format!("{version}.{group}"));
                    object["spec"]["version"] = json!(version);
                });
                register(&mut script, object).await?;
            }
            until_available(&mut script).await?;
            script.until(&format!("/apis/{group}/v2"), 200).await?;
            let all = Request::new("GET", "/apis").accepting(AGGREGATED);
            script
                .until_asked(all.clone(), |answer| {
                    let text = answer.body.to_string();
                    text.contains("gizmos") && text.contains("gadgets")
                })
                .await?;
            let answer = script.unseen(&all).await?;
            super::discovery::note_group(&mut script, &answer, &group);
            script.get(format!("/apis/{group}")).await?;
            Ok(script)
        }),
    ]
}
