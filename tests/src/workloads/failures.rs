//! Failures and misconfiguration: many failing pods, clock jumps, overlapping selectors, small quotas. Work and events stay bounded,
//! and no controller takes the pods of another.

use super::manual_pods;
use super::test_nodes::pod;
use crate::targets::whole_cluster;
use anyhow::ensure;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Event, Node, Pod, ResourceQuota};
use serde_json::{Value, json};
use std::time::Duration;
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("hundreds of failing pods do not exceed a job's backoffLimit", failing_job)
        .test("many crashing pods cause few events, and are kept", crashing_set)
        .test("a cluster survives a clock jump of a year ahead, and back", jumping_clock)
        .test("two deployments of one selector do not affect each other's pods", overlapping)
        .test("a replica set creates exactly as many pods as its quota allows", under_quota)
}

/// The number of pods that the target handles in reasonable time.
fn scaled(cluster: &TestCluster, many: usize, few: usize) -> usize {
    if cluster.embedded().is_some() { many } else { few }
}

/// A template of pods that a simulated node has exit so.
fn exiting(app: &str, restart: &str) -> Value {
    let spec = json!({ "restartPolicy": restart, "terminationGracePeriodSeconds": 0 });
    let pod: Pod = pod("template", json!({ "exit-after": "1s", "exit-code": "1" }), spec);
    json!({
        "metadata": { "labels": { "app": app }, "annotations": pod.metadata.annotations },
        "spec": pod.spec,
    })
}

async fn told(cluster: &TestCluster) -> anyhow::Result<usize> {
    Ok(cluster.list::<Event>().await?.len())
}

async fn failing_job(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let many = scaled(&cluster, 200, 40);
    let spec = json!({
        "parallelism": many, "completions": 10 * many, "backoffLimit": 5, "template": exiting("work", "Never"),
    });
    cluster.create(object::<Job>("work", json!({ "spec": spec }))).await?;
    let patience = Duration::from_secs(100);
    let failed = |job: &Job| {
        let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|it| it.type_ == "Failed" && it.status == "True")
    };
    let job = cluster.eventually::<Job>("work").within(patience).is("failed", failed).await?;
    let status = job.status.unwrap_or_default();
    ensure!(status.failed.is_some_and(|failed| failed > 5) && status.active.is_none(), "{status:?}");
    // What is on its way arrives first; then it is over for good.
    cluster.advance(Duration::from_secs(10)).await;
    let pods = cluster.list::<Pod>().await?.len();
    ensure!(pods <= many, "{pods} pods for {many} tries at once");
    // Some for each pod of its node and scheduler, and few for the job.
    let events = told(&cluster).await?;
    ensure!(events <= 6 * many + 50, "{events} events for {pods} pods");
    cluster.advance(Duration::from_secs(if cluster.embedded().is_some() { 600 } else { 5 })).await;
    ensure!(cluster.list::<Pod>().await?.len() <= pods, "pods are still made");
    ensure!(told(&cluster).await? <= events + 10, "much is still told");
    Ok(())
}

async fn crashing_set(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let many = scaled(&cluster, 100, 30);
    let spec = json!({
        "replicas": many, "selector": { "matchLabels": { "app": "web" } }, "template": exiting("web", "Always"),
    });
    cluster.create(object::<ReplicaSet>("web", json!({ "spec": spec }))).await?;
    let pods = manual_pods::wait_for_count(&cluster, "web", many).await?;
    let restarts = |pod: &Pod| {
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        statuses.map(|status| status.restart_count).max().unwrap_or(0)
    };
    if cluster.embedded().is_some() {
        cluster.advance(Duration::from_secs(1800)).await;
    }
    let (patient, look) = (cluster.timeout(Duration::from_secs(60)), || cluster.list::<Pod>());
    patient.until("each crashed twice", look, |pods| pods.iter().all(|pod| restarts(pod) >= 2)).await?;
    let after = cluster.list::<Pod>().await?;
    ensure!(after.len() == many, "nobody is replaced who is only tried again: {}", after.len());
    let same = after.iter().filter(|pod| pods.iter().any(|old| old.metadata.uid == pod.metadata.uid));
    ensure!(same.count() == many);
    // Half an hour of it: 10 s of rest after the first, twice as long each time, five minutes at most.
    let most = after.iter().map(restarts).max().unwrap_or(0);
    ensure!(most <= 15, "{most} restarts");
    let events = told(&cluster).await?;
    ensure!(events <= 8 * many + 50, "{events} events for {many} pods");
    Ok(())
}

async fn jumping_clock(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    if cluster.embedded().is_none() {
        // Nobody sets the clock of the machine.
        return Ok(());
    }
    let template = |image: &str| {
        json!({
            "metadata": { "labels": { "app": "web" } },
            "spec": { "terminationGracePeriodSeconds": 0, "containers": [{ "name": "app", "image": image }] },
        })
    };
    let web = json!({ "spec": {
        "replicas": 3, "selector": { "matchLabels": { "app": "web" } }, "template": template("web:1"),
    } });
    cluster.create(object::<Deployment>("web", web)).await?;
    let settled = |replicas: i32| {
        json!({ "status": {
            "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        } })
    };
    cluster.eventually::<Deployment>("web").has(settled(3)).await?;
    let hourly = json!({ "spec": { "schedule": "0 * * * *", "jobTemplate": { "spec": {
        "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "app", "image": "job:1" }] } },
    } } } });
    cluster.create(object::<CronJob>("hourly", hourly)).await?;
    let uids = || async {
        let pods = manual_pods::pods(&cluster, "web").await?;
        anyhow::Ok(pods.into_iter().filter_map(|pod| pod.metadata.uid).collect::<Vec<_>>())
    };
    let before = uids().await?;
    let mut image = 1;
    for (to, replicas) in [("2027-06-01T00:30:00Z", 4), ("2025-06-01T00:30:00Z", 5)] {
        cluster.set_wall_clock(to.parse()?);
        // Long enough for whoever goes by the wall to think that all is over.
        cluster.advance(Duration::from_secs(600)).await;
        cluster.eventually::<Node>("node-1").has_condition("Ready", true).await?;
        let still = uids().await?;
        ensure!(before.iter().all(|uid| image > 1 || still.contains(uid)), "{to} ended pods");
        let jobs = cluster.list::<Job>().await?.len();
        ensure!(jobs <= 2, "{jobs} jobs were begun at once at {to}");
        // And what is declared is still done.
        image += 1;
        let change =
            json!({ "spec": { "replicas": replicas, "template": template(&format!("web:{image}")) } });
        cluster.patch::<Deployment>("web", change).await?;
        cluster.eventually::<Deployment>("web").has(settled(replicas)).await?;
    }
    cluster.delete::<Deployment>("web").await?;
    cluster.until("its pods are gone", || manual_pods::pods(&cluster, "web"), Vec::is_empty).await?;
    Ok(())
}

async fn overlapping(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let deployment = |name: &str, replicas: usize| {
        object::<Deployment>(
            name,
            json!({ "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": "web" } },
                "template": manual_pods::template("web", "one"),
            } }),
        )
    };
    cluster.create(deployment("one", 2)).await?;
    cluster.create(deployment("two", 3)).await?;
    manual_pods::wait_for_count(&cluster, "web", 5).await?;
    manual_pods::all_ready(&cluster, "web").await?;
    for (name, replicas) in [("one", 2), ("two", 3)] {
        let counted = json!({ "status": { "replicas": replicas, "readyReplicas": replicas } });
        cluster.eventually::<Deployment>(name).has(counted).await?;
    }
    cluster.delete::<Deployment>("one").await?;
    let left = manual_pods::wait_for_count(&cluster, "web", 3).await?;
    let of_two = |pod: &Pod| manual_pods::controller(pod).is_some_and(|set| set.starts_with("two-"));
    ensure!(left.iter().all(of_two), "each has its own pods");
    let sets = cluster.list::<ReplicaSet>().await?;
    ensure!(sets.len() == 1, "and its own sets");
    Ok(())
}

async fn under_quota(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let labels = json!({ "labels": { "stays": "so" } });
    let quota = json!({ "metadata": labels, "spec": { "hard": { "pods": "7" } } });
    cluster.create(object::<ResourceQuota>("q", quota)).await?;
    let used = |count: &str| {
        let status = json!({ "hard": { "pods": "7" }, "used": { "pods": count } });
        json!({ "metadata": labels, "status": status })
    };
    cluster.eventually::<ResourceQuota>("q").has(used("0")).await?;
    for name in ["one", "two"] {
        let spec = json!({
            "replicas": 20,
            "selector": { "matchLabels": { "of": name } },
            "template": { "metadata": { "labels": { "of": name, "app": "web" } }, "spec": manual_pods::spec() },
        });
        cluster.create(object::<ReplicaSet>(name, json!({ "spec": spec }))).await?;
    }
    manual_pods::wait_for_count(&cluster, "web", 7).await?;
    cluster.eventually::<ResourceQuota>("q").has(used("7")).await?;
    for name in ["one", "two"] {
        cluster.eventually::<ReplicaSet>(name).has_condition("ReplicaFailure", true).await?;
    }
    cluster.patch::<ResourceQuota>("q", json!({ "spec": { "hard": { "pods": "9" } } })).await?;
    if cluster.embedded().is_some() {
        cluster.advance(Duration::from_secs(900)).await;
    }
    let patience = Duration::from_secs(90);
    let full = json!({ "status": { "used": { "pods": "9" } } });
    cluster.eventually::<ResourceQuota>("q").within(patience).has(full).await?;
    manual_pods::wait_for_count(&cluster, "web", 9).await?;
    Ok(())
}
