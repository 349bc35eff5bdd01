//! Faults that need no fault injection in the API server, so that they run on any Kubernetes: a cut connection, repeated conflicts,
//! a lease that another replica takes during a reconcile, and another field manager that overwrites the same field.

use anyhow::ensure;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{CustomResourceExt, ResourceExt};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use windlass::election::Election;
use windlass::{Controller, Manager, Plan, Reconcile, ReconcileError, Requeue};
use windlass_clock::Clock;
use windlass_harness::{Environment, Suite, Target};
use windlass_testing::faulty_client::{ClientFault, FaultyClient};
use windlass_testing::{Data, Running, TestCluster, config_map, secret};
use windlass_tests::mirror::{self, Why};
use windlass_tests::operators::plain::{self, Site, SiteSpec};
use windlass_tests::proxy;
use windlass_tests::targets::embedded_over_tcp;

fn main() -> ExitCode {
    Suite::on([embedded_over_tcp(), Environment::reference()])
        .test("a connection that is cut and restored", wire_cut)
        .test("conflicts in a row", conflicts)
        .test("a lease that another replica takes during a reconcile", lease_taken_in_mid_reconcile)
        .test("two field managers that fight", fight)
        .run()
}

fn run_mirror(cluster: &TestCluster, client: kube::Client) -> Running {
    let manager = Manager::new(client, Clock::real()).namespace(cluster.namespace());
    cluster.run_manager(manager.controller(mirror::controller()))
}

async fn wire_cut(target: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::connect(target.client()).await?;
    let (wire, client) = proxy::to_target(&target).await?;
    let operator = run_mirror(&cluster, client);
    cluster.create(config_map("before").data("k", "v")).await?;
    mirror::shows(&cluster, "before", "v").await?;
    wire.cut();
    cluster.create(config_map("meanwhile").data("k", "v")).await?;
    cluster.patch::<ConfigMap>("before", json!({"data": {"k": "w"}})).await?;
    Clock::real().sleep(Duration::from_secs(1)).await;
    ensure!(cluster.find::<Secret>("meanwhile").await?.is_none(), "the wire is cut");
    ensure!(!operator.has_ended(), "a wire that is cut is no reason to end");
    wire.mend();
    mirror::shows(&cluster, "meanwhile", "v").await?;
    mirror::shows(&cluster, "before", "w").await?;
    operator.stop().await
}

async fn conflicts(target: Target) -> anyhow::Result<()> {
    const CONFLICTS: usize = 7;
    let cluster = TestCluster::connect(target.client()).await?;
    let storm = FaultyClient::first(CONFLICTS, ClientFault::Conflict);
    let operator = run_mirror(&cluster, storm.on(target.client()));
    cluster.create(config_map("a").data("k", "v")).await?;
    mirror::shows(&cluster, "a", "v").await?;
    let writes = storm.writes();
    ensure!(writes.len() == CONFLICTS + 1, "one write per conflict, and one more: {writes:?}");
    operator.stop().await
}

/// The reconcile has done half of its writes when the lease goes to another: the other half is never sent.
async fn lease_taken_in_mid_reconcile(target: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::connect(target.client()).await?;
    let (half_done, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (half_done.clone(), go_on.clone());
    let reconcile = move |map: Arc<ConfigMap>, ctx: Reconcile<ConfigMap>| {
        let (half_done, go_on) = signals.clone();
        async move {
            let part = |number: u8| secret(format!("{}-{number}", map.name_any()));
            ctx.carry_out(&Plan::new().apply(part(1), Why::Mirrors)).await?;
            half_done.notify_one();
            go_on.notified().await;
            ctx.carry_out(&Plan::new().apply(part(2), Why::Mirrors)).await?;
            Ok::<_, ReconcileError>(Requeue::on_change())
        }
    };
    let election = Election::new(cluster.namespace(), "operator").identity("first").durations(
        Duration::from_secs(6),
        Duration::from_secs(4),
        Duration::from_millis(200),
    );
    let manager =
        Manager::new(target.client(), Clock::real()).namespace(cluster.namespace()).leader_election(election);
    let controller = Controller::reconciling(reconcile).named("halves").owns::<Secret>();
    let mut operator = cluster.run_manager(manager.controller(controller));
    // What a controller manager puts into each namespace would have a reconcile, too.
    let _ = cluster.delete::<ConfigMap>("kube-root-ca.crt").await;
    cluster.create(config_map("a")).await?;
    half_done.notified().await;
    let made = cluster.list::<Secret>().await?.len();
    cluster.patch::<Lease>("operator", json!({"spec": {"holderIdentity": "second"}})).await?;
    let ended = operator.ended().await.expect_err("it no longer leads");
    ensure!(format!("{ended:#}").contains("no longer leading"), "{ended:#}");
    go_on.notify_waiters();
    Clock::real().sleep(Duration::from_millis(300)).await;
    let left: Vec<String> = cluster.list::<Secret>().await?.iter().map(ResourceExt::name_any).collect();
    ensure!(left.len() == made && left.iter().all(|name| name.ends_with("-1")), "{left:?}");
    Ok(())
}

/// Another puts its own value back whenever the operator wrote: the operator notices, says so, and writes seldom.
async fn fight(target: Target) -> anyhow::Result<()> {
    const LONG: Duration = Duration::from_secs(3);
    let cluster = TestCluster::connect(target.client()).await?;
    cluster.install([Site::crd()]).await?;
    let counting = FaultyClient::none();
    let manager = Manager::new(counting.on(target.client()), Clock::real()).namespace(cluster.namespace());
    let operator = cluster.run_manager(plain::operator(manager));
    cluster.create(Site::new("s", SiteSpec { pages: vec!["home".into()] })).await?;
    cluster.eventually::<Site>("s").has_condition("Ready", true).await?;
    let rival = async {
        loop {
            let page = cluster.get::<ConfigMap>("s-home").await?;
            if page.data.unwrap_or_default()["title"] != "theirs" {
                cluster.apply("rival", config_map("s-home").data("title", "theirs")).await?;
            }
            Clock::real().sleep(Duration::from_millis(5)).await;
        }
        #[expect(unreachable_code, reason = "it fights until it is stopped")]
        anyhow::Ok(())
    };
    let judged = async {
        cluster.eventually::<Site>("s").has_condition_because("Degraded", "Contested").await?;
        let told = cluster.eventually::<Site>("s").has_event("Contested").await?;
        ensure!(told.contains("rival"), "{told}");
        Clock::real().sleep(LONG).await;
        let writes = counting.writes().iter().filter(|write| write.ends_with("/configmaps/s-home")).count();
        ensure!((2..=10).contains(&writes), "{writes} writes of one page");
        println!("{}: {writes} writes, and then peace for a while: {told}", target.environment());
        anyhow::Ok(())
    };
    tokio::select! {
        failed = rival => failed?,
        judged = judged => judged?,
    }
    operator.stop().await
}
