//! What cannot be undone never rests on a cache that lags behind another: pruning, removing a finalizer.

use crate::support::{Fixture, HERE, Thing, Why, map};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use windlass::write::Basis;
use windlass::{Controller, Observed, Plan, Reconcile, ReconcileError, Refusal, Relation, Requeue};
use windlass_apiserver::faults::{Act, Pattern, Which};
use windlass_apiserver::read::Hold;

const HELD: &str = "test.windlass.dev/held";

/// An API whose watches say nothing of Secrets that are made from now on.
async fn deaf_to_secrets() -> Fixture {
    let fixture = Fixture::new().await;
    let hidden = Hold { delay: Duration::from_secs(3600), ..Hold::default() };
    let watches = Pattern::watches().resource("secrets");
    fixture.api.faults().add(watches.then(Which::Every, Act::HoldEvents(hidden)));
    fixture
}

async fn create_secret(fixture: &Fixture) {
    let metadata = ObjectMeta { name: Some("key".into()), ..Default::default() };
    let secret = Secret { metadata, ..Default::default() };
    fixture.here::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
}

/// A thing that a finalizer holds.
async fn held_thing(fixture: &Fixture) {
    fixture.thing("t", 1).await;
    fixture.merge::<Thing>("t", json!({ "metadata": { "finalizers": [HELD] } })).await;
}

fn key(_: &Thing) -> Relation {
    Relation::named("key").in_namespace(HERE)
}

#[tokio::test]
async fn a_child_is_not_pruned_for_want_of_what_a_cache_has_not_heard_of() {
    let fixture = deaf_to_secrets().await;
    let decide = |thing: &Thing, observed: &Observed| -> Result<Plan, Refusal> {
        let plan = Plan::new().status(json!({ "phase": thing.spec.size.to_string() }));
        Ok(match observed.get::<Secret>("key")?.is_some() || thing.spec.size == 1 {
            true => plan.apply(map("made", "is", "needed"), Why::Needed),
            false => plan,
        })
    };
    fixture.thing("t", 1).await;
    let controller = Controller::deciding(decide).owns::<ConfigMap>().prunes::<ConfigMap>();
    let _operator = fixture.run(controller.watches::<Secret>(key));
    let made = || async { fixture.here::<ConfigMap>().get_opt("made").await.unwrap() };
    fixture.until("the child is made", || async { made().await.is_some() }).await;
    let uid = made().await.unwrap().uid();
    create_secret(&fixture).await;
    fixture.resize("t", 2).await;
    let phase =
        || async { fixture.here::<Thing>().get("t").await.unwrap().status.and_then(|status| status.phase) };
    fixture.until("it has decided on the new size", || async { phase().await.as_deref() == Some("2") }).await;
    assert_eq!(made().await.map(|made| made.uid()), Some(uid), "the Secret is there: so must the child be");
}

#[tokio::test]
async fn a_finalizer_stays_while_there_is_something_to_clean_up_that_a_cache_has_not_heard_of() {
    let fixture = deaf_to_secrets().await;
    let cleanup = |_: &Thing, observed: &Observed| -> Result<Plan, Refusal> {
        Ok(match observed.get::<Secret>("key")? {
            Some(_) => Plan::waiting(Why::Awaited),
            None => Plan::new(),
        })
    };
    fixture.thing("t", 1).await;
    let controller = Controller::deciding(|_: &Thing, _| Ok(Plan::new())).finalizer(cleanup);
    let _operator = fixture.run(controller.watches::<Secret>(key));
    let thing = || async { fixture.here::<Thing>().get_opt("t").await.unwrap() };
    let held = || async { thing().await.is_some_and(|thing| !thing.finalizers().is_empty()) };
    fixture.until("it has its finalizer", held).await;
    create_secret(&fixture).await;
    fixture.here::<Thing>().delete("t", &DeleteParams::default()).await.unwrap();
    fixture.until_condition("t", "Ready", "False", "Awaited").await;
    assert!(held().await);
}

#[tokio::test]
async fn a_reconciler_removes_a_finalizer_only_when_what_it_misses_is_really_absent() {
    let fixture = deaf_to_secrets().await;
    let reconcile = |thing: Arc<Thing>, ctx: Reconcile<Thing>| async move {
        let used = ctx.observed().get::<Secret>("key").map_err(ReconcileError::terminal)?.is_some();
        if thing.metadata.deletion_timestamp.is_some() && !used {
            ctx.remove_finalizer(&*thing, HELD, Basis::Absent).await?;
        }
        Ok(Requeue::on_change())
    };
    held_thing(&fixture).await;
    let controller = Controller::reconciling(reconcile).watches::<Secret>(key);
    let counts = controller.counts();
    let _operator = fixture.run(controller);
    fixture.until("it has looked", || async { counts.times().count >= 1 && counts.active() == 0 }).await;
    create_secret(&fixture).await;
    let before = counts.times().count;
    fixture.here::<Thing>().delete("t", &DeleteParams::default()).await.unwrap();
    fixture
        .until("it has looked again", || async { counts.times().count > before && counts.active() == 0 })
        .await;
    assert_eq!(fixture.here::<Thing>().get("t").await.unwrap().finalizers(), [HELD]);
    fixture.here::<Secret>().delete("key", &DeleteParams::default()).await.unwrap();
    fixture.merge::<Thing>("t", json!({ "metadata": { "labels": { "look": "again" } } })).await;
    // The cache still shows the Secret, whose end it has not heard of either: to keep too long is safe.
    assert!(fixture.here::<Thing>().get_opt("t").await.unwrap().is_some());
}

/// The cache catches up after the reconcile looked at it, and before it acts.
#[tokio::test]
async fn a_reconciler_that_looked_before_its_cache_caught_up_looks_again() {
    let fixture = Fixture::new().await;
    let has_looked = Arc::new(tokio::sync::Notify::new());
    let looked = has_looked.clone();
    let reconcile = move |thing: Arc<Thing>, ctx: Reconcile<Thing>| {
        let looked = looked.clone();
        async move {
            let used = || ctx.observed().get::<Secret>("key").map(|key| key.is_some());
            if thing.metadata.deletion_timestamp.is_some() && !used().map_err(ReconcileError::terminal)? {
                looked.notify_one();
                while !used().map_err(ReconcileError::terminal)? {
                    tokio::task::yield_now().await;
                }
                ctx.remove_finalizer(&*thing, HELD, Basis::Absent).await?;
            }
            Ok(Requeue::on_change())
        }
    };
    held_thing(&fixture).await;
    let controller = Controller::reconciling(reconcile).watches::<Secret>(key);
    let counts = controller.counts();
    let _operator = fixture.run(controller);
    fixture.here::<Thing>().delete("t", &DeleteParams::default()).await.unwrap();
    has_looked.notified().await;
    let before = counts.times().count;
    create_secret(&fixture).await;
    fixture
        .until("the reconcile has ended", || async { counts.times().count > before && counts.active() == 0 })
        .await;
    assert_eq!(fixture.here::<Thing>().get("t").await.unwrap().finalizers(), [HELD]);
}

#[tokio::test]
async fn a_write_that_would_take_a_finalizer_off_on_its_way_is_refused() {
    let fixture = Fixture::new().await;
    let reconcile = |thing: Arc<Thing>, ctx: Reconcile<Thing>| async move {
        ctx.merge(&*thing, "", json!({ "metadata": { "finalizers": [] } })).await?;
        Ok(Requeue::on_change())
    };
    held_thing(&fixture).await;
    let controller = Controller::reconciling(reconcile);
    let counts = controller.counts();
    let _operator = fixture.run(controller);
    fixture.until("it is refused for good", || async { counts.terminal_errors() >= 1 }).await;
    assert_eq!(fixture.here::<Thing>().get("t").await.unwrap().finalizers(), [HELD]);
}
