//! A real Kubernetes control plane on loopback, for tests and benches to compare with.
//!
//! It runs the programs that `make reference` built (or those in `KUBEBUILDER_ASSETS`) on free ports, with its own
//! certificates and data, and leaves nothing behind: neither after a drop, nor after a panic, nor, on Linux, after a
//! kill.

mod certificates;
mod command_lines;
mod home;
pub mod location;

use crate::process::{Process, Usage};
use certificates::Certificates;
use home::Home;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_clock::Clock;

/// How long a control plane may take to become ready; it takes about three seconds on two idle cores.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// A kube-apiserver with its etcd, and on request the controller manager and the scheduler.
#[derive(Debug)]
pub struct Reference {
    // Order matters: processes end before the folder they write to goes.
    processes: Vec<Process>,
    home: Home,
    url: String,
}

/// What to start; see [`Reference::builder`].
#[derive(Debug, Clone, Default)]
pub struct Builder {
    controllers: bool,
    durable: bool,
    port: Option<u16>,
    audit_off: bool,
    server_flags: Vec<String>,
}

/// Why there is no reference.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The programs are not there.
    #[error("the reference Kubernetes is not here: {folder} lacks {missing}; {remedy}")]
    Absent {
        /// Where they were looked for.
        folder: String,
        /// Which.
        missing: String,
        /// What the user can do about it.
        remedy: &'static str,
    },
    /// There is nowhere to look for the programs.
    #[error("{0}")]
    Nowhere(String),
    /// The port that was asked for is in use.
    #[error("port {0} on 127.0.0.1 is taken; choose another, or none to get a free one")]
    PortTaken(u16),
    /// A file, folder or process could not be made.
    #[error("cannot {doing}")]
    Io {
        /// What was tried.
        doing: String,
        /// What came back.
        source: std::io::Error,
    },
    /// The certificates could not be made.
    #[error("cannot make certificates")]
    Certificates(#[from] rcgen::Error),
    /// A program ended before it was ready.
    #[error("{program} ended while starting ({status}): {last_words}")]
    Ended {
        /// Which.
        program: String,
        /// How.
        status: String,
        /// What its log says last.
        last_words: String,
    },
    /// It ran, but did not become ready.
    #[error("kube-apiserver was not ready after {after:?}: {last_words}")]
    NotReady {
        /// How long it was given.
        after: Duration,
        /// What its log says last.
        last_words: String,
    },
    /// The client could not be made.
    #[error("cannot connect to {url}: {reason}")]
    Client {
        /// The server.
        url: String,
        /// What the client said.
        reason: String,
    },
}

impl StartError {
    fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}

/// The folder of the reference's programs.
///
/// # Errors
/// [`StartError::Absent`] or [`StartError::Nowhere`], which say how to get it.
pub fn programs() -> Result<PathBuf, StartError> {
    let (folder, remedy) = match location::named_assets() {
        Some(folder) => (folder, "correct or unset KUBEBUILDER_ASSETS"),
        None => {
            (location::built_folder().map_err(StartError::Nowhere)?, "run `make reference` (it needs Go)")
        }
    };
    let missing = location::missing_from(&folder, &location::REQUIRED);
    if missing.is_empty() {
        return Ok(folder);
    }
    Err(StartError::Absent { folder: folder.display().to_string(), missing: missing.join(", "), remedy })
}

impl Builder {
    /// Also runs the controller manager and the scheduler, their request throttles raised.
    #[must_use]
    pub fn controllers(mut self) -> Self {
        self.controllers = true;
        self
    }

    /// Lets etcd sync every write to disk, as in production. Without it tests are faster; benches of servers must use it.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Listens on this port and no other.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Starts the API server with one more flag, such as `--feature-gates=WatchList=false`.
    #[must_use]
    pub fn server_flag(mut self, flag: &str) -> Self {
        self.server_flags.push(flag.to_owned());
        self
    }

    /// Writes no audit log: for measuring the server's own speed.
    #[must_use]
    pub fn without_audit(mut self) -> Self {
        self.audit_off = true;
        self
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`], with nothing left running.
    pub async fn start(self) -> Result<Reference, StartError> {
        let programs = programs()?;
        if self.controllers {
            let missing = location::missing_from(&programs, &location::CONTROLLERS);
            if !missing.is_empty() {
                return Err(StartError::Absent {
                    folder: programs.display().to_string(),
                    missing: missing.join(", "),
                    remedy: "unset KUBEBUILDER_ASSETS and run `make reference`, which builds them too",
                });
            }
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.attempt(&programs).await {
                // Between finding a port free and listening on it, someone else may take it.
                Err(StartError::Ended { last_words, .. })
                    if self.port.is_none()
                        && attempts < 3
                        && last_words.contains("address already in use") => {}
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, programs: &Path) -> Result<Reference, StartError> {
        let clock = Clock::real();
        let home = Home::make()?;
        let certificates = Certificates::make()?;
        certificates.write(&home.path().join("pki"))?;
        let [api, etcd, etcd_peer, manager, scheduler] = free_ports(self.port)?;
        let url = format!("https://127.0.0.1:{api}");
        home.write_private("kubeconfig", &certificates.kubeconfig(&url))?;
        home.write_private("audit-policy.yaml", command_lines::AUDIT_POLICY)?;

        let mut reference = Reference { processes: Vec::new(), home, url };
        let paths = command_lines::Paths::new(reference.home.path());
        reference.launch(programs, "etcd", command_lines::etcd(&paths, etcd, etcd_peer, self.durable))?;
        let mut arguments = command_lines::kube_apiserver(&paths, api, etcd, !self.audit_off);
        arguments.extend(self.server_flags.iter().cloned());
        reference.launch(programs, "kube-apiserver", arguments)?;
        reference.wait_until_ready(&clock).await?;
        if self.controllers {
            let arguments = command_lines::kube_controller_manager(&paths, manager);
            reference.launch(programs, "kube-controller-manager", arguments)?;
            reference.launch(programs, "kube-scheduler", command_lines::kube_scheduler(&paths, scheduler))?;
        }
        Ok(reference)
    }
}

impl Reference {
    /// Starts an API server with its etcd on free ports, and waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`], with nothing left running.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Says what to start.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A client with every permission, on the calling task's runtime. Make one per runtime: its connections belong to it.
    ///
    /// # Errors
    /// When the kubeconfig no longer fits the server.
    pub async fn client(&self) -> Result<kube::Client, StartError> {
        client_from(&self.kubeconfig())
            .await
            .map_err(|reason| StartError::Client { url: self.url.clone(), reason })
    }

    /// The file that kubectl and others connect with.
    pub fn kubeconfig(&self) -> PathBuf {
        self.home.path().join("kubeconfig")
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The API server's audit log: one JSON event per line and completed request.
    pub fn audit_log(&self) -> PathBuf {
        self.home.path().join("audit.log")
    }

    /// The folder with everything it keeps; gone when it is.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Its processes, etcd first.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// What all its processes used together.
    pub fn usage(&self) -> Option<Usage> {
        self.processes.iter().map(Process::usage).try_fold(
            Usage { cpu: Duration::ZERO, peak_memory: 0, memory: 0 },
            |sum, one| {
                let one = one?;
                Some(Usage {
                    cpu: sum.cpu + one.cpu,
                    peak_memory: sum.peak_memory + one.peak_memory,
                    memory: sum.memory + one.memory,
                })
            },
        )
    }

    fn launch(&mut self, programs: &Path, name: &str, arguments: Vec<String>) -> Result<(), StartError> {
        let log = self.home.path().join(format!("{name}.log"));
        let process = Process::spawn(name, &programs.join(name), &arguments, &log)
            .map_err(StartError::io(format!("start {name}")))?;
        self.processes.push(process);
        Ok(())
    }

    async fn wait_until_ready(&self, clock: &Clock) -> Result<(), StartError> {
        let client = self.client().await?;
        let deadline = clock.moment() + READY_WITHIN;
        while clock.moment() < deadline {
            let request = http::Request::get("/readyz").body(Vec::new());
            let request = request
                .map_err(|error| StartError::Client { url: self.url.clone(), reason: error.to_string() })?;
            let answer = clock.timeout(Duration::from_secs(5), client.request_text(request)).await;
            if matches!(answer, Ok(Ok(text)) if text == "ok") {
                return Ok(());
            }
            for process in &self.processes {
                if let Some(status) = process.exited() {
                    return Err(StartError::Ended {
                        program: process.name().to_owned(),
                        status: status.to_string(),
                        last_words: process.last_words(),
                    });
                }
            }
            clock.sleep(Duration::from_millis(50)).await;
        }
        let last_words = self.processes.last().map(Process::last_words).unwrap_or_default();
        Err(StartError::NotReady { after: READY_WITHIN, last_words })
    }
}

/// A client from a kubeconfig file.
pub(crate) async fn client_from(kubeconfig: &Path) -> Result<kube::Client, String> {
    let read = Kubeconfig::read_from(kubeconfig).map_err(|error| chain(&error))?;
    let mut config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
        .await
        .map_err(|error| chain(&error))?;
    // What is answered is what is looked at: a client that asks again until it is another answer hides it.
    config.default_retry = false;
    kube::Client::try_from(config).map_err(|error| chain(&error))
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}

/// Five different free ports; the first is `wanted` when one is.
fn free_ports(wanted: Option<u16>) -> Result<[u16; 5], StartError> {
    // All are held until all are found, so that no two are the same.
    let mut held = Vec::new();
    let mut ports = [0; 5];
    for (index, port) in ports.iter_mut().enumerate() {
        let ask = if index == 0 { wanted.unwrap_or(0) } else { 0 };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, ask)).map_err(|error| match wanted {
            Some(wanted) if index == 0 => StartError::PortTaken(wanted),
            _ => StartError::Io { doing: "find a free port on 127.0.0.1".into(), source: error },
        })?;
        *port = listener.local_addr().map_err(StartError::io("read a port's number"))?.port();
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ() {
        let mut ports = free_ports(None).unwrap().to_vec();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 5);
    }

    #[test]
    fn a_taken_port_is_named() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = free_ports(Some(port)).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("port {port} on 127.0.0.1 is taken; choose another, or none to get a free one")
        );
    }

    #[tokio::test]
    async fn a_kubeconfig_that_points_nowhere_is_named() {
        let error = client_from(Path::new("/nonexistent/kubeconfig")).await.err().unwrap();
        assert!(error.contains("/nonexistent/kubeconfig"), "{error}");
    }
}
