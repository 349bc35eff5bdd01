//! The processes of the demo: a cluster and two operators, in a folder that is removed with them.

use super::operator::{MEMCACHED, SAMPLEDB};
use super::processes;
use crate::{child, connect};
use anyhow::Context;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use windlass_clock::Clock;
use windlass_node::Program;
use windlass_node::doctor::{self, Finding, Level};
use windlass_node::net::Network;

/// The longest that a process may take to be ready, or to exit.
const PATIENCE: Duration = Duration::from_secs(30);

/// The demo's processes and folder.
pub(super) struct Environment {
    folder: TempDir,
    /// Why the servers are simulated; nothing where they are processes.
    pub(super) simulated: Option<Simulated>,
    /// The major version of PostgreSQL that a SampleDB can ask for, where there is one.
    pub(super) postgres: Option<String>,
    cluster: Option<Child>,
    memcached: Option<Child>,
    sampledb: Option<Child>,
    kubeconfig: PathBuf,
    metrics: u16,
    /// What only processes of this demo have in their command lines.
    pub(super) marks: Vec<String>,
}

/// Why servers are simulated.
pub(super) enum Simulated {
    /// `--simulate` asks for it.
    Asked,
    /// What this machine lacks to run them as processes, each with what to do about it.
    Lacking(Vec<String>),
}

/// A cluster that is ready.
pub(super) struct Cluster {
    pub(super) client: Client,
    /// What it says of itself.
    pub(super) ready: String,
    pub(super) id: u32,
    /// How its pods are reached, where they are processes.
    pub(super) network: Option<Network>,
}

impl Cluster {
    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::default_namespaced(self.client.clone())
    }

    /// All objects of a kind.
    pub(super) async fn list<K>(&self) -> anyhow::Result<Vec<K>>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        Ok(self.api::<K>().list(&ListParams::default()).await?.items)
    }
}

/// How it all ended.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) took: Duration,
    /// Processes that did not end.
    pub(super) left: Vec<String>,
    /// Folders that did not go.
    pub(super) folders: usize,
}

impl Environment {
    pub(super) fn new(simulate: bool) -> anyhow::Result<Self> {
        let folder =
            tempfile::Builder::new().prefix("windlass-demo-").tempdir().context("cannot make a folder")?;
        let program = std::env::current_exe().context("cannot tell which program this is")?;
        for name in [MEMCACHED, SAMPLEDB] {
            symlink(&program, folder.path().join(name)).context("cannot name the operators")?;
        }
        let simulated = match simulate {
            true => Some(Simulated::Asked),
            false => Some(lacking()?).filter(|lacking| !lacking.is_empty()).map(Simulated::Lacking),
        };
        let marks = vec![folder.path().display().to_string()];
        Ok(Self {
            folder,
            simulated,
            postgres: None,
            cluster: None,
            memcached: None,
            sampledb: None,
            kubeconfig: PathBuf::new(),
            metrics: 0,
            marks,
        })
    }

    /// Whether servers are processes.
    pub(super) fn is_real(&self) -> bool {
        self.simulated.is_none()
    }

    /// What nodes the cluster has, as it is told.
    pub(super) fn nodes(&self) -> &'static str {
        if self.is_real() { "process=1" } else { "simulated=1" }
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The demo's own folder, which goes with it.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The settings of the cluster's node. Recipes and images of the user's own might be another memcached.
    pub(super) fn settings(&self) -> PathBuf {
        self.folder().join("settings")
    }

    /// The Memcached operator's binary, as commands name it.
    pub(super) fn memcached_operator(&self) -> PathBuf {
        self.folder().join(MEMCACHED)
    }

    pub(super) fn metrics_address(&self) -> String {
        format!("127.0.0.1:{}", self.metrics)
    }

    /// Starts the cluster and waits until it is ready.
    pub(super) async fn start_cluster(&mut self) -> anyhow::Result<Cluster> {
        let settings = self.settings();
        let log = self.log("cluster")?.into();
        let child::Cluster { child, ready, kubeconfig } =
            child::Cluster::start(self.nodes(), log, Some(&settings)).await?;
        let id = child.id().unwrap_or_default();
        self.cluster = Some(child);
        self.kubeconfig = kubeconfig;
        let home = self.kubeconfig.parent().context("a kubeconfig without a folder")?.to_owned();
        self.marks.push(home.display().to_string());
        let (client, _) = connect::to(Some(&self.kubeconfig), None).await?;
        let network = match self.is_real() {
            true => Network::find(&home.join("process-1/network")).await,
            false => None,
        };
        anyhow::ensure!(network.is_some() == self.is_real(), "the node has no network");
        Ok(Cluster { client, ready, id, network })
    }

    /// Starts the Memcached operator; what it does is seen in the cluster.
    pub(super) async fn start_memcached_operator(&mut self) -> anyhow::Result<u32> {
        // A port that was free a moment ago.
        let free = TcpListener::bind(("127.0.0.1", 0)).await.context("no port is free")?;
        self.metrics = free.local_addr()?.port();
        drop(free);
        let child = self.start_operator(MEMCACHED, &self.metrics_address())?;
        let id = child.id().unwrap_or_default();
        self.memcached = Some(child);
        Ok(id)
    }

    /// Starts the SampleDB operator.
    pub(super) fn start_sampledb_operator(&mut self) -> anyhow::Result<u32> {
        let child = self.start_operator(SAMPLEDB, "0")?;
        let id = child.id().unwrap_or_default();
        self.sampledb = Some(child);
        Ok(id)
    }

    fn start_operator(&self, name: &str, metrics: &str) -> anyhow::Result<Child> {
        let mut command = Command::new(self.folder().join(name));
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.args(["--health-probe-bind-address", "0", "--metrics-bind-address", metrics]);
        command.stdout(self.log(name)?).stderr(self.log(name)?);
        child::alone(&mut command).spawn().with_context(|| format!("cannot start {name}"))
    }

    /// Kills the Memcached operator, without a word of warning.
    pub(super) async fn kill_memcached_operator(&mut self) -> anyhow::Result<()> {
        let mut operator = self.memcached.take().context("no operator runs")?;
        operator.kill().await.context("cannot kill the operator")
    }

    /// What the Memcached operator would do about an object: `capture`, and then `plan` on what it saw.
    pub(super) async fn plan(&self, kind: &str, name: &str) -> anyhow::Result<String> {
        let mut command = Command::new(self.memcached_operator());
        command.args(["capture", kind, name, "--kubeconfig"]).arg(&self.kubeconfig);
        let captured = command.output().await.context("cannot ask the operator")?;
        anyhow::ensure!(captured.status.success(), "capture: {}", String::from_utf8_lossy(&captured.stderr));
        let mut command = Command::new(self.memcached_operator());
        command.arg("plan").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("cannot ask the operator")?;
        let mut input = child.stdin.take().context("the operator has no input")?;
        input.write_all(&captured.stdout).await.context("the operator does not listen")?;
        drop(input);
        let planned = child.wait_with_output().await?;
        anyhow::ensure!(planned.status.success(), "plan: {}", planned.status);
        Ok(String::from_utf8_lossy(&planned.stdout).into_owned())
    }

    /// The sum of a metric of the Memcached operator, over the lines that hold a text.
    pub(super) async fn metric(&self, name: &str, holding: &str) -> anyhow::Result<f64> {
        let mut stream =
            TcpStream::connect(self.metrics_address()).await.context("no operator serves metrics")?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: operator\r\nConnection: close\r\n\r\n").await?;
        let mut page = String::new();
        Clock::real().timeout(PATIENCE, stream.read_to_string(&mut page)).await??;
        let of = |line: &&str| line.starts_with(name) && line.contains(holding);
        let value = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
        Ok(page.lines().filter(of).filter_map(value).sum())
    }

    /// Ends all that was started, and says what did not end.
    pub(super) async fn end(&mut self) -> Ended {
        let clock = Clock::real();
        let begun = clock.moment();
        self.mark_pods();
        for child in [self.memcached.take(), self.sampledb.take(), self.cluster.take()].into_iter().flatten()
        {
            child::end(child).await;
        }
        let gone = async {
            while !processes::that_name(&self.marks).is_empty() {
                clock.sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = clock.timeout(PATIENCE, gone).await;
        let left = processes::that_name(&self.marks);
        let left = left.into_iter().map(|one| format!("{} ({})", one.id, one.line)).collect();
        let folders =
            self.marks.iter().skip(1).filter(|mark| mark.starts_with('/') && Path::new(mark).exists());
        Ended { took: clock.moment() - begun, left, folders: folders.count() }
    }

    /// The shims of pods name their pods, which have folders.
    fn mark_pods(&mut self) {
        let Some(home) = self.kubeconfig.parent() else { return };
        let pods = std::fs::read_dir(home.join("process-1/pods")).into_iter().flatten().flatten();
        self.marks.extend(pods.filter_map(|pod| pod.file_name().into_string().ok()));
    }

    /// The last lines that the processes wrote, for whoever looks for what went wrong.
    pub(super) fn logs(&self) -> String {
        let mut told = String::new();
        for name in ["cluster", MEMCACHED, SAMPLEDB] {
            let text = std::fs::read_to_string(self.folder.path().join(name).with_extension("log"))
                .unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            for line in &lines[lines.len().saturating_sub(20)..] {
                told += &format!("{name}: {line}\n");
            }
        }
        told
    }

    fn log(&self, name: &str) -> anyhow::Result<File> {
        let path = self.folder.path().join(name).with_extension("log");
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// How to get the program that the demo's servers are.
const INSTALL: &str = "\
Debian, Ubuntu: sudo RUNLEVEL=1 apt-get install memcached   (RUNLEVEL=1: without starting it as a service)
     Fedora: sudo dnf install memcached";

/// What this machine lacks to run memcached as a pod, each with what to do about it.
fn lacking() -> anyhow::Result<Vec<String>> {
    if !cfg!(target_os = "linux") {
        return Ok(vec!["pods are processes on Linux only".to_owned()]);
    }
    Ok(lacking_of(doctor::examine(&Program::current()?)?))
}

fn lacking_of(findings: Vec<Finding>) -> Vec<String> {
    let is_memcached = |one: &Finding| one.about == "image memcached" && one.level != Level::Ok;
    let wrong = findings.into_iter().filter(|one| one.level == Level::Problem || is_memcached(one));
    let told = wrong.map(|one| match one.remedy {
        _ if is_memcached(&one) => format!("{}: {}\n  -> {INSTALL}", one.about, one.found),
        Some(remedy) => format!("{}: {}\n  -> {remedy}", one.about, one.found),
        None => format!("{}: {}", one.about, one.found),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_memcached_needs_is_told_and_what_others_need_is_not() {
        let finding = |about: &str, level, remedy: Option<&str>| Finding {
            about: about.into(),
            level,
            found: "is not there".into(),
            remedy: remedy.map(Into::into),
        };
        let told = lacking_of(vec![
            finding("namespaces", Level::Ok, None),
            finding("mounts", Level::Problem, Some("mount it")),
            finding("image redis", Level::Warning, Some("install redis")),
            finding("image memcached", Level::Warning, Some("install memcached")),
        ]);
        assert_eq!(told[0], "mounts: is not there\n  -> mount it");
        assert!(told[1].starts_with("image memcached: is not there\n  -> Debian"), "{told:?}");
        assert_eq!(told.len(), 2);
    }
}
