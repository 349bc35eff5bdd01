//! A machine that runs short of something: a disk that is full, and what a node does about its pods.

use super::fixture::{Fixture, Test, Wanted, Wants, is_ready, phase};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_node::{EvictionConfig, Signal, Threshold};

pub(crate) const ALL: &[(&str, Wanted, Test)] = &[
    (
        "a_full_disk_holds_up_new_pods_until_there_is_room",
        || Wants { disk: Some(24), ..Wants::default() },
        |fixture| full(fixture).boxed_local(),
    ),
    (
        "a_node_short_of_disk_lets_the_greediest_go_and_recovers",
        || {
            let hard = [(Signal::Disk, Threshold::Percent(10.0))].into();
            let eviction = soon(EvictionConfig { hard, ..EvictionConfig::default() });
            Wants { disk: Some(32), eviction, ..Wants::default() }
        },
        |fixture| disk(fixture).boxed_local(),
    ),
    (
        "a_node_short_of_memory_says_so_and_takes_in_no_more",
        || {
            let hard = [(Signal::Memory, Threshold::Amount(u64::MAX))].into();
            Wants { eviction: soon(EvictionConfig { hard, ..EvictionConfig::default() }), ..Wants::default() }
        },
        |fixture| memory(fixture).boxed_local(),
    ),
    (
        "a_pod_that_writes_more_than_it_may_has_to_go",
        || Wants { eviction: soon(EvictionConfig::never()), ..Wants::default() },
        |fixture| bounded(fixture).boxed_local(),
    ),
];

/// The same, without the patience of a kubelet.
fn soon(eviction: EvictionConfig) -> EvictionConfig {
    EvictionConfig {
        pressure_transition_period: Duration::from_millis(500),
        monitoring_interval: Duration::from_millis(200),
        ..eviction
    }
}

fn spec(script: &str) -> Value {
    json!({"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", script],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]})
}

async fn node(fixture: &Fixture) -> anyhow::Result<Node> {
    Ok(Api::<Node>::all(fixture.client.clone()).get("process-1").await?)
}

/// What the node says of a condition.
fn says(node: &Node, of: &str) -> Option<String> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == of).map(|condition| condition.status.clone())
}

fn is_tainted(node: &Node, with: &str) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == with && taint.effect == "NoSchedule")
}

fn why(pod: &Pod) -> (String, String) {
    let status = pod.status.clone().unwrap_or_default();
    (status.reason.unwrap_or_default(), status.message.unwrap_or_default())
}

async fn full(fixture: &Fixture) -> anyhow::Result<()> {
    // It fills the disk by what it writes and by what it logs, and goes on.
    let script = "dd if=/dev/zero of=/data/x bs=64k 2>/dev/null; dd if=/dev/zero of=/x bs=1 2>/dev/null; \
        seq 100000; while :; do echo still here; sleep 0.1; done";
    fixture.run("hog", spec(script)).await?;
    fixture.until_ready("hog").await?;
    fixture
        .eventually("the disk is full", async || {
            Ok(nix::sys::statvfs::statvfs(&fixture.root())?.blocks_available() == 0)
        })
        .await?;
    fixture.run("late", spec("exec sleep 1000")).await?;
    fixture.until_told("late", "No space left on device").await?;
    let hog = fixture.pods().get("hog").await?;
    assert!(is_ready(&hog), "it runs on");
    assert_eq!(says(&node(fixture).await?, "Ready").as_deref(), Some("True"), "the node goes on");
    // Its end is seen although nobody could write it down, and there is room again.
    fixture.delete("hog").await?;
    fixture.until_gone("hog").await?;
    fixture.until_ready("late").await?;
    Ok(())
}

async fn disk(fixture: &Fixture) -> anyhow::Result<()> {
    fixture.run("modest", spec("exec sleep 1000")).await?;
    fixture.until_ready("modest").await?;
    fixture.run("hog", spec("dd if=/dev/zero of=/data/x bs=1M count=30; exec sleep 1000")).await?;
    fixture
        .eventually("the node is short of disk, and tainted", async || {
            let node = node(fixture).await?;
            Ok(says(&node, "DiskPressure").as_deref() == Some("True")
                || is_tainted(&node, "node.kubernetes.io/disk-pressure"))
        })
        .await?;
    let hog = fixture.until_phase("hog", "Failed").await?;
    let (reason, message) = why(&hog);
    assert_eq!(reason, "Evicted");
    assert!(
        message.starts_with("The node was low on resource: ephemeral-storage. Threshold quantity: "),
        "{message}"
    );
    let conditions = hog.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let disrupted = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget");
    assert_eq!(disrupted.and_then(|found| found.reason.as_deref()), Some("TerminationByKubelet"));
    fixture.until_told("hog", "Evicted: The node was low on resource: ephemeral-storage").await?;
    fixture
        .eventually("it has enough again", async || {
            let node = node(fixture).await?;
            Ok(says(&node, "DiskPressure").as_deref() == Some("False")
                && !is_tainted(&node, "node.kubernetes.io/disk-pressure"))
        })
        .await?;
    assert_eq!(phase(&fixture.pods().get("modest").await?), "Running", "it held next to nothing");
    fixture.run("next", spec("exec sleep 1000")).await?;
    fixture.until_ready("next").await?;
    Ok(())
}

async fn memory(fixture: &Fixture) -> anyhow::Result<()> {
    let node = node(fixture).await?;
    assert_eq!(says(&node, "MemoryPressure").as_deref(), Some("True"), "from the start");
    assert_eq!(says(&node, "DiskPressure").as_deref(), Some("False"));
    fixture
        .eventually("it is tainted", async || {
            Ok(is_tainted(&self::node(fixture).await?, "node.kubernetes.io/memory-pressure"))
        })
        .await?;
    // It is given to the node past the scheduler.
    let mut given = spec("exec sleep 1000");
    given["nodeName"] = "process-1".into();
    fixture.run("given", given).await?;
    let refused = fixture.until_phase("given", "Failed").await?;
    let expected = "Pod was rejected: The node had condition: [MemoryPressure]. ";
    assert_eq!(why(&refused), ("Evicted".to_owned(), expected.to_owned()));
    let statuses = refused.status.and_then(|status| status.container_statuses);
    assert!(statuses.is_none_or(|all| all.iter().all(|one| one.container_id.is_none())), "it never ran");
    Ok(())
}

async fn bounded(fixture: &Fixture) -> anyhow::Result<()> {
    let mut sized = spec("dd if=/dev/zero of=/data/x bs=1M count=2; exec sleep 1000");
    sized["volumes"][0]["emptyDir"] = json!({"sizeLimit": "1Mi"});
    fixture.run("sized", sized).await?;
    let mut limited = spec("dd if=/dev/zero of=/x bs=1M count=2; exec sleep 1000");
    limited["containers"][0]["resources"] = json!({"limits": {"ephemeral-storage": "1Mi"}});
    fixture.run("limited", limited).await?;
    let mut within = spec("dd if=/dev/zero of=/data/x bs=1k count=100; exec sleep 1000");
    within["volumes"][0]["emptyDir"] = json!({"sizeLimit": "1Mi"});
    fixture.run("within", within).await?;
    for (name, expected) in [
        ("sized", "Usage of EmptyDir volume \"data\" exceeds the limit \"1Mi\". "),
        ("limited", "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "),
    ] {
        let gone = fixture.until_phase(name, "Failed").await?;
        assert_eq!(why(&gone), ("Evicted".to_owned(), expected.to_owned()));
    }
    assert_eq!(phase(&fixture.pods().get("within").await?), "Running");
    assert_eq!(says(&node(fixture).await?, "DiskPressure").as_deref(), Some("False"));
    Ok(())
}
