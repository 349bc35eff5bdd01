//! Facts from pollers: known, or unknown and then awaited; a change is a reconcile; nobody asks about what is gone.

use crate::support::{Fixture, Thing, ThingStatus, Why};
use kube::api::DeleteParams;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;
use windlass::{Controller, Fact, Failure, Observed, Plan, Refusal};

const QUICK: Duration = Duration::from_millis(5);
const FOR_EVER: Duration = Duration::from_secs(3600);

/// Shows the lag, and waits while it is not known.
fn decide(_: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    Ok(match observed.fact::<i64>("lag")? {
        Fact::Known { value, .. } => {
            Plan::new().status(ThingStatus { phase: Some(value.to_string()), ..Default::default() })
        }
        Fact::Unknown { why } => Plan::waiting(windlass::Reason::from(Why::Awaited).saying(why)),
    })
}

async fn until_phase(fixture: &Fixture, is: &str) {
    fixture
        .until(&format!("a is {is}"), || async {
            let thing = fixture.here::<Thing>().get("a").await.unwrap();
            thing.status.and_then(|status| status.phase).as_deref() == Some(is)
        })
        .await;
}

#[tokio::test]
async fn a_fact_is_waited_for_and_a_change_of_it_is_a_reconcile() {
    let fixture = Fixture::new().await;
    // Below zero it cannot be told; far below, there is no answer at all.
    let lag = Arc::new(AtomicI64::new(-1));
    let polls = Arc::new(AtomicUsize::new(0));
    let (polled, counted) = (lag.clone(), polls.clone());
    let controller = Controller::deciding(decide).fact(
        "lag",
        move |_: Arc<Thing>, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            let lag = polled.load(Ordering::SeqCst);
            async move {
                match lag {
                    -1 => Err(Failure::new("no replica")),
                    ..-1 => std::future::pending().await,
                    lag => Ok(lag),
                }
            }
        },
        Duration::from_millis(20),
        Duration::from_millis(50),
    );
    fixture.thing("a", 1).await;
    let operator = fixture.run(controller);
    let says = |message: &'static str| {
        let fixture = &fixture;
        async move {
            let holds = || async {
                let ready = fixture.condition("a", "Ready").await;
                ready.is_some_and(|ready| ready.status == "False" && ready.message.contains(message))
            };
            fixture.until(message, holds).await;
        }
    };
    says("no replica").await;
    lag.store(7, Ordering::SeqCst);
    until_phase(&fixture, "7").await;
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    // Asked again and again, and the same each time: nothing is written.
    fixture.until_silent().await;
    let (asked, written) = (polls.load(Ordering::SeqCst), fixture.writes().len());
    fixture.until("it is asked again", || async { polls.load(Ordering::SeqCst) > asked + 3 }).await;
    assert_eq!(fixture.writes().len(), written);
    lag.store(8, Ordering::SeqCst);
    until_phase(&fixture, "8").await;
    lag.store(-2, Ordering::SeqCst);
    says("not done after 50ms").await;
    fixture.here::<Thing>().delete("a", &DeleteParams::default()).await.unwrap();
    let clock = windlass_clock::Clock::real();
    clock.sleep(Duration::from_millis(150)).await;
    let asked = polls.load(Ordering::SeqCst);
    clock.sleep(Duration::from_millis(150)).await;
    assert_eq!(polls.load(Ordering::SeqCst), asked, "nobody asks about what is gone");
    operator.stop().await;
}

#[tokio::test]
async fn reading_a_fact_that_nobody_polls_is_an_error_and_not_unknown() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let _operator = fixture.run(Controller::deciding(decide));
    fixture.until_condition("a", "Degraded", "True", "ObserveError").await;
}

/// Reads the size of a large thing, and nothing of a small one.
fn decide_by_size(thing: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    if thing.spec.size < 2 {
        return Ok(Plan::new());
    }
    decide(thing, observed)
}

#[tokio::test]
async fn only_what_decisions_read_is_asked_for_and_a_slow_answer_keeps_no_other_waiting() {
    let fixture = Fixture::new().await;
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let controller = Controller::deciding(decide_by_size)
        .fact(
            "lag",
            move |_: Arc<Thing>, _| {
                counted.fetch_add(1, Ordering::SeqCst);
                async { Ok(7_i64) }
            },
            QUICK,
            Duration::from_secs(5),
        )
        // Nobody reads it, and it would never be known.
        .fact("silence", |_: Arc<Thing>, _| std::future::pending::<Result<i64, Failure>>(), QUICK, FOR_EVER)
        .fact_concurrency(1);
    fixture.thing("a", 1).await;
    let _operator = fixture.run(controller);
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    fixture.until_silent().await;
    assert_eq!(polls.load(Ordering::SeqCst), 0, "nothing was read");
    fixture.resize("a", 2).await;
    until_phase(&fixture, "7").await;
    let asked = polls.load(Ordering::SeqCst);
    fixture.until("it is asked again", || async { polls.load(Ordering::SeqCst) > asked + 3 }).await;
    fixture.resize("a", 1).await;
    fixture.until_silent().await;
    let asked = polls.load(Ordering::SeqCst);
    windlass_clock::Clock::real().sleep(Duration::from_millis(100)).await;
    assert!(polls.load(Ordering::SeqCst) <= asked + 1, "nobody reads it any more");
}
