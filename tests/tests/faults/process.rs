//! An operator in a process of its own, which is this program started again: what signals do to it.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Config, ResourceExt};
use std::net::Ipv4Addr;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use windlass::{Controller, Manager, Plan, Reconcile, ReconcileError, Requeue};
use windlass_clock::Clock;
use windlass_harness::Target;
use windlass_testing::{TestCluster, config_map, secret};
use windlass_tests::mirror::Why;

/// Names the API that this program is to be an operator of, instead of a suite of tests.
const OPERATOR_OF: &str = "WINDLASS_FAULTS_OPERATOR_OF";

/// How long a reconcile takes between its two writes.
const TURN: Duration = Duration::from_millis(700);

/// Runs the operator, if that is what this process was started for.
pub fn as_operator() -> Option<ExitCode> {
    let url = std::env::var(OPERATOR_OF).ok()?;
    let run = async {
        let client = kube::Client::try_from(Config::new(url.parse()?))?;
        let controller = Controller::reconciling(in_two_writes).named("slow").owns::<Secret>();
        Manager::new(client, Clock::real()).namespace("default").controller(controller).run().await?;
        anyhow::Ok(())
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    Some(match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

async fn in_two_writes(map: Arc<ConfigMap>, ctx: Reconcile<ConfigMap>) -> Result<Requeue, ReconcileError> {
    let part = |number: u8| secret(format!("{}-{number}", map.name_any()));
    ctx.carry_out(&Plan::new().apply(part(1), Why::Mirrors)).await?;
    Clock::real().sleep(TURN).await;
    ctx.carry_out(&Plan::new().apply(part(2), Why::Mirrors)).await?;
    Ok(Requeue::on_change())
}

fn start(url: &str) -> anyhow::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(OPERATOR_OF, url).stdin(Stdio::null()).kill_on_drop(true);
    command.spawn().context("starting this program again")
}

async fn signal(child: &Child, signal: &str) -> anyhow::Result<()> {
    let id = child.id().context("it has ended")?.to_string();
    let sent = Command::new("kill").args(["-s", signal, &id]).status().await?;
    ensure!(sent.success(), "kill -s {signal} {id}: {sent}");
    Ok(())
}

/// SIGTERM in the middle of a reconcile: the reconcile ends, no other begins, and the process ends well.
pub async fn terminated_in_mid_reconcile(_: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::start_in_real_time();
    let api = cluster.embedded().context("embedded")?;
    let serving = api.serve_tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)?;
    let mut operator = start(&format!("http://{}", serving.address()))?;
    for name in ["a", "b"] {
        cluster.create(config_map(name)).await?;
    }
    cluster.until("a reconcile is half done", || cluster.list::<Secret>(), |made| made.len() == 1).await?;
    signal(&operator, "TERM").await?;
    let ended = Clock::real().timeout(Duration::from_secs(20), operator.wait()).await??;
    ensure!(ended.success(), "{ended}");
    let made: Vec<String> = cluster.list::<Secret>().await?.iter().map(ResourceExt::name_any).collect();
    ensure!(made == ["a-1", "a-2"] || made == ["b-1", "b-2"], "one whole ctx, and no other: {made:?}");
    serving.stop().await;
    Ok(())
}
