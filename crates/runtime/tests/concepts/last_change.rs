//! Which changes start a reconcile, and for how long there was none.

use crate::support::{Fixture, Thing, ThingStatus, named};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::PostParams;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass::{Controller, Observed, Plan, Reason, Refusal, Relation};

const LASTS: Duration = Duration::from_secs(15);

fn holder(lease: &Lease) -> Option<String> {
    lease.spec.as_ref()?.holder_identity.clone()
}

/// Leads once the lease was not renewed for its whole duration.
fn decide(_: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let phase = |phase: &str| ThingStatus { phase: Some(phase.to_owned()), ..Default::default() };
    match observed.unchanged_for::<Lease>("lease")? {
        Some(age) if age < LASTS => {
            let held = Reason::new("LeaseHeld", "its holder may be alive");
            Ok(Plan::new().wait(held, LASTS - age).status(phase("Waiting")))
        }
        _ => Ok(Plan::new().status(phase("Leading"))),
    }
}

async fn phase(fixture: &Fixture) -> Option<String> {
    fixture.here::<Thing>().get("a").await.unwrap().status?.phase
}

#[tokio::test]
async fn a_lease_is_waited_out_by_the_clock_of_whoever_waits() {
    let (fixture, driver) = Fixture::driven().await;
    let spec = LeaseSpec { holder_identity: Some("other".into()), ..Default::default() };
    let lease = Lease { metadata: named("lease"), spec: Some(spec) };
    fixture.here::<Lease>().create(&PostParams::default(), &lease).await.unwrap();
    fixture.thing("a", 1).await;
    let reconciles = Arc::new(AtomicUsize::new(0));
    let counted = reconciles.clone();
    let controller = Controller::deciding(move |thing: &Thing, observed: &Observed| {
        counted.fetch_add(1, Ordering::Relaxed);
        decide(thing, observed)
    });
    let _operator = fixture.run(
        controller
            .watches::<Lease>(|_| Relation::named("lease"))
            .predicate::<Lease>(|old, new| holder(old) != holder(new))
            .tracks_last_change::<Lease>(),
    );
    let waits = || async { phase(&fixture).await.as_deref() == Some("Waiting") };
    fixture.until("it waits", waits).await;
    fixture.until_silent().await;
    let before = reconciles.load(Ordering::Relaxed);
    // Renewals start no reconcile, and count: the lease is never left alone for as long as it lasts.
    for transition in 0..4 {
        driver.run_for(LASTS - Duration::from_secs(5)).await;
        fixture.merge::<Lease>("lease", json!({"spec": {"leaseTransitions": transition}})).await;
        fixture.until_silent().await;
        assert_eq!(phase(&fixture).await.as_deref(), Some("Waiting"));
    }
    let during = reconciles.load(Ordering::Relaxed) - before;
    assert!(during <= 4, "only the end of a wait starts a reconcile: {during}");
    // Nobody renews any more.
    let mut rounds = 0;
    while phase(&fixture).await.as_deref() != Some("Leading") {
        rounds += 1;
        assert!(rounds < 100, "it leads in the end");
        driver.run_for(Duration::from_secs(5)).await;
        fixture.until_silent().await;
    }
    // What matters is told at once.
    fixture.merge::<Lease>("lease", json!({"spec": {"holderIdentity": "another"}})).await;
    fixture.until("it waits again", waits).await;
}
