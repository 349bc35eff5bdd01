//! The servers that are measured: the `windlass` binary as people run it, and the reference.

use super::{Ask, Connection};
use anyhow::{Context, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::Reference;
use windlass_harness::process::{Process, Usage};

const READY_WITHIN: Duration = Duration::from_secs(30);

/// A running server; it ends when dropped.
#[derive(Debug)]
pub struct Server {
    /// The nodes, where they are a process of their own.
    nodes: Option<Process>,
    kind: Kind,
    config: kube::Config,
}

#[derive(Debug)]
enum Kind {
    // The process ends before the folder it writes to goes.
    Windlass { process: Process, folder: tempfile::TempDir },
    Reference(Reference),
}

impl Server {
    /// `windlass cluster up --api-only`, in memory or in a folder.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn windlass(program: &Path, durable: bool) -> anyhow::Result<Self> {
        Self::up(program, &["--api-only"], durable).await
    }

    /// `windlass cluster up` with this number of simulated nodes, in a folder.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn windlass_cluster(program: &Path, nodes: usize) -> anyhow::Result<Self> {
        Self::up(program, &["--nodes", &format!("simulated={nodes}")], true).await
    }

    async fn up(program: &Path, options: &[&str], durable: bool) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let mut arguments: Vec<String> = ["cluster", "up", "--kubeconfig"].map(str::to_owned).to_vec();
        arguments.push(kubeconfig.display().to_string());
        arguments.extend(options.iter().map(ToString::to_string));
        if durable {
            arguments.extend(["--data-dir".to_owned(), folder.path().join("data").display().to_string()]);
        }
        let log = folder.path().join("log");
        let process = Process::spawn("windlass", program, &arguments, &log)?;
        let clock = Clock::real();
        let deadline = clock.moment() + READY_WITHIN;
        // Its one line says that it is ready; the first request makes sure.
        while !std::fs::read_to_string(&log).unwrap_or_default().contains("ready in") {
            if process.exited().is_some() || clock.moment() > deadline {
                bail!("windlass did not become ready: {}", process.last_words());
            }
            clock.sleep(Duration::from_millis(1)).await;
        }
        let config = config_from(&kubeconfig).await?;
        Connection::open(&config).await?.ask(&Ask::get("/readyz")).await?;
        Ok(Self { nodes: None, kind: Kind::Windlass { process, folder }, config })
    }

    /// The reference, which syncs every write to disk.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn reference() -> anyhow::Result<Self> {
        Self::of(Reference::builder().durable().without_audit().start().await?).await
    }

    /// The reference with its audit log, which leaves it to the system when writes reach the disk: what is measured by it are
    /// its clients, and a disk that stalls for a second would be in their figures.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn audited_reference() -> anyhow::Result<Self> {
        Self::of(Reference::builder().start().await?).await
    }

    /// The reference with its controller manager and scheduler, as [`Server::reference`] has it, and simulated nodes of ours:
    /// the process that plays them is not among those that are counted.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn reference_cluster(program: &Path, nodes: usize) -> anyhow::Result<Self> {
        let reference = Reference::builder().durable().without_audit().controllers().start().await?;
        let kubeconfig = reference.kubeconfig().display().to_string();
        let count = nodes.to_string();
        let arguments =
            ["node", "simulate", "--kubeconfig", &kubeconfig, "--count", &count].map(str::to_owned);
        let nodes = Process::spawn("nodes", program, &arguments, &reference.folder().join("nodes.log"))?;
        let mut server = Self::of(reference).await?;
        server.nodes = Some(nodes);
        Ok(server)
    }

    async fn of(reference: Reference) -> anyhow::Result<Self> {
        let config = config_from(&reference.kubeconfig()).await?;
        Ok(Self { nodes: None, kind: Kind::Reference(reference), config })
    }

    /// What a client needs.
    pub fn config(&self) -> &kube::Config {
        &self.config
    }

    /// The kubeconfig for others.
    pub fn kubeconfig(&self) -> PathBuf {
        match &self.kind {
            Kind::Windlass { folder, .. } => folder.path().join("kubeconfig"),
            Kind::Reference(reference) => reference.kubeconfig(),
        }
    }

    /// Where it writes down every request, if it does.
    pub fn audit_log(&self) -> Option<PathBuf> {
        match &self.kind {
            Kind::Windlass { .. } => None,
            Kind::Reference(reference) => Some(reference.audit_log()),
        }
    }

    /// What its processes used.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        let usage = match &self.kind {
            Kind::Windlass { process, .. } => process.usage(),
            Kind::Reference(reference) => reference.usage(),
        };
        usage.context("this system does not tell what a process uses")
    }
}

async fn config_from(kubeconfig: &Path) -> anyhow::Result<kube::Config> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    Ok(kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?)
}

/// The `windlass` command as it is released, built when it is not there or not the newest, which takes its time; or the one that
/// `WINDLASS_PROGRAM` names, to compare two of them.
///
/// # Errors
/// When it cannot be built.
pub fn windlass_program() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("WINDLASS_PROGRAM") {
        return Ok(named.into());
    }
    let mut command = cargo();
    command.args(["build", "--profile", "dist", "--quiet", "--package", "windlass-cli"]);
    let status = command.status().context("cannot run cargo")?;
    anyhow::ensure!(status.success(), "the windlass command does not build");
    Ok(built("dist/windlass"))
}

/// Cargo in this workspace, told nothing of the cargo that runs us: that would make it build half of everything anew.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_")) {
        if name != "CARGO_TARGET_DIR" && name != "CARGO_HOME" {
            command.env_remove(name);
        }
    }
    command
}

/// Where cargo puts what it builds.
pub(crate) fn built(path: &str) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join(path)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
