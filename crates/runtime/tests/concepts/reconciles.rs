//! Reconciles that fail: for good, by a panic, by taking too long; and those that come though nothing changed.

use crate::support::{Fixture, Thing};
use kube::ResourceExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass::{Controller, Observed, Plan, ReconcileError, Requeue};

fn counting() -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let reconciles = Arc::new(AtomicUsize::new(0));
    (reconciles.clone(), reconciles)
}

#[tokio::test]
async fn a_terminal_error_waits_for_a_change() {
    let fixture = Fixture::new().await;
    let (reconciles, counted) = counting();
    let controller = Controller::reconciling(move |thing: Arc<Thing>, _reconcile| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match thing.spec.size {
                0 => Err(ReconcileError::terminal("no size")),
                _ => Ok(Requeue::on_change()),
            }
        }
    });
    let counts = controller.counts();
    fixture.thing("a", 0).await;
    let _operator = fixture.run(controller);
    fixture.until("the reconcile failed for good", || async { counts.terminal_errors() == 1 }).await;
    windlass_clock::Clock::real().sleep(Duration::from_millis(200)).await;
    assert_eq!(reconciles.load(Ordering::SeqCst), 1, "it is not tried again");
    fixture.resize("a", 1).await;
    fixture.until("the change is heard", || async { counts.by_result()[0].1 == 1 }).await;
    assert_eq!(counts.errors(), 1);
}

#[tokio::test]
async fn a_decision_that_panics_holds_nobody_up() {
    let fixture = Fixture::new().await;
    let controller = Controller::deciding(|thing: &Thing, _: &Observed| {
        assert_ne!(thing.name_any(), "bad", "cannot be decided");
        Ok(Plan::new())
    });
    let counts = controller.counts();
    fixture.thing("bad", 1).await;
    fixture.thing("good", 1).await;
    let _operator = fixture.run(controller);
    fixture.until_condition("good", "Ready", "True", "AsDeclared").await;
    fixture.until("panics are counted", || async { counts.panics() >= 2 }).await;
    fixture.until("no reconcile runs", || async { counts.active() == 0 }).await;
}

#[tokio::test]
async fn a_reconcile_that_takes_too_long_is_cut_off_and_tried_again() {
    let fixture = Fixture::new().await;
    let (reconciles, counted) = counting();
    let controller = Controller::reconciling(move |_: Arc<Thing>, _reconcile| {
        let reconcile = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if reconcile == 0 {
                std::future::pending::<()>().await;
            }
            Ok(Requeue::on_change())
        }
    })
    .reconcile_timeout(Duration::from_millis(50));
    let counts = controller.counts();
    fixture.thing("a", 1).await;
    let _operator = fixture.run(controller);
    fixture.until("it was tried again", || async { counts.by_result()[0].1 == 1 }).await;
    assert_eq!((counts.timeouts(), reconciles.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn at_the_longest_interval_it_looks_though_nothing_changed() {
    let (fixture, driver) = Fixture::driven().await;
    let controller = Controller::deciding(|_: &Thing, _: &Observed| Ok(Plan::new()))
        .resync_period(Duration::from_secs(3600));
    let counts = controller.counts();
    fixture.thing("a", 1).await;
    let _operator = fixture.run(controller);
    fixture
        .until("the first reconcile is done", || async { counts.times().count >= 1 && counts.active() == 0 })
        .await;
    fixture.until_silent().await;
    let before = counts.times().count;
    driver.run_for(Duration::from_secs(3600 * 5 + 60)).await;
    fixture.until("five more", || async { counts.times().count >= before + 5 }).await;
    assert_eq!(counts.times().count, before + 5);
}
