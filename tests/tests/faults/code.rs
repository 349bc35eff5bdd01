//! Code that panics, hangs or fails for ever on one object, while the others go on; and a wall clock that jumps.

use anyhow::ensure;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass::election::Election;
use windlass::{Controller, Manager, Observed, Plan, Reconcile, ReconcileError, Refusal, Requeue};
use windlass_harness::Target;
use windlass_testing::{Data, TestCluster, config_map};
use windlass_tests::mirror::{self, Why};

/// The object that things go wrong with.
const BAD: &str = "bad";

/// Runs it with one bad object among good ones: the good are mirrored, also those that come later.
async fn good_ones_go_on(cluster: &TestCluster, manager: Manager) -> anyhow::Result<()> {
    let operator = cluster.run_manager(manager.namespace(cluster.namespace()));
    for name in [BAD, "good"] {
        cluster.create(config_map(name).data("k", "v")).await?;
    }
    mirror::shows(cluster, "good", "v").await?;
    cluster.advance(Duration::from_secs(30)).await;
    cluster.create(config_map("later").data("k", "v")).await?;
    mirror::shows(cluster, "later", "v").await?;
    ensure!(cluster.find::<Secret>(BAD).await?.is_none(), "what fails for ever has no mirror");
    ensure!(!operator.has_ended(), "one bad object is no reason to end");
    operator.stop().await
}

/// What the bad object's reconciles come to while the good ones go on.
fn tried_with_pauses(reconciles: usize) -> anyhow::Result<()> {
    ensure!(
        (2..=20).contains(&reconciles),
        "it is tried again, with pauses that grow: {reconciles} reconciles in half a minute"
    );
    Ok(())
}

pub async fn panics(_: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::api_only();
    let reconciles = Arc::new(AtomicUsize::new(0));
    let counted = reconciles.clone();
    let decide = move |map: &ConfigMap, observed: &Observed| -> Result<Plan, Refusal> {
        if map.name_any() == BAD {
            counted.fetch_add(1, Ordering::Relaxed);
            panic!("this object makes the decision panic, as the test wants it");
        }
        mirror::decide(map, observed)
    };
    let controller = Controller::deciding(decide).named("mirror").owns::<Secret>();
    good_ones_go_on(&cluster, cluster.manager().controller(controller)).await?;
    tried_with_pauses(reconciles.load(Ordering::Relaxed))
}

pub async fn fails_for_ever(_: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::api_only();
    let reconciles = Arc::new(AtomicUsize::new(0));
    let counted = reconciles.clone();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Reconcile<ConfigMap>| {
        let counted = counted.clone();
        async move {
            if map.name_any() == BAD {
                counted.fetch_add(1, Ordering::Relaxed);
                return Err(ReconcileError::custom("it cannot be done"));
            }
            mirrored(&map, &ctx).await
        }
    };
    let controller = Controller::reconciling(reconcile).named("mirror").owns::<Secret>();
    good_ones_go_on(&cluster, cluster.manager().controller(controller)).await?;
    tried_with_pauses(reconciles.load(Ordering::Relaxed))
}

pub async fn hangs(_: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::api_only();
    // One worker, which a reconcile without an end would hold for ever.
    let controller = Controller::reconciling(hanging).named("mirror").owns::<Secret>();
    let controller = controller.reconcile_timeout(Duration::from_secs(5));
    let counts = controller.counts();
    good_ones_go_on(&cluster, cluster.manager().controller(controller)).await?;
    ensure!(counts.timeouts() >= 2, "it is cut off, and tried again: {} times", counts.timeouts());

    // A reconcile that may take for ever is cut off when the operator stops, which says so.
    let cluster = TestCluster::api_only();
    let controller =
        Controller::reconciling(hanging).named("mirror").owns::<Secret>().reconcile_timeout(Duration::MAX);
    let manager = cluster.manager().namespace(cluster.namespace()).controller(controller);
    let operator = cluster.run_manager(manager.graceful_shutdown_timeout(Duration::from_secs(2)));
    cluster.create(config_map(BAD)).await?;
    cluster.run_clock_while(windlass_clock::Clock::real().sleep(Duration::from_millis(200))).await;
    let ended = operator.stop().await.expect_err("a reconcile that hangs does not end");
    ensure!(format!("{ended:#}").contains("was cut off"), "{ended:#}");
    Ok(())
}

async fn hanging(map: Arc<ConfigMap>, ctx: Reconcile<ConfigMap>) -> Result<Requeue, ReconcileError> {
    if map.name_any() == BAD {
        std::future::pending::<()>().await;
    }
    mirrored(&map, &ctx).await
}

async fn mirrored(map: &ConfigMap, ctx: &Reconcile<ConfigMap>) -> Result<Requeue, ReconcileError> {
    let plan = mirror::decide(map, &ctx.observed()).map_err(ReconcileError::custom)?;
    ctx.carry_out(&plan).await?;
    Ok(Requeue::on_change())
}

/// A wait ends when so much time has passed, and a lease is kept, whatever the wall clock is set to meanwhile.
pub async fn wall_clock_jumps(_: Target) -> anyhow::Result<()> {
    const WAIT: Duration = Duration::from_secs(600);
    for (jump, to) in [("forward", "2031-01-01T00:00:00Z"), ("back", "2021-01-01T00:00:00Z")] {
        let cluster = TestCluster::api_only();
        let reconciles = Arc::new(AtomicUsize::new(0));
        let counted = reconciles.clone();
        let decide = move |_: &ConfigMap, _: &Observed| -> Result<Plan, Refusal> {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(Plan::new().wait(Why::Mirrors, WAIT))
        };
        let controller = Controller::deciding(decide).named("waiter").owns::<Secret>();
        let election = Election::new(cluster.namespace(), "waiter").identity("only");
        let manager =
            cluster.manager().namespace(cluster.namespace()).leader_election(election).controller(controller);
        let operator = cluster.run_manager(manager);
        cluster.create(config_map("a")).await?;
        let look = || async { Ok(reconciles.load(Ordering::Relaxed)) };
        cluster.until("it waits", look, |reconciles| *reconciles == 1).await?;
        cluster.advance(WAIT / 2).await;
        cluster.set_wall_clock(to.parse()?);
        cluster.advance(WAIT / 4).await;
        ensure!(reconciles.load(Ordering::Relaxed) == 1, "a clock that jumps {jump} ended a wait");
        cluster.advance(WAIT / 4).await;
        cluster.until("the wait is over", look, |reconciles| *reconciles == 2).await?;
        ensure!(!operator.has_ended(), "a clock that jumps {jump} cost the lease");
        operator.stop().await?;
    }
    Ok(())
}
