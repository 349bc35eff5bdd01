//! Simulated nodes, the lifecycle of their pods, and unreachable nodes.

use super::test_nodes::{Own, pod};
use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;
use std::time::Duration;
use windlass_harness::{Suite, Target};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a pod is scheduled, becomes ready, and terminates when it is deleted", runs_and_goes)
        .test("init containers run in order, and sidecars keep running", initializes)
        .test("a pod's phase follows from its containers' exit codes", ends_as_its_containers_do)
        .test("a container that keeps failing is in CrashLoopBackOff", crashes_in_a_loop)
        .test("readiness gates delay a pod's readiness", has_a_readiness_gate)
        .test("a pod fails after activeDeadlineSeconds", has_a_deadline)
        .test("a pod has its termination grace period", has_its_grace)
        .test(
            "the pods of an unreachable node are evicted, and those of a deleted node are deleted",
            falls_silent,
        )
        .test(
            "an hour of a driven clock needs few Lease renewals, and no node becomes unreachable",
            an_hour_passes,
        )
}

async fn runs_and_goes(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(pod("web", json!({}), json!({}))).await?;
    let running = cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let status = running.status.unwrap_or_default();
    ensure!(status.phase.as_deref() == Some("Running"), "{status:?}");
    ensure!(status.pod_ip.is_some() && status.host_ip.is_some() && status.start_time.is_some(), "{status:?}");
    let conditions: Vec<(&str, &str)> =
        status.conditions.iter().flatten().map(|condition| (&*condition.type_, &*condition.status)).collect();
    for of in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        ensure!(conditions.contains(&(of, "True")), "{conditions:?}");
    }
    cluster.eventually::<Pod>("web").has_event("Scheduled").await?;
    cluster.eventually::<Pod>("web").has_event("Started").await?;
    cluster.delete::<Pod>("web").await?;
    cluster.eventually::<Pod>("web").is_deleted().await
}

async fn initializes(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let init = json!([
        {"name": "side", "image": "example.com/side:1", "restartPolicy": "Always"},
        {"name": "init", "image": "example.com/init:1"},
    ]);
    let spec = json!({"initContainers": init, "terminationGracePeriodSeconds": 1});
    cluster.create(pod("web", json!({"exit-after.init": "2s"}), spec)).await?;
    let first = cluster
        .eventually::<Pod>("web")
        .has_condition_because("Initialized", "ContainersNotInitialized")
        .await?;
    let states = first.status.unwrap_or_default();
    ensure!(states.phase.as_deref() == Some("Pending"), "{states:?}");
    let main = states.container_statuses.unwrap_or_default();
    let reason = main.first().and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.clone());
    ensure!(reason.as_deref() == Some("PodInitializing"), "{reason:?}");
    let then = cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let init = then.status.unwrap_or_default().init_container_statuses.unwrap_or_default();
    let code = init
        .get(1)
        .and_then(|status| status.state.as_ref()?.terminated.as_ref())
        .map(|ended| ended.exit_code);
    ensure!(init.first().is_some_and(|side| side.ready) && code == Some(0), "{init:?}");
    Ok(())
}

async fn ends_as_its_containers_do(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let never = json!({"restartPolicy": "Never"});
    for (name, code, phase, reason) in
        [("well", "0", "Succeeded", "PodCompleted"), ("badly", "3", "Failed", "PodFailed")]
    {
        cluster.create(pod(name, json!({"exit-code": code}), never.clone())).await?;
        let ended = cluster.eventually::<Pod>(name).has(json!({"status": {"phase": phase}})).await?;
        let status = ended.status.unwrap_or_default();
        let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
        ensure!(ready.and_then(|ready| ready.reason.as_deref()) == Some(reason), "{status:?}");
        let exit = status.container_statuses.iter().flatten().next();
        let exit =
            exit.and_then(|status| status.state.as_ref()?.terminated.as_ref()).map(|ended| ended.exit_code);
        ensure!(exit == code.parse().ok(), "{status:?}");
        cluster.delete::<Pod>(name).await?;
        cluster.eventually::<Pod>(name).is_deleted().await?;
    }
    Ok(())
}

async fn crashes_in_a_loop(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let says = json!({"exit-code": "1", "exit-after": "0s"});
    cluster.create(pod("web", says, json!({"terminationGracePeriodSeconds": 1}))).await?;
    let waiting = |pod: &Pod| {
        let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
        let reason = status.and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
        reason == Some("CrashLoopBackOff") && status.is_some_and(|status| status.restart_count >= 1)
    };
    let crashed = cluster.eventually::<Pod>("web").is("left alone for a while", waiting).await?;
    ensure!(crashed.status.unwrap_or_default().phase.as_deref() == Some("Running"), "it is to run on");
    cluster.eventually::<Pod>("web").has_event("BackOff").await?;
    if cluster.embedded().is_some() {
        // Each wait is longer than the one before; on the reference it would take real time.
        cluster.advance(Duration::from_secs(35)).await;
        let again = |pod: &Pod| {
            let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
            status.is_some_and(|status| status.restart_count == 3)
        };
        cluster.eventually::<Pod>("web").is("started again twice", again).await?;
    }
    Ok(())
}

async fn has_a_readiness_gate(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let gate = json!({"readinessGates": [{"conditionType": "example.com/listed"}]});
    cluster.create(pod("web", json!({}), gate)).await?;
    cluster.eventually::<Pod>("web").has_condition_because("Ready", "ReadinessGatesNotReady").await?;
    let listed = json!([{"type": "example.com/listed", "status": "True"}]);
    let patch = kube::api::Patch::Strategic(json!({"status": {"conditions": listed}}));
    let pods = kube::Api::<Pod>::namespaced(cluster.client(), cluster.namespace());
    pods.patch_status("web", &Default::default(), &patch).await?;
    cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    Ok(())
}

async fn has_a_deadline(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let spec = json!({"activeDeadlineSeconds": 2, "restartPolicy": "Never"});
    cluster.create(pod("web", json!({}), spec)).await?;
    let wanted = json!({"status": {"phase": "Failed", "reason": "DeadlineExceeded"}});
    cluster.eventually::<Pod>("web").has(wanted).await?;
    Ok(())
}

async fn has_its_grace(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let spec = json!({"terminationGracePeriodSeconds": 3});
    cluster.create(pod("web", json!({"stop-after": "never"}), spec)).await?;
    cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let before = cluster.clock().moment();
    cluster.delete::<Pod>("web").await?;
    let going = cluster.get::<Pod>("web").await.context("it is still there")?;
    ensure!(going.metadata.deletion_grace_period_seconds == Some(3));
    cluster.eventually::<Pod>("web").has_event("Killing").await?;
    cluster.eventually::<Pod>("web").is_deleted().await?;
    // In whole seconds, which begin before they are written.
    let took = cluster.clock().moment() - before;
    ensure!(took >= Duration::from_millis(1900), "it had {took:?}");
    Ok(())
}

/// Waits for the node monitor grace period: by the driven clock, or in real time on the reference.
const GIVEN_UP: Duration = Duration::from_secs(100);

async fn falls_silent(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut own = Own::new(&cluster);
    let (silent, gone) =
        (own.join("silent", |options| options).await?, own.join("gone", |options| options).await?);
    let on = |node: &str, patience: Option<i64>| {
        let mut spec = own.here(json!({"nodeName": node}));
        if let Some(tolerations) = spec["tolerations"].as_array_mut() {
            let key = "node.kubernetes.io/unreachable";
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": patience}));
        }
        spec
    };
    cluster.create(pod("hasty", json!({}), on(&silent, Some(1)))).await?;
    cluster.create(pod("patient", json!({}), on(&silent, None))).await?;
    cluster.create(pod("lost", json!({}), on(&gone, None))).await?;
    for name in ["hasty", "patient", "lost"] {
        cluster.eventually::<Pod>(name).has_condition("Ready", true).await?;
    }
    let left = own.nodes.pop().context("two have joined")?;
    left.leave().await?;
    drop(own.nodes.pop());
    if cluster.embedded().is_some() {
        cluster.advance(GIVEN_UP).await;
    }
    let unknown = |node: &Node| {
        let conditions =
            node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
        let tainted = |effect: &str| {
            taints.iter().any(|taint| taint.key == "node.kubernetes.io/unreachable" && taint.effect == effect)
        };
        ready.is_some_and(|ready| {
            ready.status == "Unknown" && ready.reason.as_deref() == Some("NodeStatusUnknown")
        }) && tainted("NoSchedule")
            && tainted("NoExecute")
    };
    cluster.eventually::<Node>(&silent).within(GIVEN_UP).is("unknown and tainted", unknown).await?;
    cluster.eventually::<Pod>("patient").has_condition("Ready", false).await?;
    // Nobody is there to end it, but it was asked to go.
    let going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    cluster.eventually::<Pod>("hasty").within(GIVEN_UP).is("asked to go", going).await?;
    cluster.eventually::<Pod>("lost").within(GIVEN_UP).is_deleted().await?;
    ensure!(cluster.get::<Pod>("patient").await?.metadata.deletion_timestamp.is_none());
    cluster.delete::<Node>(&silent).await
}

async fn an_hour_passes(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let Some(api) = cluster.embedded() else {
        // There it would really take an hour.
        return Ok(());
    };
    cluster.create(pod("web", json!({}), json!({}))).await?;
    let before = cluster.eventually::<Pod>("web").has_condition("Ready", true).await?;
    let node = before.spec.and_then(|spec| spec.node_name).context("it is on a node")?;
    let since = |node: Node| {
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.into_iter().find(|it| it.type_ == "Ready" && it.status == "True")?.last_transition_time
    };
    let ready_since = since(cluster.get::<Node>(&node).await?);
    let written = api.store().revision();
    cluster.advance(Duration::from_secs(3600)).await;
    let writes = api.store().revision().0 - written.0;
    // A renewal when time stops anyway, after 10 s or more, but after 40 s at the latest; and a report every five minutes.
    ensure!((90..300).contains(&writes), "{writes} writes");
    let after = cluster.get::<Node>(&node).await?;
    ensure!(after.spec.as_ref().is_none_or(|spec| spec.taints.is_none()), "{after:?}");
    ensure!(ready_since.is_some() && since(after) == ready_since, "it was ready all the time");
    let pod = cluster.get::<Pod>("web").await?;
    ensure!(pod.metadata.uid == before.metadata.uid && super::manual_pods::is_ready(&pod));
    Ok(())
}
