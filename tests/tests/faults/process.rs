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
use windlass::election::Election;
use windlass::{Controller, Manager, Next, Plan, Turn, TurnError};
use windlass_clock::Clock;
use windlass_harness::Target;
use windlass_testing::{TestCluster, config_map, secret};
use windlass_tests::mirror::Why;

/// Names the API that this program is to be an operator of, instead of a suite of tests.
const OPERATOR_OF: &str = "WINDLASS_FAULTS_OPERATOR_OF";

/// Set if it is to work only while it holds a lease.
const ELECTED: &str = "WINDLASS_FAULTS_OPERATOR_ELECTED";

/// How long that lease lasts.
const LEASE: Duration = Duration::from_secs(2);

/// How long a turn takes between its two writes.
const TURN: Duration = Duration::from_millis(700);

/// Runs the operator, if that is what this process was started for.
pub fn as_operator() -> Option<ExitCode> {
    let url = std::env::var(OPERATOR_OF).ok()?;
    let run = async {
        let client = kube::Client::try_from(Config::new(url.parse()?))?;
        let controller = Controller::reconciling(in_two_writes).named("slow").owns::<Secret>();
        let manager = Manager::new(client, Clock::real()).namespace("default").controller(controller);
        let (renew, retry) = (Duration::from_millis(1500), Duration::from_millis(200));
        let election = Election::new("default", "slow").identity("only").durations(LEASE, renew, retry);
        let elected = std::env::var_os(ELECTED).is_some();
        let manager = if elected { manager.elected(election) } else { manager };
        manager.run().await?;
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

async fn in_two_writes(map: Arc<ConfigMap>, turn: Turn<ConfigMap>) -> Result<Next, TurnError> {
    let part = |number: u8| secret(format!("{}-{number}", map.name_any()));
    turn.carry_out(&Plan::complete().apply(part(1), Why::Mirrors)).await?;
    Clock::real().sleep(TURN).await;
    turn.carry_out(&Plan::complete().apply(part(2), Why::Mirrors)).await?;
    Ok(Next::on_change())
}

fn start(url: &str, elected: bool) -> anyhow::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    if elected {
        command.env(ELECTED, "yes");
    }
    command.env(OPERATOR_OF, url).stdin(Stdio::null()).kill_on_drop(true);
    command.spawn().context("starting this program again")
}

async fn signal(child: &Child, signal: &str) -> anyhow::Result<()> {
    let id = child.id().context("it has ended")?.to_string();
    let sent = Command::new("kill").args(["-s", signal, &id]).status().await?;
    ensure!(sent.success(), "kill -s {signal} {id}: {sent}");
    Ok(())
}

/// SIGSTOP for longer than its lease lasts, in the middle of a turn, then SIGCONT: another leads meanwhile, and the rest of the
/// turn is not sent.
pub async fn stopped_past_its_lease(_: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::start_in_real_time();
    let api = cluster.embedded().context("embedded")?;
    let serving = api.serve_tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)?;
    let mut operator = start(&format!("http://{}", serving.address()), true)?;
    cluster.create(config_map("a")).await?;
    cluster.eventually::<Secret>("a-1").is_there().await?;
    signal(&operator, "STOP").await?;
    Clock::real().sleep(LEASE + Duration::from_millis(500)).await;
    let before = api.faults().audit().total();
    signal(&operator, "CONT").await?;
    let ended = Clock::real().timeout(Duration::from_secs(20), operator.wait()).await??;
    ensure!(!ended.success(), "it no longer leads: {ended}");
    let written = api.faults().audit().since(before);
    ensure!(written.is_empty(), "a write began past the deadline: {written:?}");
    ensure!(cluster.find::<Secret>("a-2").await?.is_none(), "the rest of the turn was sent");
    serving.stop().await;
    Ok(())
}

/// SIGTERM in the middle of a turn: the turn ends, no other begins, and the process ends well.
pub async fn terminated_in_mid_turn(_: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::start_in_real_time();
    let api = cluster.embedded().context("embedded")?;
    let serving = api.serve_tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)?;
    let mut operator = start(&format!("http://{}", serving.address()), false)?;
    for name in ["a", "b"] {
        cluster.create(config_map(name)).await?;
    }
    cluster.until("a turn is half done", || cluster.list::<Secret>(), |made| made.len() == 1).await?;
    signal(&operator, "TERM").await?;
    let ended = Clock::real().timeout(Duration::from_secs(20), operator.wait()).await??;
    ensure!(ended.success(), "{ended}");
    let made: Vec<String> = cluster.list::<Secret>().await?.iter().map(ResourceExt::name_any).collect();
    ensure!(made == ["a-1", "a-2"] || made == ["b-1", "b-2"], "one whole turn, and no other: {made:?}");
    serving.stop().await;
    Ok(())
}
