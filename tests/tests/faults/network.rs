//! API outages, slow responses, and storms of 429 and 409.

use anyhow::ensure;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use std::time::Duration;
use windlass_apiserver::status::{Named, Status};
use windlass_harness::Target;
use windlass_testing::faults::{Act, Pattern, Which};
use windlass_testing::{Data, Outage, Running, TestCluster, config_map};
use windlass_tests::mirror;

const OPERATOR: &str = "operator";

/// A cluster whose mirror works and has shown `before`.
async fn at_work() -> anyhow::Result<(TestCluster, Running)> {
    let cluster = TestCluster::api_only();
    let manager = cluster.manager().namespace(cluster.namespace()).controller(mirror::controller());
    let operator = cluster.run_manager(manager);
    cluster.create(config_map("before").data("k", "v")).await?;
    mirror::shows(&cluster, "before", "v").await?;
    Ok((cluster, operator))
}

/// Lets time pass, a second at a time, until there are this many mirrors; returns how long it took.
async fn passes_until_mirrors(
    cluster: &TestCluster,
    count: usize,
    at_most: Duration,
) -> anyhow::Result<Duration> {
    let start = cluster.clock().moment();
    while cluster.list::<Secret>().await?.len() < count {
        let passed = cluster.clock().moment() - start;
        ensure!(
            passed < at_most,
            "{} of {count} mirrors after {passed:?}",
            cluster.list::<Secret>().await?.len()
        );
        cluster.advance(Duration::from_secs(1)).await;
    }
    Ok(cluster.clock().moment() - start)
}

pub async fn gone_for_a_minute(_: Target) -> anyhow::Result<()> {
    let (cluster, operator) = at_work().await?;
    let outage = Outage::for_user(&cluster, OPERATOR);
    cluster.create(config_map("meanwhile").data("k", "v")).await?;
    cluster.delete::<Secret>("before").await?;
    cluster.advance(Duration::from_secs(60)).await;
    ensure!(!operator.has_ended(), "an operator outlives an outage of its API");
    ensure!(cluster.list::<Secret>().await?.is_empty(), "nothing can have been written");
    drop(outage);
    let took = passes_until_mirrors(&cluster, 2, Duration::from_secs(61)).await?;
    println!("both mirrors {took:?} after the API came back");
    operator.stop().await
}

pub async fn every_request_slow(_: Target) -> anyhow::Result<()> {
    const SLOW: Duration = Duration::from_secs(3);
    const MAPS: usize = 5;
    let cluster = TestCluster::api_only();
    cluster.faults().add(Pattern::any().user(OPERATOR).then(Which::Every, Act::Delay(SLOW)));
    for number in 0..MAPS {
        cluster.create(config_map(format!("map-{number}")).data("k", "v")).await?;
    }
    let manager =
        cluster.manager().namespace(cluster.namespace()).controller(mirror::controller().concurrency(MAPS));
    let operator = cluster.run_manager(manager);
    // Two lists side by side, then the schemas, then a write each.
    let took = passes_until_mirrors(&cluster, MAPS, Duration::from_secs(60)).await?;
    println!("{MAPS} mirrors after {took:?}, with {SLOW:?} for each request");
    ensure!(took >= 2 * SLOW, "it was not slow");
    let written =
        cluster.faults().audit().count(|record| record.user == OPERATOR && record.resource == "secrets");
    ensure!(
        written == MAPS,
        "a slow answer is no reason to write again: {written} writes for {MAPS} mirrors"
    );
    operator.stop().await
}

pub async fn storm_of_429(_: Target) -> anyhow::Result<()> {
    const STORM: Duration = Duration::from_secs(60);
    let (cluster, operator) = at_work().await?;
    let busy = Status::too_many_requests("slow down", 1);
    let storm = Pattern::any().user(OPERATOR).then(Which::Every, Act::Refuse(Box::new(busy)));
    let storm = cluster.faults().add(storm);
    cluster.faults().drop_watches(&Pattern::watches().user(OPERATOR));
    cluster.patch::<ConfigMap>("before", json!({"data": {"k": "w"}})).await?;
    cluster.create(config_map("meanwhile").data("k", "v")).await?;
    cluster.advance(STORM).await;
    ensure!(!operator.has_ended(), "an operator outlives a storm");
    let asked = cluster.faults().remove(storm).unwrap_or_default();
    // Two watches and two objects, each with a pause that doubles: a busy server is not asked in a loop.
    ensure!((1..=80).contains(&asked), "{asked} requests in {STORM:?} of refusals");
    let took = passes_until_mirrors(&cluster, 2, Duration::from_secs(61)).await?;
    mirror::shows(&cluster, "before", "w").await?;
    println!("{asked} requests in the storm; calm again after {took:?}");
    operator.stop().await
}

pub async fn storm_of_409(_: Target) -> anyhow::Result<()> {
    const CONFLICTS: u64 = 12;
    let (cluster, operator) = at_work().await?;
    let secrets = Named { group: "", kind: "secrets" };
    let faster = Status::conflict(secrets, "before", "someone else was faster");
    let writes = Pattern::writes().user(OPERATOR).resource("secrets");
    let storm = cluster.faults().add(writes.then(Which::UpTo(CONFLICTS), Act::Refuse(Box::new(faster))));
    cluster.patch::<ConfigMap>("before", json!({"data": {"k": "w"}})).await?;
    // A conflict is tried again after 5, 10, 20 ms and so on: twelve of them are over in 20 s.
    for _ in 0..60 {
        if cluster.faults().matched(storm) > Some(CONFLICTS) {
            break;
        }
        cluster.advance(Duration::from_secs(1)).await;
    }
    mirror::shows(&cluster, "before", "w").await?;
    let asked = cluster.faults().remove(storm).unwrap_or_default();
    ensure!(asked == CONFLICTS + 1, "{asked} writes to get past {CONFLICTS} conflicts");
    operator.stop().await
}
