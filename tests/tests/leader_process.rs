//! A leader in its own process is stopped (SIGSTOP) for longer than its lease, and continued: it sends no further write, as the
//! API's audit log shows.

use anyhow::{Context, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ObjectMeta, PostParams};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use windlass::election::Election;
use windlass::{Controller, Manager, Observed, Plan, Reasoned, Refusal};
use windlass_clock::Clock;
use windlass_harness::{Process, Suite, Target};
use windlass_tests::targets::{self, Embedded};
use windlass_tests::waiting::until;

/// Set in the process that is the operator: the namespace, and whether it stands by again.
const OPERATOR: &str = "WINDLASS_TEST_OPERATOR";
const LASTS: Duration = Duration::from_secs(3);
const RENEWS_WITHIN: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    if let Ok(asked) = std::env::var(OPERATOR) {
        return operator(&asked);
    }
    Suite::on([targets::embedded_over_tcp(), windlass_harness::Environment::reference()])
        .limit(Duration::from_secs(120))
        .test("a leader that was stopped past its lease sends no write and exits", ends)
        .test("a leader that was stopped past its lease rejoins the election, and leads again", stands_by)
        .run()
}

#[derive(Debug)]
enum Why {
    Beats,
}

impl Reasoned for Why {}

/// Writes all the time: a heart that beats as long as it leads.
fn decide(_: &ConfigMap, observed: &Observed) -> Result<Plan, Refusal> {
    let mut beat = ConfigMap::default();
    beat.metadata.name = Some("beat".into());
    let time = observed.now().as_millisecond() / 40;
    beat.data = Some([("at".to_owned(), time.to_string())].into());
    Ok(Plan::new().apply(beat, Why::Beats).requeue_after(Duration::from_millis(40)))
}

#[tokio::main]
async fn operator(asked: &str) -> ExitCode {
    let (namespace, again) = asked.split_once(' ').unwrap_or((asked, ""));
    let election =
        Election::new(namespace, "operator").identity("process").durations(LASTS, RENEWS_WITHIN, RETRY);
    let manager = match Manager::from_env() {
        Ok(manager) => manager.namespace(namespace).leader_election(election),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let manager = if again == "again" { manager.rejoin_election() } else { manager };
    // Not its own children: a beat of a beat would have no end.
    let heart = Controller::deciding(|map: &ConfigMap, observed| match map.name_any().as_str() {
        "heart" => decide(map, observed),
        _ => Ok(Plan::new()),
    });
    match manager.controller(heart.named("heart").owns::<ConfigMap>()).run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(7)
        }
    }
}

/// A namespace with a heart in it, and a process that makes it beat.
struct Scene {
    target: Target,
    namespace: String,
    folder: tempfile::TempDir,
    process: Process,
}

impl Scene {
    async fn of(target: Target, again: &str) -> anyhow::Result<Self> {
        let namespace = target.namespace().await?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = targets::kubeconfig(&target, folder.path())?;
        let heart = ConfigMap {
            metadata: ObjectMeta { name: Some("heart".into()), ..Default::default() },
            ..Default::default()
        };
        maps(&target, &namespace).create(&PostParams::default(), &heart).await?;
        let arguments = [
            format!("{OPERATOR}={namespace} {again}"),
            format!("KUBECONFIG={}", kubeconfig.display()),
            "WINDLASS_METRICS_BIND_ADDRESS=0".to_owned(),
            "WINDLASS_HEALTH_PROBE_BIND_ADDRESS=0".to_owned(),
            std::env::current_exe()?.display().to_string(),
        ];
        let log = folder.path().join("operator.log");
        let process = Process::spawn("operator", Path::new("/usr/bin/env"), &arguments, &log)?;
        Ok(Self { target, namespace, folder, process })
    }

    fn send(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.process.id()).context("a process id")?;
        kill(Pid::from_raw(id), signal).context("sending a signal")
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.target.client(), &self.namespace)
    }

    async fn held_by(&self, who: &str) -> anyhow::Result<()> {
        until(&format!("the lease is held by {who:?}"), async || {
            let lease = self.leases().get_opt("operator").await?;
            Ok(lease.and_then(|lease| lease.spec?.holder_identity).as_deref() == Some(who))
        })
        .await
        .with_context(|| format!("the process says: {}", self.process.last_words()))
    }

    /// What the heart last wrote.
    async fn beat(&self) -> anyhow::Result<Option<BTreeMap<String, String>>> {
        let beat = maps(&self.target, &self.namespace).get_opt("beat").await?;
        Ok(beat.and_then(|beat| beat.data))
    }

    /// Waits until it beat twice more.
    async fn beats(&self) -> anyhow::Result<()> {
        for _ in 0..2 {
            let before = self.beat().await?;
            until("it beats", async || Ok(self.beat().await? != before)).await?;
        }
        Ok(())
    }

    /// Stops it right after a beat. Before the next one it sends nothing that could be half on its way: a request that is sent
    /// between the look at the clock and the signal is one that nobody can take back.
    async fn stop_between_beats(&self) -> anyhow::Result<()> {
        let before = self.beat().await?;
        while self.beat().await? == before {}
        self.send(Signal::SIGSTOP)
    }

    /// How many writes of the operator in this namespace the API has on record: those of the lease, and others.
    fn writes(&self) -> anyhow::Result<usize> {
        if let Some(embedded) = self.target.extra::<Embedded>() {
            let ours = |namespace: &str, resource: &str| namespace == self.namespace && resource != "leases";
            return Ok(embedded
                .api
                .faults()
                .audit()
                .count(|record| ours(&record.namespace, &record.resource) && record.name != "heart"));
        }
        let log = self.target.kubeconfig().and_then(Path::parent).map(|folder| folder.join("audit.log"));
        let log = std::fs::read_to_string(log.context("a reference has a folder")?);
        let log = log.context("reading the reference's audit log")?;
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let writes = events.filter(|event| {
            let of = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            of("/objectRef/namespace") == self.namespace
                && of("/objectRef/resource") == "configmaps"
                && of("/objectRef/name") == "beat"
                && !matches!(of("/verb"), "get" | "list" | "watch")
        });
        Ok(writes.count())
    }

    /// Stops the process in its work until another one holds the lease, and lets it go on. Returns how many writes there
    /// were before it went on.
    async fn stop_past_the_lease(&self) -> anyhow::Result<usize> {
        self.held_by("process").await?;
        self.beats().await?;
        self.stop_between_beats().await?;
        let mut other = Election::new(&self.namespace, "operator")
            .identity("other")
            .durations(LASTS, RENEWS_WITHIN, RETRY)
            .candidate(self.target.client(), Clock::real());
        other.acquire().await;
        let before = self.writes()?;
        ensure!(before > 0, "nothing is on record");
        self.send(Signal::SIGCONT)?;
        Ok(before)
    }
}

fn maps(target: &Target, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(target.client(), namespace)
}

async fn ends(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target, "").await?;
    let before = scene.stop_past_the_lease().await?;
    until("the process ends", async || Ok(scene.process.exited().is_some())).await?;
    let code = scene.process.exited().and_then(|status| status.code());
    ensure!(code == Some(7), "ended with {code:?}: {}", scene.process.last_words());
    ensure!(scene.writes()? == before, "it wrote when it went on");
    let said = std::fs::read_to_string(scene.folder.path().join("operator.log"))?;
    ensure!(said.contains("no longer leading"), "{said}");
    Ok(())
}

async fn stands_by(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target, "again").await?;
    for _ in 0..2 {
        let before = scene.stop_past_the_lease().await?;
        // For a while the other one holds the lease, and does not renew it: the process must see it lapse first.
        Clock::real().sleep(Duration::from_millis(1500)).await;
        ensure!(scene.writes()? == before, "it wrote while another one leads");
        ensure!(scene.process.exited().is_none(), "it ended: {}", scene.process.last_words());
        scene.held_by("process").await?;
        scene.beats().await?;
    }
    scene.send(Signal::SIGTERM)?;
    until("the process ends", async || Ok(scene.process.exited().is_some())).await?;
    let code = scene.process.exited().and_then(|status| status.code());
    ensure!(code == Some(0), "ended with {code:?}: {}", scene.process.last_words());
    scene.held_by("").await
}
