//! `windlass run`: an operator as a process of this machine, outside of the cluster it works on.

use super::watch;
use crate::apply::{Objects, title};
use crate::cargo_project::Project;
use crate::child::{self, Cluster};
use crate::cluster::is_on_this_machine;
use crate::connect;
use crate::operator::Options as Operator;
use crate::signals::Signals;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use windlass_clock::Clock;
use windlass_sdk::description::OperatorDescription;

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass run
      the operator of the project here, on the cluster of the current context, whose kinds `windlass install` gave it
  windlass run --embedded --watch
      on a cluster of its own, with its kinds; built and started again whenever a source changes
  windlass run --embedded --nodes process=1 -- --log-level debug
      pods are processes of this machine; what comes after -- is for the operator
  windlass run --webhook-url https://host.docker.internal:9443
      webhooks are served here, and a cluster in containers of this machine reaches them by that URL";

/// The option of operators, as a variable.
const WEBHOOK_URL: &str = "WINDLASS_WEBHOOK_URL";
/// How often sources are checked for changes.
const EVERY: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The operator's binary [default: WINDLASS_OPERATOR, or that of the project in this folder]
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,

    /// The kubeconfig whose current context is the cluster [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Start an embedded cluster with the operator's CRDs; it stops with the operator
    #[arg(long, conflicts_with = "kubeconfig")]
    embedded: bool,

    /// The nodes of the embedded cluster, as for `windlass cluster up`
    #[arg(long, value_name = "KIND=COUNT", default_value = "simulated=1", requires = "embedded")]
    nodes: String,

    /// Rebuild and restart the operator when a source changes
    #[arg(long, conflicts_with = "operator")]
    watch: bool,

    /// The URL by which the API server reaches the webhooks of the operator here, such as https://host.docker.internal:9443
    /// [default: for an embedded cluster on this machine, one that it reaches; otherwise webhooks are not served]
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,

    /// Arguments for the operator; it lists its options with --help
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

impl Options {
    pub(crate) async fn run(&self) -> anyhow::Result<ExitCode> {
        let mut signals = Signals::listen()?;
        let mut running = Running { cluster: None, operator: None };
        let done = tokio::select! {
            done = self.go_on(&mut running) => done,
            () = signals.next() => Ok(ExitCode::SUCCESS),
        };
        // In this order: an operator whose cluster is gone would complain.
        for child in [running.operator.take(), running.cluster.take()].into_iter().flatten() {
            child::end(child).await;
        }
        done
    }

    async fn go_on(&self, running: &mut Running) -> anyhow::Result<ExitCode> {
        let project = match self.watch {
            true => Some(Project::find().context("--watch needs a project")?),
            false => None,
        };
        let mut seen = project.as_ref().map(|project| watch::look(project.folder()));
        let mut program = self.program()?;
        let kubeconfig = self.reached(running).await?;
        loop {
            if let Some(kubeconfig) = kubeconfig.as_deref().filter(|_| self.embedded) {
                install(&program, kubeconfig).await?;
            }
            running.operator = Some(self.start(&program, kubeconfig.as_deref())?);
            let Some(project) = &project else {
                let operator = running.operator.as_mut().context("no operator runs")?;
                let status = operator.wait().await.context("cannot wait for the operator")?;
                running.operator = None;
                let code = status.code().and_then(|code| u8::try_from(code).ok());
                return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
            };
            program = loop {
                let now = changed(project, running, seen.take().unwrap_or_default()).await?;
                seen = Some(now);
                eprintln!("windlass: a source changed; building");
                match self.program() {
                    Ok(program) => break program,
                    // What runs goes on, and the next change may mend it.
                    Err(error) => eprintln!("windlass: {error:#}; the last successful build keeps running"),
                }
            };
            if let Some(operator) = running.operator.take() {
                child::end(operator).await;
            }
            eprintln!("windlass: restarting");
        }
    }

    fn program(&self) -> anyhow::Result<PathBuf> {
        Operator::of(self.operator.clone()).program()
    }

    /// How the operator is to reach its cluster; nothing where it finds the way by itself.
    async fn reached(&self, running: &mut Running) -> anyhow::Result<Option<PathBuf>> {
        if self.embedded {
            let Cluster { child, ready, kubeconfig } =
                Cluster::start(&self.nodes, Stdio::inherit(), None).await?;
            running.cluster = Some(child);
            eprintln!("windlass: a cluster, {ready}; export KUBECONFIG={}", kubeconfig.display());
            return Ok(Some(kubeconfig));
        }
        // Better said here than by the operator, a minute later.
        connect::to(self.kubeconfig.as_deref(), None).await?;
        Ok(self.kubeconfig.clone())
    }

    /// Where the API server finds the webhooks of the operator; nothing where that is unknown, or the user says it to the operator.
    fn webhooks_at(&self, kubeconfig: Option<&Path>) -> Option<String> {
        let said = self.arguments.iter().any(|argument| argument.starts_with("--webhook-"))
            || std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("WINDLASS_WEBHOOK_"));
        match &self.webhook_url {
            Some(url) => Some(url.clone()),
            None if said => None,
            // Any free port; both ends are of this machine.
            None => is_on_this_machine(kubeconfig).then(|| "https://127.0.0.1:0".to_owned()),
        }
    }

    fn start(&self, program: &Path, kubeconfig: Option<&Path>) -> anyhow::Result<Child> {
        let mut command = Command::new(program);
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        if let Some(url) = self.webhooks_at(kubeconfig) {
            command.env(WEBHOOK_URL, url);
        }
        command.args(&self.arguments);
        child::alone(&mut command).spawn().with_context(|| format!("cannot run {}", program.display()))
    }
}

/// The child processes.
struct Running {
    cluster: Option<Child>,
    operator: Option<Child>,
}

/// Waits until a source is another, and says once if the operator ends by itself meanwhile.
async fn changed(
    project: &Project,
    running: &mut Running,
    seen: watch::Files,
) -> anyhow::Result<watch::Files> {
    let clock = Clock::real();
    loop {
        clock.sleep(EVERY).await;
        if let Some(operator) = &mut running.operator
            && let Some(status) = operator.try_wait().context("cannot ask after the operator")?
        {
            eprintln!("windlass: the operator ended ({status}); it is started again when a source changes");
            running.operator = None;
        }
        let now = watch::look(project.folder());
        if now != seen {
            return Ok(now);
        }
    }
}

/// Installs the operator's CRDs into the cluster, as they are now.
async fn install(program: &Path, kubeconfig: &Path) -> anyhow::Result<()> {
    let answer = Operator::of(Some(program.to_owned())).answer("describe")?;
    let (client, _) = connect::to(Some(kubeconfig), None).await?;
    let mut objects = Objects::of(client);
    for definition in &OperatorDescription::read(&answer)?.definitions {
        let became = objects.apply(definition).await?;
        eprintln!("windlass: {} {}", became.in_words(), title(definition));
    }
    Ok(())
}
