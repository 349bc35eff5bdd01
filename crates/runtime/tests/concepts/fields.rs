//! Fields that others want too: set initially and left, taken over, reported, or fought about.

use crate::support::{Fixture, HERE, OPERATOR, Thing, Why, entry, map, named, of};
use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass::write::Conflicts;
use windlass::{Apply, Controller, Manager, Observed, Plan, Refusal};
use windlass_clock::Clock;

fn deployment(thing: &Thing) -> Deployment {
    let spec = json!({
        "replicas": thing.spec.size,
        "paused": thing.spec.about.is_some(),
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    });
    let spec = serde_json::from_value(spec).unwrap();
    Deployment { metadata: named(of(thing, "runs")), spec: Some(spec), ..Default::default() }
}

#[tokio::test]
async fn a_field_set_initially_is_left_to_who_changes_it() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 3).await;
    let controller = Controller::deciding(|thing: &Thing, _: &Observed| {
        Ok(Plan::new().apply(Apply::new(deployment(thing)).initially("/spec/replicas"), Why::Needed))
    });
    let _operator = fixture.run(controller.owns::<Deployment>());
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    let spec = || async {
        let spec = fixture.here::<Deployment>().get("a-runs").await.unwrap().spec.unwrap();
        (spec.replicas.unwrap(), spec.paused.unwrap_or_default())
    };
    assert_eq!(spec().await, (3, false));
    // Ours alone, another wish for it changes nothing, and it does not get lost with another write either.
    fixture.resize("a", 5).await;
    fixture.merge::<Thing>("a", json!({"spec": {"about": "pause"}})).await;
    fixture.until("the rest is applied", || async { spec().await.1 }).await;
    fixture.until_silent().await;
    assert_eq!(spec().await, (3, true));
    // Taken by another, it is theirs.
    fixture.merge::<Deployment>("a-runs", json!({"spec": {"replicas": 9}})).await;
    fixture.merge::<Thing>("a", json!({"spec": {"about": null}})).await;
    fixture.until("the rest is applied", || async { !spec().await.1 }).await;
    fixture.until_silent().await;
    assert_eq!(spec().await, (9, false));
}

fn decide(thing: &Thing, _: &Observed) -> Result<Plan, Refusal> {
    Ok(Plan::new().apply(map(of(thing, "size"), "is", thing.spec.size), Why::Needed))
}

async fn says(fixture: &Fixture) -> Option<String> {
    let map = fixture.here::<ConfigMap>().get_opt("a-size").await.unwrap()?;
    entry(&map, "is")
}

#[tokio::test]
async fn a_conflict_is_reported_where_it_must_not_be_forced() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let controller = Controller::deciding(decide).owns::<ConfigMap>().conflicts(Conflicts::Report);
    let _operator = fixture.run(controller);
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"is": "theirs"}});
    let them = PatchParams::apply("them").force();
    fixture.here::<ConfigMap>().patch("a-size", &them, &Patch::Apply(theirs)).await.unwrap();
    fixture.until_condition("a", "Degraded", "True", "Contested").await;
    let said = fixture.condition("a", "Degraded").await.unwrap().message;
    assert_eq!(said, format!("ConfigMap {HERE}/a-size is contested: .data.is is held by them"));
    assert_eq!(says(&fixture).await.unwrap(), "theirs");
    // They let go of it, and it is ours.
    let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    fixture.here::<ConfigMap>().patch("a-size", &them, &Patch::Apply(nothing)).await.unwrap();
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    assert_eq!(says(&fixture).await.unwrap(), "1");
}

#[tokio::test]
async fn a_fight_is_noticed_named_and_fought_seldom() {
    let (fixture, driver) = Fixture::driven().await;
    fixture.thing("a", 1).await;
    let _operator = fixture.run(Controller::deciding(decide).owns::<ConfigMap>());
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    // Another that is as stubborn.
    let maps = fixture.here::<ConfigMap>();
    let stubborn = tokio::spawn(async move {
        let by = PatchParams { field_manager: Some("stubborn".into()), ..Default::default() };
        let clock = Clock::real();
        loop {
            let map = maps.get("a-size").await.unwrap();
            if entry(&map, "is").as_deref() != Some("mine") {
                let mine = json!({"data": {"is": "mine"}});
                maps.patch("a-size", &by, &Patch::Merge(mine)).await.unwrap();
            }
            clock.sleep(Duration::from_millis(2)).await;
        }
    });
    fixture.until_condition("a", "Degraded", "True", "Contested").await;
    let said = fixture.condition("a", "Degraded").await.unwrap().message;
    assert_eq!(said, format!("ConfigMap {HERE}/a-size is contested: .data.is is held by stubborn"));
    fixture.until_silent().await;
    let writes = || fixture.writes().iter().filter(|write| write.contains("configmaps")).count();
    let before = writes();
    assert!(before <= 7, "it was created, and written back five times: {before}");
    assert_eq!(says(&fixture).await.unwrap(), "mine");
    let told = || async { fixture.events("a").await.iter().any(|(reason, _)| reason == "Contested") };
    fixture.until("an event tells", told).await;
    // After a while it tries again, and loses again.
    driver.run_for(Duration::from_secs(11)).await;
    fixture.until("it was tried again", || async { writes() > before }).await;
    fixture.until_condition("a", "Degraded", "True", "Contested").await;
    fixture.until_silent().await;
    assert!(writes() <= before + 2, "{} after {before}", writes());
    // The other gives in.
    stubborn.abort();
    driver.run_for(Duration::from_secs(60)).await;
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    assert_eq!(says(&fixture).await.unwrap(), "1");
}

/// A client whose applied config maps arrive changed, and never twice the same: as through a mutating webhook.
fn meddling(client: Client, times: Arc<AtomicUsize>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, times) = (client.clone(), times.clone());
        async move {
            let path = request.uri().path().to_owned();
            if request.method() != http::Method::PATCH || !path.contains("/configmaps/") {
                return Ok::<_, tower::BoxError>(client.send(request).await?);
            }
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let mut object: serde_json::Value = serde_json::from_slice(&body)?;
            object["data"]["is"] = format!("changed {}", times.fetch_add(1, Ordering::SeqCst)).into();
            Ok(client.send(Request::from_parts(head, Body::from(object.to_string().into_bytes()))).await?)
        }
    });
    Client::new(service, HERE)
}

#[tokio::test]
async fn a_server_that_changes_every_write_is_written_to_once() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let times = Arc::new(AtomicUsize::new(0));
    let client = meddling(fixture.as_user(OPERATOR), times.clone());
    let manager = Manager::new(client, Clock::real());
    let manager = manager.controller(Controller::deciding(decide).owns::<ConfigMap>());
    let operator = tokio::spawn(manager.run_until(std::future::pending()));
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    fixture.until_silent().await;
    assert_eq!(times.load(Ordering::SeqCst), 1);
    // What others change on it is no reason to write again, however often.
    for reconcile in 0..5 {
        let label = json!({"metadata": {"labels": {"theirs": reconcile.to_string()}}});
        fixture.merge::<ConfigMap>("a-size", label).await;
        fixture.until_silent().await;
    }
    assert_eq!(times.load(Ordering::SeqCst), 1);
    fixture.resize("a", 2).await;
    fixture.until("another wish is written", || async { times.load(Ordering::SeqCst) == 2 }).await;
    operator.abort();
}
