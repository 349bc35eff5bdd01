//! The operators that benches compare: ours and its peers under `bench/peers/`, built here and run as processes.

use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use windlass_clock::Clock;
use windlass_harness::Usage;
use windlass_harness::process::Process;

/// A program; what was built for it goes with it.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    _folder: Option<TempDir>,
}

impl Program {
    /// A Go program of `bench/peers`.
    ///
    /// # Errors
    /// When there is no Go, or it does not build.
    pub fn go(name: &str) -> anyhow::Result<Self> {
        Self::compile_go(name, &["build", "-o"])
    }

    fn compile_go(name: &str, command: &[&str]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/peers").join(name);
        let built = Command::new("go").args(command).arg(&path).arg(".").current_dir(source).output();
        let built = built.context("cannot run go")?;
        ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr).trim());
        Ok(Self { path, _folder: Some(folder) })
    }

    /// The tests of a Go package of `bench/peers`, compiled.
    ///
    /// # Errors
    /// When there is no Go, or they do not build.
    pub fn go_test(name: &str) -> anyhow::Result<Self> {
        Self::compile_go(name, &["test", "-c", "-o"])
    }

    /// A Rust program of `bench/peers`, built as it is released.
    ///
    /// # Errors
    /// When it does not build.
    pub fn rust(name: &str) -> anyhow::Result<Self> {
        let mut command = super::load::cargo();
        command.args(["build", "--quiet", "--profile", "dist", "--package", "windlass-peers", "--bin", name]);
        ensure!(command.status().context("cannot run cargo")?.success(), "{name} does not build");
        Ok(Self { path: super::load::built("dist").join(name), _folder: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// An operator that runs; it is killed when dropped.
#[derive(Debug)]
pub struct Operator {
    process: Process,
    log: PathBuf,
    _folder: TempDir,
}

impl Operator {
    /// Starts it on the cluster of this kubeconfig.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Program, kubeconfig: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("log");
        let arguments = [format!("KUBECONFIG={}", kubeconfig.display()), program.path.display().to_string()];
        let process = Process::spawn("operator", Path::new("env"), &arguments, &log)?;
        Ok(Self { process, log, _folder: folder })
    }

    /// What it used so far.
    ///
    /// # Errors
    /// When it has ended, or the kernel does not tell.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        if let Some(status) = self.process.exited() {
            bail!("the operator ended with {status}: {}", self.process.last_words());
        }
        self.process.usage().context("this system does not tell what a process uses")
    }

    /// Lets it end by itself and returns the last line of JSON that it printed.
    ///
    /// # Errors
    /// When it does not end in time, or prints none.
    pub async fn stop(self) -> anyhow::Result<serde_json::Value> {
        self.process.terminate()?;
        let clock = Clock::real();
        let deadline = clock.moment() + Duration::from_secs(40);
        while self.process.exited().is_none() {
            ensure!(clock.moment() < deadline, "the operator does not end");
            clock.sleep(Duration::from_millis(20)).await;
        }
        let log = std::fs::read_to_string(&self.log)?;
        let last = log.lines().rev().find(|line| line.starts_with("{\"delays\""));
        Ok(serde_json::from_str(
            last.with_context(|| format!("no figures in: {}", self.process.last_words()))?,
        )?)
    }
}
