//! What a webhook is asked, how it is reached, and which versions of reviews it may speak.

use super::{Widgets, about, converted};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::webhooks::server::{Proof, Server};
use crate::parity::webhooks::services;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = vec![
        about("what is asked when an object is read", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.get(widgets.two("a")).await?;
            tell(&mut script, &widgets, "v2");
            Ok(script)
        }),
        about("what is asked when an object is created", |mut script, widgets| async move {
            script.post(&widgets.v2, widgets.second("a", json!({"spec": {"amount": 1}}))).await?;
            tell(&mut script, &widgets, "v1");
            Ok(script)
        }),
        about("what is asked when an object is updated", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.merge(&widgets.two("a"), json!({"spec": {"amount": 9}})).await?;
            tell(&mut script, &widgets, "v1");
            Ok(script)
        }),
        about("nothing is asked where the version is the stored one", |mut script, widgets| async move {
            widgets.make(&mut script, &["a"]).await?;
            script.merge(&widgets.one("a"), json!({"spec": {"size": 9}})).await?;
            script.get(&widgets.v1).await?;
            tell(&mut script, &widgets, "v1");
            Ok(script)
        }),
    ];
    for (name, versions) in [
        ("v1beta1", json!(["v1beta1"])),
        ("v1 before v1beta1", json!(["v1", "v1beta1"])),
        ("v1beta1 before v1", json!(["v1beta1", "v1"])),
        ("one that there is not before v1", json!(["v7", "v1"])),
    ] {
        let named = format!("conversion: a webhook that speaks {name}");
        all.push(Behaviour::new(named, move |mut script: Script| {
            let versions = versions.clone();
            async move {
                let widgets = Widgets::define(&mut script, |definition| {
                    definition["spec"]["conversion"]["webhook"]["conversionReviewVersions"] = versions;
                })
                .await?;
                widgets.make(&mut script, &["a"]).await?;
                script.get(widgets.two("a")).await?;
                tell(&mut script, &widgets, "v2");
                Ok(script)
            }
        }));
    }
    for (name, path, port) in [
        ("at its usual port", None, None),
        ("at a path", Some("/some/path"), Some(8443)),
        ("at a root", Some("/"), Some(8443)),
    ] {
        let named = format!("conversion: a webhook behind a Service is asked {name}");
        all.push(Behaviour::new(named, move |mut script: Script| async move {
            let host = format!("hooks.{}.svc", script.namespace());
            let behind = Server::proving(Proof::Own, &host, |_, request| converted(request)).await?;
            services::service(&mut script, port.unwrap_or(443), Some(behind.address().port())).await?;
            let mut service = json!({"namespace": script.namespace(), "name": "hooks"});
            if let Some(path) = path {
                service["path"] = json!(path);
            }
            if let Some(port) = port {
                service["port"] = json!(port);
            }
            by_service(&mut script, service, |answer| answer == 200).await?;
            Ok(script)
        }));
    }
    for (name, to, port) in [("that is not there", None, 443), ("without that port", Some(9), 444)] {
        let named = format!("conversion: a webhook behind a Service {name}");
        all.push(Behaviour::new(named, move |mut script: Script| async move {
            if let Some(to) = to {
                services::service(&mut script, 443, Some(to)).await?;
            }
            let service = json!({"namespace": script.namespace(), "name": "hooks", "port": port});
            by_service(&mut script, service, move |answer| answer == 500).await?;
            Ok(script)
        }));
    }
    all
}

/// Notes down one review that wants this version: which others there are depends on caches.
fn tell(script: &mut Script, widgets: &Widgets, version: &str) {
    let wanted = format!("/{version}");
    let asked = widgets.server.take_asked().into_iter().rev().find(|(_, review)| {
        let objects = review["request"]["objects"].as_array().map_or(0, Vec::len);
        objects == 1
            && review["request"]["desiredAPIVersion"]
                .as_str()
                .is_some_and(|version| version.ends_with(&wanted))
    });
    let told = asked.map(|(path, review)| json!({"path": path, "review": review}));
    script.note_reviews(told.into_iter().collect());
}

/// An object is read by a webhook behind a Service, once it is answered so: the reference learns of Services late.
async fn by_service(script: &mut Script, service: Value, ready: impl Fn(u16) -> bool) -> anyhow::Result<()> {
    let widgets = Widgets::define(script, |definition| {
        definition["spec"]["conversion"]["webhook"]["clientConfig"] =
            json!({"service": service, "caBundle": Server::bundle()});
    })
    .await?;
    let body = widgets.first("a", json!({"spec": {"size": 1}}));
    script.quiet(Request::new("POST", &widgets.v1).body(media::JSON, body)).await?;
    script.until_it(&widgets.two("a"), |answer| ready(answer.status)).await?;
    script.get(widgets.two("a")).await?;
    Ok(())
}
