//! Discovery of what extension API servers serve: each group in its place, and what can be said of a server that cannot be asked.

use super::server::Reply;
use super::{
    AGGREGATED, Asked, about_itself, all_of_discovery, api_service, available, behind, item, nothing,
    register, until_available, until_condition,
};
use crate::compare::exchange::media;
use crate::compare::{Answer, Request};
use crate::parity::webhooks::server::Proof;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// Notes down what is told of a group, and whether it comes before that of Deployments.
pub(super) fn note_group(script: &mut Script, answer: &Answer, group: &str) {
    let all = [&answer.body["groups"], &answer.body["items"]].into_iter().find_map(Value::as_array);
    let name =
        |known: &Value| known["name"].as_str().or(known["metadata"]["name"].as_str()).map(str::to_owned);
    let all = all.cloned().unwrap_or_default();
    let place = |wanted: &str| all.iter().position(|known| name(known).as_deref() == Some(wanted));
    let own = place(group);
    let mut told = vec![json!({
        "status": answer.status, "group": own.map(|at| all[at].clone()), "before apps": own < place("apps"),
        "first": name(&all[0]),
    })];
    if let Some(metadata) = told[0]["group"]["metadata"].as_object_mut() {
        metadata.remove("creationTimestamp");
    }
    script.note_reviews(told);
}

/// Notes down all of discovery of the script's group at once, when it is as wanted.
async fn aggregated(script: &mut Script, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<()> {
    let group = script.group();
    let request = Request::new("GET", "/apis").accepting(AGGREGATED);
    let found = |answer: &Answer| {
        let items = answer.body["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().find(|known| known["metadata"]["name"] == group.as_str())
    };
    let clock = windlass_clock::Clock::real();
    let deadline = clock.moment() + std::time::Duration::from_secs(12);
    loop {
        let answer = script.unseen(&request).await?;
        if found(&answer).is_some_and(|known| wanted(&known)) {
            note_group(script, &answer, &group);
            return Ok(());
        }
        anyhow::ensure!(clock.moment() < deadline, "discovery is not as it should be: {:?}", found(&answer));
        clock.sleep(std::time::Duration::from_millis(40)).await;
    }
}

fn is_fresh(group: &Value) -> bool {
    group["versions"][0]["freshness"] == "Current"
}

fn is_stale(group: &Value) -> bool {
    group["versions"][0]["freshness"] == "Stale"
}

/// A server that says this when it is asked what it serves.
async fn saying(script: &mut Script, say: fn(&str) -> Reply) -> anyhow::Result<super::Extension> {
    let group = script.group();
    let usual = about_itself(script, nothing);
    let answer = move |asked: &Asked| if asked.path == "/apis" { say(&group) } else { usual(asked) };
    let extension = behind(script, Proof::Own, answer).await?;
    let object = api_service(script, |_| {});
    register(script, object).await?;
    until_available(script).await?;
    Ok(extension)
}

type Said = (&'static str, fn(&str) -> Reply);

/// What servers say that is fresh.
const FRESH: &[Said] = &[
    ("in the older version", |group| {
        let media = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        let mut all = all_of_discovery(group);
        all["apiVersion"] = json!("apidiscovery.k8s.io/v2beta1");
        Reply::Raw(200, media, all.to_string().into_bytes())
    }),
    ("only of single versions", |_| Reply::Raw(404, "text/plain", b"not here".to_vec())),
    ("of groups alone", |group| {
        Reply::Json(
            200,
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": group, "versions": []}]}),
        )
    }),
    ("of other groups as well", |group| {
        let mut all = all_of_discovery(group);
        let mut other = all["items"][0].clone();
        other["metadata"]["name"] = json!("apps");
        if let Some(items) = all["items"].as_array_mut() {
            items.insert(0, other);
        }
        Reply::Raw(200, AGGREGATED, all.to_string().into_bytes())
    }),
    ("nothing of its own group", |_| {
        Reply::Raw(200, AGGREGATED, all_of_discovery("other.example.com").to_string().into_bytes())
    }),
    ("fields that nobody knows", |group| {
        let mut all = all_of_discovery(group);
        all["items"][0]["versions"][0]["resources"][0]["odd"] = json!({"very": ["odd"]});
        Reply::Raw(200, AGGREGATED, all.to_string().into_bytes())
    }),
    ("nothing", |_| Reply::Raw(200, AGGREGATED, Vec::new())),
    ("500", |_| Reply::Raw(500, "text/plain", b"it broke".to_vec())),
];

/// What servers say that is none.
const STALE: &[Said] = &[
    ("garbage", |_| Reply::Raw(200, AGGREGATED, b"{garbage".to_vec())),
    ("503", |_| Reply::Raw(503, "text/plain", b"busy".to_vec())),
    ("of versions that are a number", |_| {
        let all = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [{"versions": 1}]});
        Reply::Raw(200, AGGREGATED, all.to_string().into_bytes())
    }),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = vec![
        Behaviour::new("discovery has what a server serves", |mut script| async move {
            let _extension = available(&mut script, nothing).await?;
            let group = script.group();
            let answer = script.unseen(&Request::new("GET", "/apis")).await?;
            note_group(&mut script, &answer, &group);
            script.get(format!("/apis/{group}")).await?;
            script.get(format!("/apis/{group}/")).await?;
            script.get(format!("/apis/{group}/v1")).await?;
            script.get(format!("/apis/{group}/v2")).await?;
            aggregated(&mut script, is_fresh).await?;
            Ok(script)
        }),
        Behaviour::new("discovery of a server that is not available", |mut script| async move {
            let object = api_service(&script, |_| {});
            register(&mut script, object).await?;
            until_condition(&mut script, "ServiceNotFound").await?;
            let group = script.group();
            script.until(&format!("/apis/{group}/v1"), 503).await?;
            let answer = script.unseen(&Request::new("GET", "/apis")).await?;
            note_group(&mut script, &answer, &group);
            script.get(format!("/apis/{group}")).await?;
            script.get(format!("/apis/{group}/v1")).await?;
            script.get(super::gadgets(&script)).await?;
            aggregated(&mut script, is_stale).await?;
            Ok(script)
        }),
        Behaviour::new("discovery forgets an APIService that is gone", |mut script| async move {
            let _extension = available(&mut script, nothing).await?;
            aggregated(&mut script, is_fresh).await?;
            script.quiet(Request::new("DELETE", item(&script))).await?;
            let group = script.group();
            script.until(&format!("/apis/{group}/v1"), 404).await?;
            script.until(&format!("/apis/{group}"), 404).await?;
            script.get(format!("/apis/{group}/v1")).await?;
            script.get(format!("/apis/{group}")).await?;
            script.get(super::gadgets(&script)).await?;
            Ok(script)
        }),
        Behaviour::new("a group of high priority comes first", |mut script| async move {
            let answer = about_itself(&script, nothing);
            let _extension = behind(&mut script, Proof::Own, answer).await?;
            let object =
                api_service(&script, |object| object["spec"]["groupPriorityMinimum"] = json!(19_000));
            register(&mut script, object).await?;
            until_available(&mut script).await?;
            let group = script.group();
            let answer = script.unseen(&Request::new("GET", "/apis")).await?;
            note_group(&mut script, &answer, &group);
            aggregated(&mut script, is_fresh).await?;
            Ok(script)
        }),
        Behaviour::new("versions come by their priorities", |mut script| async move {
            let group = script.group();
            for (version, priority) in [("v1", 10), ("v2", 5), ("v3beta1", 10), ("v1alpha1", 20)] {
                let object = api_service(&script, |object| {
                    object["metadata"]["name"] = json!(format!("{version}.{group}"));
                    object["spec"]["version"] = json!(version);
                    object["spec"]["versionPriority"] = json!(priority);
                });
                register(&mut script, object).await?;
            }
            script
                .until_it(&format!("/apis/{group}"), |answer| {
                    answer.body["versions"].as_array().is_some_and(|versions| versions.len() == 4)
                })
                .await?;
            script.get(format!("/apis/{group}")).await?;
            aggregated(&mut script, |group| {
                group["versions"].as_array().is_some_and(|versions| versions.len() == 4)
            })
            .await?;
            Ok(script)
        }),
        Behaviour::new("an APIService takes over from a CRD, and gives back", |mut script| async move {
            let definition = script.with_spec(json!({"type": "object"}));
            let defined = script.define(definition).await?;
            until_condition(&mut script, "Local").await?;
            script
                .quiet(
                    Request::new("POST", &defined.objects)
                        .body(media::JSON, defined.object("one", json!({}))),
                )
                .await?;
            let answer = about_itself(&script, |_| Reply::Json(200, json!({"told": "by the server"})));
            let _extension = behind(&mut script, Proof::Own, answer).await?;
            let spec = api_service(&script, |_| {})["spec"].clone();
            let change = json!({"metadata": {"labels": null}, "spec": spec});
            script.quiet(Request::new("PATCH", item(&script)).body(media::MERGE_PATCH, change)).await?;
            until_condition(&mut script, "Passed").await?;
            script.until_it(&defined.item("one"), |answer| answer.body["told"].is_string()).await?;
            script.get(defined.item("one")).await?;
            script.get(format!("/apis/{}/v1", defined.group)).await?;
            aggregated(&mut script, |group| group["versions"][0]["resources"][0]["resource"] == "gadgets")
                .await?;
            script.quiet(Request::new("DELETE", item(&script))).await?;
            script.until_it(&defined.item("one"), |answer| answer.body["kind"] == "Widget").await?;
            until_condition(&mut script, "Local").await?;
            script.get(defined.item("one")).await?;
            aggregated(&mut script, |group| group["versions"][0]["resources"][0]["resource"] == "widgets")
                .await?;
            script.get(item(&script)).await?;
            Ok(script)
        }),
        Behaviour::new("another version than that of a CRD is beside it", |mut script| async move {
            let definition = script.with_spec(json!({"type": "object"}));
            let defined = script.define(definition).await?;
            until_condition(&mut script, "Local").await?;
            let group = script.group();
            let object = api_service(&script, |object| {
                object["metadata"]["name"] = json!(format!("v2.{group}"));
                object["spec"]["version"] = json!("v2");
            });
            register(&mut script, object).await?;
            script.until(&format!("/apis/{group}/v2"), 503).await?;
            script.get(format!("/apis/{group}")).await?;
            script.get(&defined.objects).await?;
            script.get(defined.objects.replace("/v1/", "/v2/")).await?;
            aggregated(&mut script, |group| {
                group["versions"].as_array().is_some_and(|versions| versions.len() == 2)
            })
            .await?;
            Ok(script)
        }),
        Behaviour::new("discovery does not wait for a server for long", |mut script| async move {
            let usual = about_itself(&script, nothing);
            let extension = behind(&mut script, Proof::Own, usual).await?;
            let object = api_service(&script, |_| {});
            register(&mut script, object).await?;
            until_available(&mut script).await?;
            extension.answer(|_| Reply::Hang);
            let mut answer =
                script.quiet(Request::new("GET", format!("/apis/{}/v1", script.group()))).await?;
            answer.body = json!(
                answer.body.as_str().is_some_and(|text| text.contains("error trying to reach service"))
            );
            script.note(&answer);
            Ok(script)
        }),
    ];
    for (name, say) in FRESH {
        all.push(Behaviour::new(
            format!("a server says what it serves: {name}"),
            move |mut script| async move {
                let _extension = saying(&mut script, *say).await?;
                aggregated(&mut script, is_fresh).await?;
                Ok(script)
            },
        ));
    }
    for (name, say) in STALE {
        all.push(Behaviour::new(
            format!("a server does not say what it serves: {name}"),
            move |mut script| async move {
                let _extension = saying(&mut script, *say).await?;
                aggregated(&mut script, is_stale).await?;
                Ok(script)
            },
        ));
    }
    all
}
