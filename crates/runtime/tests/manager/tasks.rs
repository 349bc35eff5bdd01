//! What runs beside the controllers, and how all of it ends.

use crate::support::{Running, cluster, has_secret, make, mirror, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tower::BoxError;
use windlass::clock::Clock;
use windlass::election::Election;
use windlass::{Error, Manager, Task};

#[tokio::test]
async fn tasks_begin_when_the_caches_are_full_and_are_waited_for() {
    let (_api, client) = cluster();
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begins, ends) = (begun.clone(), ended.clone());
    let manager = Manager::new(client, Clock::real()).controller(mirror()).task("slow", move |task| {
        let (begins, ends) = (begins.clone(), ends.clone());
        async move {
            assert_eq!(task.watched().len(), 2);
            begins.fetch_add(1, Ordering::SeqCst);
            task.stopped().await;
            task.clock().sleep(Duration::from_millis(100)).await;
            ends.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    });
    let inspector = manager.inspector();
    let running = Running::start(manager);
    until("the task begins", async || begun.load(Ordering::SeqCst) == 1).await;
    assert!(inspector.ready().is_fine());
    assert_eq!(inspector.debug()["tasks"][0]["running"], true);
    running.stop().await.unwrap();
    assert_eq!(ended.load(Ordering::SeqCst), 1, "it was not waited for");
}

#[tokio::test]
async fn a_task_that_panics_begins_again_and_disturbs_nobody() {
    let (_api, client) = cluster();
    let attempts = Arc::new(AtomicUsize::new(0));
    let attempted = attempts.clone();
    let manager = Manager::new(client.clone(), Clock::real())
        .controller(mirror())
        .task("weak", move |_| {
            let attempt = attempted.fetch_add(1, Ordering::SeqCst);
            assert!(attempt > 0, "the first time is too much");
            async { Ok(()) }
        })
        .task("failing", |_| async { Err("it has no luck".into()) });
    let inspector = manager.inspector();
    let running = Running::start(manager);
    make(&client, "a").await;
    until("controllers go on", async || has_secret(&client, "a").await).await;
    until("it begins again", async || attempts.load(Ordering::SeqCst) == 2).await;
    let page = inspector.metrics();
    assert!(page.contains("windlass_task_panics_total{task=\"weak\"} 1\n"), "{page}");
    assert!(page.contains("windlass_task_panics_total{task=\"failing\"} 0\n"), "{page}");
    assert!(!page.contains("windlass_task_failures_total{task=\"failing\"} 0\n"), "{page}");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut_off() {
    let (_api, client) = cluster();
    let manager = Manager::new(client, Clock::real())
        .controller(mirror())
        .graceful_shutdown_timeout(Duration::from_millis(100))
        .task("deaf", |_| std::future::pending());
    let inspector = manager.inspector();
    let running = Running::start(manager);
    until("it runs", async || inspector.debug()["tasks"][0]["running"] == true).await;
    assert!(matches!(running.stop().await, Err(Error::CutOff { .. })));
}

async fn until_stopped(task: Task) -> Result<(), BoxError> {
    task.stopped().await;
    Ok(())
}

#[tokio::test]
async fn a_replica_that_stands_by_runs_only_what_runs_everywhere() {
    let (_api, client) = cluster();
    let replica = |identity: &str| {
        Manager::new(client.clone(), Clock::real())
            .controller(mirror())
            .leader_election(Election::new("default", "mirror").identity(identity))
            .task("leading", until_stopped)
            .task_on_every_replica("everywhere", until_stopped)
    };
    let runs = |inspector: &windlass::inspect::Inspector| {
        let tasks = inspector.debug()["tasks"].clone();
        [0, 1].map(|number| tasks[number]["running"] == true)
    };
    let (one, two) = (replica("one"), replica("two"));
    let (first, second) = (one.inspector(), two.inspector());
    let one = Running::start(one);
    until("the first leads", async || runs(&first) == [true, true]).await;
    let two = Running::start(two);
    until("the second stands by", async || runs(&second) == [false, true]).await;
    assert!(second.ready().is_fine(), "it could take over at once");
    one.stop().await.unwrap();
    until("the second leads", async || runs(&second) == [true, true]).await;
    two.stop().await.unwrap();
}

#[tokio::test]
async fn two_tasks_of_one_name_are_refused() {
    let (_api, client) = cluster();
    let manager =
        Manager::new(client, Clock::real()).task("a", |_| async { Ok(()) }).task("a", |_| async { Ok(()) });
    assert!(matches!(Running::start(manager).ended().await, Err(Error::TaskTwice(name)) if name == "a"));
}
