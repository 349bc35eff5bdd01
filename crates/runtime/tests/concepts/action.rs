//! Named actions: run beside the reconciles, once per key, guarded, bounded in time, and over when the operator is.

use crate::support::{Fixture, Thing, ThingStatus, Why, map};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::PostParams;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass::{Action, Controller, Failure, Guard, Observed, Outcome, Plan, Reason, Refusal};

const QUICK: Duration = Duration::from_secs(10);

/// Asks for a backup of each size, and shows what became of it.
fn backup_of_each_size(thing: &Thing, observed: &Observed, limit: Duration) -> Result<Plan, Refusal> {
    let key = thing.spec.size.to_string();
    let outcome = observed.action("backup", &key)?;
    let phase = match &outcome {
        Outcome::Done { said, .. } => format!("done {said}"),
        Outcome::Failed { why, .. } => format!("failed {why}"),
        other => format!("{other:?}").split(' ').next().unwrap_or_default().to_owned(),
    };
    let plan = match outcome.is_done() {
        true => Plan::new(),
        false => Plan::waiting(Why::Awaited),
    };
    let backup = Action::new("backup", key).with(thing.spec.size).within(limit);
    let backup = backup.only_if(Guard::same_spec(thing));
    let status = ThingStatus { phase: Some(phase), ..Default::default() };
    Ok(plan.action(backup, Why::Needed).status(status))
}

async fn phase(fixture: &Fixture, name: &str) -> String {
    let thing = fixture.here::<Thing>().get(name).await.unwrap();
    thing.status.and_then(|status| status.phase).unwrap_or_default()
}

async fn until_phase(fixture: &Fixture, name: &str, is: &str) {
    fixture.until(&format!("{name} is {is}"), || async { phase(fixture, name).await == is }).await;
}

/// What actions did, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn says(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

#[tokio::test]
async fn an_action_is_done_once_per_key_and_its_outcome_is_seen() {
    let fixture = Fixture::new().await;
    let log = Log::default();
    let logs = log.clone();
    let controller = Controller::deciding(|thing: &Thing, observed: &Observed| {
        backup_of_each_size(thing, observed, QUICK)
    })
    .action("backup", move |thing: Arc<Thing>, args, _| {
        logs.says(format!("{} {args}", thing.name_any()));
        async move { Ok(format!("of {args}")) }
    });
    fixture.thing("a", 3).await;
    let operator = fixture.run(controller);
    until_phase(&fixture, "a", "done \"of 3\"").await;
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    fixture.until_silent().await;
    assert_eq!(log.lines(), ["a 3"]);
    fixture.resize("a", 4).await;
    until_phase(&fixture, "a", "done \"of 4\"").await;
    fixture.resize("a", 3).await;
    until_phase(&fixture, "a", "done \"of 3\"").await;
    assert_eq!(log.lines(), ["a 3", "a 4"], "3 was done already");
    let events = fixture.events("a").await;
    assert!(events.iter().any(|(_, message)| message == "act backup 3: needed"), "{events:?}");
    operator.stop().await;
}

#[tokio::test]
async fn an_action_that_hangs_is_cut_off_and_holds_nobody_up_and_one_that_fails_is_tried_again() {
    let fixture = Fixture::new().await;
    let log = Log::default();
    let logs = log.clone();
    let controller = Controller::deciding(|thing: &Thing, observed: &Observed| {
        backup_of_each_size(thing, observed, Duration::from_secs(1))
    })
    .action("backup", move |thing: Arc<Thing>, _, _| {
        let name = thing.name_any();
        logs.says(&name);
        let times = logs.lines().iter().filter(|line| **line == name).count();
        async move {
            match (name.as_str(), times) {
                ("hangs", 1) => std::future::pending().await,
                ("panics", 1) => panic!("not this time"),
                ("fails", 1..3) => Err(Failure::new("not yet")),
                (_, times) => Ok(times),
            }
        }
    });
    for name in ["hangs", "fails", "panics", "goes"] {
        fixture.thing(name, 1).await;
    }
    let _operator = fixture.run(controller);
    until_phase(&fixture, "goes", "done 1").await;
    until_phase(&fixture, "panics", "done 2").await;
    until_phase(&fixture, "fails", "done 3").await;
    until_phase(&fixture, "hangs", "done 2").await;
    let lines = log.lines();
    let goes = lines.iter().position(|line| line == "goes");
    let hung = lines.iter().rposition(|line| line == "hangs");
    assert!(goes < hung, "what goes did not wait for what hangs: {lines:?}");
}

#[tokio::test]
async fn never_two_of_one_key_at_once_however_often_it_is_asked_for() {
    let fixture = Fixture::new().await;
    let log = Log::default();
    let logs = log.clone();
    let controller = Controller::deciding(|thing: &Thing, observed: &Observed| {
        let outcome = observed.action("slow", "same")?;
        let plan = if outcome.is_done() { Plan::new() } else { Plan::waiting(Why::Awaited) };
        let about = thing.spec.about.clone();
        let status = ThingStatus { phase: about, ..Default::default() };
        Ok(plan.action(Action::new("slow", "same"), Why::Needed).status(status))
    })
    .action("slow", move |_: Arc<Thing>, _, context: windlass::Context| {
        let logs = logs.clone();
        async move {
            logs.says("begins");
            context.clock().sleep(Duration::from_millis(150)).await;
            logs.says("ends");
            Ok(())
        }
    });
    fixture.thing("a", 1).await;
    let _operator = fixture.run(controller);
    for reconcile in 0..10 {
        let about = format!("reconcile {reconcile}");
        fixture.merge::<Thing>("a", serde_json::json!({"spec": {"about": about}})).await;
        until_phase(&fixture, "a", &about).await;
    }
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
    assert_eq!(log.lines(), ["begins", "ends"]);
}

#[tokio::test]
async fn a_guard_is_asked_when_the_action_starts() {
    let fixture = Fixture::new().await;
    let log = Log::default();
    let logs = log.clone();
    let (open, gate) = tokio::sync::watch::channel(false);
    // One at a time: the second waits while the first runs, and its object changes meanwhile.
    let long = Duration::from_secs(60);
    let controller = Controller::deciding(move |thing: &Thing, observed: &Observed| {
        backup_of_each_size(thing, observed, long)
    })
    .action("backup", move |thing: Arc<Thing>, args, _| {
        logs.says(format!("{} {args}", thing.name_any()));
        let mut gate = gate.clone();
        async move {
            if thing.name_any() == "first" {
                gate.wait_for(|open| *open).await?;
            }
            Ok(())
        }
    })
    .action_concurrency(1);
    fixture.thing("first", 1).await;
    let _operator = fixture.run(controller);
    fixture.until("the first runs", || async { log.lines() == ["first 1"] }).await;
    fixture.thing("second", 1).await;
    fixture.until_condition("second", "Ready", "False", "Awaited").await;
    fixture.resize("second", 2).await;
    open.send(true).unwrap();
    until_phase(&fixture, "second", "done null").await;
    assert_eq!(log.lines(), ["first 1", "second 2"], "what was asked for size 1 was not done");
}

#[tokio::test]
async fn stopping_cuts_an_action_off() {
    struct Cut(Log);
    impl Drop for Cut {
        fn drop(&mut self) {
            self.0.says("cut");
        }
    }
    let fixture = Fixture::new().await;
    let log = Log::default();
    let logs = log.clone();
    let controller = Controller::deciding(|thing: &Thing, observed: &Observed| {
        backup_of_each_size(thing, observed, QUICK)
    })
    .action("backup", move |_: Arc<Thing>, _, _| {
        let logs = logs.clone();
        async move {
            logs.says("begins");
            let _cut = Cut(logs);
            std::future::pending::<Result<(), Failure>>().await
        }
    });
    fixture.thing("a", 1).await;
    let operator = fixture.run(controller);
    fixture.until("it runs", || async { log.lines() == ["begins"] }).await;
    operator.stop().await;
    assert_eq!(log.lines(), ["begins", "cut"]);
}

/// Opens what a gate lets it open.
fn open(_: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let action = Action::new("open", "once")
        .only_if(Guard::of::<ConfigMap>("gate", Guard::field("/data/open", "yes")));
    Ok(match observed.action("open", "once")? {
        Outcome::Done { .. } => Plan::new(),
        Outcome::Overtaken { why, .. } => {
            Plan::waiting(Reason::new("GateClosed", why)).action(action, Why::Needed)
        }
        _ => Plan::waiting(Reason::new("Opens", "it is being opened")).action(action, Why::Needed),
    })
}

#[tokio::test]
async fn a_guard_looks_at_another_object_at_the_moment_of_execution() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = opened.clone();
    let controller = Controller::deciding(open).guards::<ConfigMap>().action("open", move |_, _, _| {
        let counted = counted.clone();
        async move { Ok(counted.fetch_add(1, Ordering::SeqCst)) }
    });
    let _operator = fixture.run(controller);
    let says = |wanted: &'static str| {
        let fixture = &fixture;
        move || async move {
            let ready = fixture.condition("a", "Ready").await;
            ready.is_some_and(|ready| ready.message.contains(wanted))
        }
    };
    fixture.until("nothing is opened without a gate", says("ConfigMap gate: it is not there")).await;
    fixture.here::<ConfigMap>().create(&PostParams::default(), &map("gate", "open", "no")).await.unwrap();
    fixture.until("a closed gate is seen", says("/data/open is no longer \"yes\"")).await;
    assert_eq!(opened.load(Ordering::SeqCst), 0);
    fixture.merge::<ConfigMap>("gate", serde_json::json!({"data": {"open": "yes"}})).await;
    fixture.until("it is opened", || async { opened.load(Ordering::SeqCst) == 1 }).await;
}

#[tokio::test]
async fn an_action_that_waits_keeps_no_other_waiting() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let decide = |_: &Thing, observed: &Observed| -> Result<Plan, Refusal> {
        let phase = format!("{}", observed.action("quick", "1")?.is_done());
        let status = ThingStatus { phase: Some(phase), ..Default::default() };
        let plan = (0..3).fold(Plan::waiting(Why::Awaited), |plan, number| {
            plan.action(Action::new("slow", number.to_string()), Why::Needed)
        });
        Ok(plan.action(Action::new("quick", "1"), Why::Needed).status(status))
    };
    let controller = Controller::deciding(decide)
        .action("slow", |_, _, _| std::future::pending::<Result<(), Failure>>())
        .action("quick", |_, _, _| async { Ok(()) })
        .action_concurrency(1);
    let _operator = fixture.run(controller);
    let done = || async {
        let thing = fixture.here::<Thing>().get("a").await.unwrap();
        thing.status.and_then(|status| status.phase).as_deref() == Some("true")
    };
    fixture.until("the quick one is done", done).await;
}
