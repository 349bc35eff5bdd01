//! The targets that tests run on: the embedded API in process and over TCP, the embedded cluster, and the reference.

use anyhow::Context;
use k8s_openapi::api::core::v1::ServiceAccount;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use windlass_apiserver::{Api, Config, Identity, Serving};
use windlass_harness::{Environment, Target};
use windlass_testing::TestCluster;

/// A fresh embedded API with a client of its own.
pub struct Embedded {
    /// The API, for what only its owner can do: faults, compaction, its store.
    pub api: Api,
    client: kube::Client,
    serving: Option<Serving>,
}

impl Embedded {
    /// Reached by calls, without a socket.
    pub fn in_process() -> Self {
        Self::with(Config::default())
    }

    /// Reached by calls, made from this configuration.
    pub fn with(config: Config) -> Self {
        let api = Api::new(config);
        let client = kube::Client::new(api.service(Identity::admin()), "default");
        Self { api, client, serving: None }
    }

    /// Reached through a free port on loopback.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn over_tcp() -> anyhow::Result<Self> {
        let api = Api::new(Config::default());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
        listener.set_nonblocking(true)?;
        let serving = api.serve_tcp(tokio::net::TcpListener::from_std(listener)?)?;
        let url = format!("http://{}", serving.address()).parse().context("an address makes a URL")?;
        let mut config = kube::Config::new(url);
        // What is answered is what is looked at, as with the reference.
        config.default_retry = false;
        let client = kube::Client::try_from(config)?;
        Ok(Self { api, client, serving: Some(serving) })
    }

    /// Where it is reached, if over TCP.
    pub fn url(&self) -> Option<String> {
        self.serving.as_ref().map(|serving| format!("http://{}", serving.address()))
    }

    /// A client with every permission.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }
}

/// A cluster for one test of an operator: fresh if the target is the embedded API, else a new namespace of the target.
///
/// # Errors
/// When no namespace can be made.
pub async fn cluster(target: &Target) -> anyhow::Result<TestCluster> {
    match target.extra::<Embedded>() {
        Some(_) => Ok(TestCluster::api_only()),
        None => TestCluster::connect(target.client()).await,
    }
}

/// A kubeconfig with which another process reaches the target; made in `folder` where there is none.
///
/// # Errors
/// When the target is reached only by calls.
pub fn kubeconfig(target: &Target, folder: &Path) -> anyhow::Result<PathBuf> {
    if let Some(path) = target.kubeconfig() {
        return Ok(path.to_owned());
    }
    let url = target.extra::<Embedded>().and_then(Embedded::url);
    let url = url.context("this target cannot be reached from another process")?;
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{ "name": "it", "cluster": { "server": url } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        "users": [{ "name": "it", "user": {} }],
    });
    let path = folder.join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}

/// The embedded API, a fresh one per test, called in process.
pub fn embedded_in_process() -> Environment {
    const NAME: &str = "embedded in process";
    Environment::new(NAME, || async {
        let embedded = Embedded::in_process();
        Ok(Target::new(NAME, embedded.client()).with(embedded))
    })
}

/// The embedded API, a fresh one per test, over TCP.
pub fn embedded_over_tcp() -> Environment {
    const NAME: &str = "embedded over TCP";
    Environment::new(NAME, || async {
        let embedded = Embedded::over_tcp().await?;
        Ok(Target::new(NAME, embedded.client()).with(embedded))
    })
}

/// All targets.
pub fn all() -> [Environment; 3] {
    [embedded_in_process(), embedded_over_tcp(), Environment::reference()]
}

/// The embedded cluster with its controllers, a fresh one per test, in process and with its own time.
pub fn embedded_cluster() -> Environment {
    const NAME: &str = "embedded";
    Environment::new(NAME, || async {
        let cluster = TestCluster::start();
        Ok(Target::new(NAME, cluster.client()).with(cluster))
    })
}

/// The reference with its controllers, its scheduler, and our simulated node joined to it.
pub fn reference_cluster() -> Environment {
    Environment::reference_cluster().beside(|target| {
        let kubeconfig = target.kubeconfig().context("the reference has a kubeconfig")?.to_owned();
        Joined::start(kubeconfig)
    })
}

/// A simulated node on a thread of its own: the tests of one suite come and go with their runtimes.
struct Joined {
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Joined {
    fn start(kubeconfig: PathBuf) -> anyhow::Result<Self> {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, joined) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("simulated node".to_owned()).spawn(move || {
            let node = async {
                let config = kube::config::Kubeconfig::read_from(kubeconfig)?;
                let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await?;
                let client = kube::Client::try_from(config)?;
                let options = windlass_cluster::simulated_kubelet::Options::named("node-1");
                let clock = windlass_clock::Clock::real();
                anyhow::Ok(
                    windlass_cluster::simulated_kubelet::SimulatedKubelet::join(client, clock, options)
                        .await?,
                )
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let node = node.await;
                let is_there = node.is_ok();
                let _ = ready.send(node.as_ref().map(drop).map_err(|error| format!("{error:#}")));
                if is_there {
                    let _ = stopped.await;
                }
            });
        })?;
        let outcome = joined.recv().context("the thread of the simulated node ended")?;
        outcome.map_err(anyhow::Error::msg)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panicked: the tests that needed the node say so.
            let _ = thread.join();
        }
    }
}

/// The cluster of one test on one of the two: a fresh one, or a new namespace of the reference. Pods can be made in it.
///
/// # Errors
/// When no namespace can be made.
pub async fn whole_cluster(target: &Target) -> anyhow::Result<TestCluster> {
    let cluster = match target.extra::<TestCluster>() {
        Some(cluster) => cluster.clone(),
        None => TestCluster::connect(target.client()).await?,
    };
    // No pod is let in before there is an account for it to run under.
    cluster.eventually::<ServiceAccount>("default").exists().await?;
    Ok(cluster)
}
