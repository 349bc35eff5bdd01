//! A folder of its own for each test, and the proof that nothing is left when it ends.

use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_node::Program;
use windlass_node::shim::{
    Container, ContainerState, Identity, Phase, Privileges, Processes, Root, Sandbox, Shim,
};

/// Marks every process of a test, in its environment.
const MARK: &str = "WINDLASS_TEST_GROUND";

/// Where one test runs its pod.
#[derive(Clone)]
pub struct Fixture {
    folder: Arc<tempfile::TempDir>,
    pub program: Program,
    pub clock: Clock,
    mounts: usize,
}

impl Fixture {
    pub fn new() -> anyhow::Result<Self> {
        let folder = Arc::new(tempfile::Builder::new().prefix("shim-").tempdir()?);
        Ok(Self { folder, program: Program::current()?, clock: Clock::real(), mounts: mounts()? })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A pod on the host's network.
    pub fn sandbox(&self) -> Sandbox {
        Sandbox {
            uid: "8a1f".into(),
            folder: self.path("pod"),
            hostname: "lighthouse".into(),
            user_namespace_of: None,
            network: None,
            memory: Vec::new(),
            sysctls: Vec::new(),
        }
    }

    pub async fn launch(&self) -> anyhow::Result<Shim> {
        Ok(Shim::launch(&self.program, &self.sandbox()).await?)
    }

    /// A container that sees the host's programs.
    pub fn container(&self, name: &str, command: &[&str]) -> Container {
        Container {
            name: name.into(),
            attempt: 0,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            environment: vec![(MARK.into(), self.mark())],
            folder: None,
            root: Root::Shown {
                writable: self.path(&format!("roots/{name}")),
                paths: ["/bin", "/lib", "/lib64", "/usr"].map(PathBuf::from).to_vec(),
            },
            files: Vec::new(),
            binds: Vec::new(),
            identity: Identity { user: 0, group: 0, groups: Vec::new() },
            read_only_root: false,
            terminal: false,
            stdin: false,
            stdin_once: false,
            privileges: Privileges::default(),
            log: self.log(name, 0),
            memory_limit: None,
            termination_message: None,
            processes: Processes::Own,
        }
    }

    /// A container that runs a line of shell.
    pub fn shell(&self, name: &str, line: &str) -> Container {
        self.container(name, &["sh", "-c", line])
    }

    pub fn log(&self, name: &str, attempt: u32) -> PathBuf {
        self.path(&format!("logs/{name}/{attempt}.log"))
    }

    /// What a container wrote, without times: `stdout F text`.
    pub fn logged(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let text = std::fs::read_to_string(self.log(name, 0))?;
        text.lines().map(|line| Ok(line.split_once(' ').context("a time")?.1.to_owned())).collect()
    }

    /// Runs a line of shell to its end, and returns what it wrote to its standard output.
    pub async fn said(&self, shim: &Shim, container: &Container) -> anyhow::Result<Vec<String>> {
        shim.start(container).await?;
        ended(shim, &container.name).await?;
        let logged = self.logged(&container.name)?;
        Ok(logged.iter().map(|line| line.trim_start_matches("stdout F ").to_owned()).collect())
    }

    fn mark(&self) -> String {
        self.folder.path().to_string_lossy().into_owned()
    }

    /// The processes of this test's containers.
    pub fn processes(&self) -> Vec<PathBuf> {
        let mark = format!("{MARK}={}\0", self.mark());
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        all.filter(|process| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|part| part == mark.as_bytes())
        })
        .collect()
    }

    pub async fn until_no_process(&self) -> anyhow::Result<()> {
        for _ in 0..500 {
            if self.processes().is_empty() {
                return Ok(());
            }
            self.clock.sleep(Duration::from_millis(10)).await;
        }
        bail!("left behind: {:?}", self.processes())
    }

    /// Ends the pod, and sees that nothing is left of it.
    pub async fn clean(&self) -> anyhow::Result<()> {
        if let Some(shim) = Shim::find(&self.path("pod")).await {
            shim.end().await?;
        }
        self.until_no_process().await?;
        for name in ["shim.sock", "shim.json"] {
            ensure!(!self.path("pod").join(name).exists(), "{name} is left");
        }
        ensure!(
            mounts()? <= self.mounts,
            "mounts are left: {}",
            std::fs::read_to_string("/proc/self/mountinfo")?
        );
        Ok(())
    }
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn mounts() -> anyhow::Result<usize> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(text.lines().filter(|line| line.contains("shim-")).count())
}

/// Waits for the end of a container's last attempt.
pub async fn ended(shim: &Shim, name: &str) -> anyhow::Result<Phase> {
    let mut version = 0;
    loop {
        version = shim.changed(version).await?;
        let state = last(shim.states().await?, name).context("it was started")?;
        if state.phase.code().is_some() {
            return Ok(state.phase);
        }
    }
}

pub fn last(states: Vec<ContainerState>, name: &str) -> Option<ContainerState> {
    states.into_iter().rfind(|state| state.name == name)
}

/// Waits until a file says so.
pub async fn holds(path: &Path, text: &str) -> anyhow::Result<()> {
    for _ in 0..4000 {
        if std::fs::read_to_string(path).is_ok_and(|held| held.contains(text)) {
            return Ok(());
        }
        Clock::real().sleep(Duration::from_millis(10)).await;
    }
    bail!("{} never held {text:?}: {:?}", path.display(), std::fs::read_to_string(path))
}
