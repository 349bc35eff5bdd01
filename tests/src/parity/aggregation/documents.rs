//! OpenAPI of extension API servers, in both versions.

use super::server::Reply;
use super::{about_itself, api_service, available, behind, nothing, register, until_available};
use crate::compare::Request;
use crate::parity::webhooks::server::Proof;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// A document of version 2.
pub(super) fn older(group: &str) -> Value {
    let path = |kind: &str| {
        json!({"get": {"operationId": format!("list{kind}"), "produces": ["application/json"],
        "responses": {"200": {"description": "OK", "schema": {"$ref": format!("#/definitions/{group}.{kind}")}}}}})
    };
    json!({
        "swagger": "2.0", "info": {"title": "Extension", "version": "v1"},
        "paths": {format!("/apis/{group}/v1/gadgets"): path("Gadget"), "/api/v1/stolen": path("Stolen")},
        "definitions": {
            format!("{group}.Gadget"): {"type": "object", "description": "A Gadget.", "properties": {
                "spec": {"$ref": format!("#/definitions/{group}.Spec")},
                "list": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}}},
            format!("{group}.Spec"): {"type": "object", "properties": {"size": {"type": "integer"}}},
            format!("{group}.Stolen"): {"type": "object"},
            "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta": {"type": "string", "description": format!("of {group}")},
        },
    })
}

/// The list of the documents of version 3.
pub(super) fn root(group: &str) -> Value {
    let path = format!("apis/{group}/v1");
    json!({"paths": {path.clone(): {"serverRelativeURL": format!("/openapi/v3/{path}?hash=ABC")}}})
}

/// A document of version 3.
pub(super) fn newer() -> Value {
    json!({"openapi": "3.0.0", "info": {"title": "Extension", "version": "v1"}, "paths": {},
        "components": {"schemas": {"Gadget": {"type": "object"}}}})
}

/// What version 2 says of the script's group.
async fn note_older(script: &mut Script) -> anyhow::Result<()> {
    let group = script.group();
    let path = format!("/apis/{group}/v1/gadgets");
    let request = Request::new("GET", "/openapi/v2");
    let clock = windlass_clock::Clock::real();
    let deadline = clock.moment() + std::time::Duration::from_secs(20);
    loop {
        let answer = script.unseen(&request).await?;
        if !answer.body["paths"][&path].is_null() {
            let definition = |name: &str| answer.body["definitions"][format!("{group}.{name}")].clone();
            // Which number it gets depends on who else was there.
            let list =
                definition("Gadget")["properties"]["list"]["$ref"].as_str().unwrap_or_default().to_owned();
            let renamed = list.contains("ListMeta_v");
            let list =
                answer.body["definitions"][list.trim_start_matches("#/definitions/")]["description"].clone();
            let mut gadget = definition("Gadget");
            gadget["properties"]["list"] = json!({"renamed": renamed, "description": list});
            let told = json!({"path": answer.body["paths"][&path], "gadget": gadget, "spec": definition("Spec"),
                "stolen": definition("Stolen"), "stolen path": answer.body["paths"]["/api/v1/stolen"]});
            script.note_reviews(vec![told]);
            return Ok(());
        }
        anyhow::ensure!(clock.moment() < deadline, "OpenAPI v2 has nothing of the server");
        clock.sleep(std::time::Duration::from_millis(200)).await;
    }
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    vec![
        Behaviour::new("OpenAPI v3 leads to the server's own document", |mut script| async move {
            let extension = available(&mut script, nothing).await?;
            let path = format!("apis/{}/v1", script.group());
            script.until_it("/openapi/v3", |answer| !answer.body["paths"][&path].is_null()).await?;
            let all = script.unseen(&Request::new("GET", "/openapi/v3")).await?;
            script.note_reviews(vec![all.body["paths"][&path].clone()]);
            extension.take_asked();
            let whole = format!("/openapi/v3/{path}");
            script
                .send(
                    Request::new("GET", &whole)
                        .with("hash", "ABC")
                        .impersonating("alice")
                        .header("impersonate-group", "system:masters"),
                )
                .await?;
            let asked = extension.take_asked().into_iter().filter(|asked| asked.path == whole);
            let asked = asked.map(|asked| asked.shown(&["x-remote-user", "x-remote-group"])).collect();
            script.note_reviews(asked);
            Ok(script)
        }),
        Behaviour::new("OpenAPI v2 has what a server says of its own group", |mut script| async move {
            let _extension = available(&mut script, nothing).await?;
            note_older(&mut script).await?;
            Ok(script)
        }),
        Behaviour::new("OpenAPI is not told of a server that is gone", |mut script| async move {
            let _extension = available(&mut script, nothing).await?;
            let path = format!("apis/{}/v1", script.group());
            script.until_it("/openapi/v3", |answer| !answer.body["paths"][&path].is_null()).await?;
            script.quiet(Request::new("DELETE", super::item(&script))).await?;
            script.until_it("/openapi/v3", |answer| answer.body["paths"][&path].is_null()).await?;
            script.get(format!("/openapi/v3/{path}")).await?;
            Ok(script)
        }),
        Behaviour::new(
            "OpenAPI goes without a server that says garbage of itself",
            |mut script| async move {
                let usual = about_itself(&script, nothing);
                let answer = move |asked: &super::Asked| match asked.path.starts_with("/openapi") {
                    true => Reply::Raw(200, "application/json", b"{garbage".to_vec()),
                    false => usual(asked),
                };
                let extension = behind(&mut script, Proof::Own, answer).await?;
                let object = api_service(&script, |_| {});
                register(&mut script, object).await?;
                until_available(&mut script).await?;
                let clock = windlass_clock::Clock::real();
                while !extension.take_asked().iter().any(|asked| asked.path == "/openapi/v3") {
                    clock.sleep(std::time::Duration::from_millis(50)).await;
                }
                let path = format!("apis/{}/v1", script.group());
                let v3 = script.unseen(&Request::new("GET", "/openapi/v3")).await?;
                let v2 = script.unseen(&Request::new("GET", "/openapi/v2")).await?;
                script.note_reviews(vec![
                    json!({"v3": v3.status, "its path": v3.body["paths"][&path], "v2": v2.status}),
                ]);
                Ok(script)
            },
        ),
    ]
}
