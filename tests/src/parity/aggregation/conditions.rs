//! Whether an APIService is available, and why not.

use super::server::{Extension, Reply};
use super::{about_itself, api_service, behind, item, nothing, register, service, slice, until_condition};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::webhooks::server::Proof;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// Registers the APIService, and notes it down once its condition has this reason.
async fn comes_to_be(script: &mut Script, reason: &str) -> anyhow::Result<()> {
    let object = api_service(script, |_| {});
    register(script, object).await?;
    told(script, reason).await
}

async fn told(script: &mut Script, reason: &str) -> anyhow::Result<()> {
    until_condition(script, reason).await?;
    script.get(item(script)).await?;
    Ok(())
}

/// Notes down the reason alone, where the words are those of another library.
async fn reason_alone(script: &mut Script, reason: &str) -> anyhow::Result<()> {
    until_condition(script, reason).await?;
    let mut answer = script.unseen(&Request::new("GET", item(script))).await?;
    let condition = super::condition(&answer);
    answer.body = json!({"status": condition["status"], "reason": condition["reason"]});
    script.note(&answer);
    Ok(())
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = vec![
        Behaviour::new("an APIService without its Service", |mut script| async move {
            comes_to_be(&mut script, "ServiceNotFound").await?;
            Ok(script)
        }),
        Behaviour::new("an APIService of a port that its Service has not", |mut script| async move {
            service(&mut script, 8443).await?;
            comes_to_be(&mut script, "ServicePortError").await?;
            Ok(script)
        }),
        Behaviour::new("an APIService whose Service leads nowhere", |mut script| async move {
            service(&mut script, 443).await?;
            comes_to_be(&mut script, "EndpointsNotFound").await?;
            Ok(script)
        }),
        Behaviour::new("an APIService whose endpoints are not ready", |mut script| async move {
            service(&mut script, 443).await?;
            slice(&mut script, 9, |slice| slice["endpoints"][0]["conditions"] = json!({"ready": false}))
                .await?;
            comes_to_be(&mut script, "MissingEndpoints").await?;
            Ok(script)
        }),
        Behaviour::new("an APIService whose endpoints have another port", |mut script| async move {
            service(&mut script, 443).await?;
            slice(&mut script, 9, |slice| slice["ports"][0]["name"] = json!("other")).await?;
            comes_to_be(&mut script, "MissingEndpoints").await?;
            Ok(script)
        }),
        Behaviour::new("an APIService whose server is available", |mut script| async move {
            let answer = about_itself(&script, nothing);
            let _extension = behind(&mut script, Proof::Own, answer).await?;
            comes_to_be(&mut script, "Passed").await?;
            Ok(script)
        }),
        Behaviour::new("an APIService is asked for by a member of system:masters", |mut script| async move {
            let answer = about_itself(&script, nothing);
            let extension = behind(&mut script, Proof::Own, answer).await?;
            comes_to_be(&mut script, "Passed").await?;
            let path = format!("/apis/{}/v1", script.group());
            let asked = extension.take_asked().into_iter().find(|asked| asked.path == path);
            let headers = ["x-remote-user", "x-remote-group", "x-remote-uid"];
            script.note_reviews(asked.iter().map(|asked| asked.shown(&headers)).collect());
            Ok(script)
        }),
        Behaviour::new(
            "a server that another authority signed for is not available",
            |mut script| async move {
                let answer = about_itself(&script, nothing);
                let _extension = behind(&mut script, Proof::Stranger, answer).await?;
                let object = api_service(&script, |_| {});
                register(&mut script, object).await?;
                reason_alone(&mut script, "FailedDiscoveryCheck").await?;
                Ok(script)
            },
        ),
        Behaviour::new("a server of another name is not available", |mut script| async move {
            let answer = about_itself(&script, nothing);
            let _extension = behind(&mut script, Proof::Other, answer).await?;
            let object = api_service(&script, |_| {});
            register(&mut script, object).await?;
            reason_alone(&mut script, "FailedDiscoveryCheck").await?;
            Ok(script)
        }),
        Behaviour::new("a server that speaks no TLS is not available", |mut script| async move {
            let answer = about_itself(&script, nothing);
            let _extension = behind(&mut script, Proof::None, answer).await?;
            let object = api_service(&script, |_| {});
            register(&mut script, object).await?;
            reason_alone(&mut script, "FailedDiscoveryCheck").await?;
            Ok(script)
        }),
        Behaviour::new("a server that need not prove anything is available", |mut script| async move {
            let answer = about_itself(&script, nothing);
            let _extension = behind(&mut script, Proof::Other, answer).await?;
            let object = api_service(&script, |object| {
                object["spec"]["insecureSkipTLSVerify"] = json!(true);
                object["spec"].as_object_mut().and_then(|spec| spec.remove("caBundle"));
            });
            register(&mut script, object).await?;
            told(&mut script, "Passed").await?;
            Ok(script)
        }),
        Behaviour::new("a server that nobody runs is not available", |mut script| async move {
            let answer = about_itself(&script, nothing);
            let mut extension = behind(&mut script, Proof::Own, answer).await?;
            extension.stop().await;
            comes_to_be(&mut script, "FailedDiscoveryCheck").await?;
            Ok(script)
        }),
        Behaviour::new("a server that comes is available then", |mut script| async move {
            comes_to_be(&mut script, "ServiceNotFound").await?;
            service(&mut script, 443).await?;
            told(&mut script, "EndpointsNotFound").await?;
            let host = format!("extension.{}.svc", script.namespace());
            let extension = Extension::start(Proof::Own, &host, about_itself(&script, nothing)).await?;
            slice(&mut script, extension.port, |_| {}).await?;
            told(&mut script, "Passed").await?;
            Ok(script)
        }),
        Behaviour::new("a server whose Service goes is available no more", |mut script| async move {
            let answer = about_itself(&script, nothing);
            let _extension = behind(&mut script, Proof::Own, answer).await?;
            comes_to_be(&mut script, "Passed").await?;
            let path = script.path("/api/v1", "services/extension");
            script.quiet(Request::new("DELETE", path)).await?;
            told(&mut script, "ServiceNotFound").await?;
            Ok(script)
        }),
        Behaviour::new("an APIService that leads elsewhere is judged anew", |mut script| async move {
            let answer = about_itself(&script, nothing);
            let _extension = behind(&mut script, Proof::Own, answer).await?;
            comes_to_be(&mut script, "Passed").await?;
            let change = json!({"spec": {"service": {"name": "other"}}});
            script.quiet(Request::new("PATCH", item(&script)).body(media::MERGE_PATCH, change)).await?;
            told(&mut script, "ServiceNotFound").await?;
            let change = json!({"spec": {"service": null, "caBundle": null}});
            script.quiet(Request::new("PATCH", item(&script)).body(media::MERGE_PATCH, change)).await?;
            told(&mut script, "Local").await?;
            Ok(script)
        }),
    ];
    for status in [404_u16, 403, 500, 503] {
        all.push(Behaviour::new(
            format!("a server that answers {status} is not available"),
            move |mut script| async move {
                let answer = move |_: &super::Asked| Reply::Json(status, Value::Null);
                let _extension = behind(&mut script, Proof::Own, answer).await?;
                comes_to_be(&mut script, "FailedDiscoveryCheck").await?;
                Ok(script)
            },
        ));
    }
    all.push(Behaviour::new("a server that redirects is not available", |mut script| async move {
        let answer = |_: &super::Asked| Reply::Redirect(302, "https://127.0.0.1:1/".to_owned());
        let _extension = behind(&mut script, Proof::Own, answer).await?;
        comes_to_be(&mut script, "FailedDiscoveryCheck").await?;
        Ok(script)
    }));
    all
}
