//! A node that runs pods as processes of this machine, joined to the embedded cluster and to the reference.

use anyhow::Context;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use windlass_apiserver::{Config, Identity};
use windlass_clock::Clock;
use windlass_cluster::{Cluster, Settings};
use windlass_harness::{Environment, Target};
use windlass_node::Program;
use windlass_node::images::Catalogue;
use windlass_node::{EvictionConfig, Kubelet, Options};

/// What the node is called.
pub(crate) const NODE: &str = "process-1";

/// The embedded cluster with a process node, a fresh one per test.
pub(crate) fn embedded() -> Environment {
    const NAME: &str = "embedded";
    Environment::new(NAME, || async {
        let (joined, api) = tokio::task::spawn_blocking(|| Joined::start(None)).await??;
        let api = api.context("an embedded cluster has an API")?;
        Ok(Target::new(NAME, Client::new(api.service(Identity::admin()), "default")).with(joined))
    })
}

/// The reference with its controllers, its scheduler, and a process node, one for all tests.
pub(crate) fn reference() -> Environment {
    Environment::reference_cluster().beside(|target| {
        let kubeconfig = target.kubeconfig().context("the reference has a kubeconfig")?.to_owned();
        Ok(Joined::start(Some(kubeconfig))?.0)
    })
}

/// A node on a thread of its own, with the embedded cluster where it has no other: tests come and go with their runtimes.
/// Dropped, the node leaves with all it started.
pub(crate) struct Joined {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Started = Result<Option<windlass_apiserver::Api>, String>;

impl Joined {
    fn start(kubeconfig: Option<PathBuf>) -> anyhow::Result<(Self, Option<windlass_apiserver::Api>)> {
        let (stop, stopped) = oneshot::channel();
        let (ready, joined) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("process node".to_owned())
            .spawn(move || live(kubeconfig, &ready, stopped))?;
        let outcome = joined.recv().context("the thread of the process node ended")?;
        let api = outcome.map_err(anyhow::Error::msg)?;
        Ok((Self { stop: Some(stop), thread: Some(thread) }, api))
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

fn live(kubeconfig: Option<PathBuf>, ready: &mpsc::SyncSender<Started>, stopped: oneshot::Receiver<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
    else {
        return;
    };
    runtime.block_on(async {
        let world = match World::make(kubeconfig).await {
            Ok(world) => world,
            Err(error) => return drop(ready.send(Err(format!("{error:#}")))),
        };
        let api = world.cluster.as_ref().map(|(api, _)| api.clone());
        let _ = ready.send(Ok(api));
        let _ = stopped.await;
        if let Err(error) = world.end().await {
            eprintln!("the process node did not end well: {error:#}");
        }
    });
}

/// What runs on the thread.
struct World {
    cluster: Option<(windlass_apiserver::Api, Cluster)>,
    node: Kubelet,
    _folder: tempfile::TempDir,
}

impl World {
    async fn make(kubeconfig: Option<PathBuf>) -> anyhow::Result<Self> {
        let (cluster, client, client_ca, api) = match kubeconfig {
            None => {
                let api = windlass_apiserver::Api::open(Config::default()).await?;
                let settings = Settings { root_ca: Some("a certificate".to_owned()), ..Settings::default() };
                let cluster = Cluster::start(&api, settings);
                cluster.settled(&api).await?;
                let client = Client::new(api.service(Identity::admin()), "default");
                let ca = api.credentials()?.ca_certificate().to_owned();
                (Some((api, cluster)), client, ca, None)
            }
            Some(path) => {
                let config = kube::config::Kubeconfig::read_from(path)?;
                let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await?;
                let url = &config.cluster_url;
                let api = format!("{}:{}", url.host().unwrap_or_default(), url.port_u16().unwrap_or(443));
                let client = Client::try_from(config)?;
                let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
                let told = maps.get("extension-apiserver-authentication").await?;
                let ca = told.data.and_then(|mut data| data.remove("client-ca-file"));
                (None, client, ca.context("the reference says whose clients it believes")?, Some(api))
            }
        };
        let folder = tempfile::Builder::new().prefix("windlass-pods").tempdir()?;
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
        let root = folder.path().join("node");
        let options = Options {
            name: NODE.to_owned(),
            program: Program::current()?,
            api,
            labels: Default::default(),
            taints: Vec::new(),
            client_ca,
            images: Catalogue::new(
                folder.path().join("images"),
                folder.path().join("recipes.yaml"),
                root.join("images"),
            ),
            root,
            // Whatever else is on this machine's disk.
            eviction: EvictionConfig::never(),
        };
        let node = Kubelet::join(client, Clock::real(), options).await?;
        Ok(Self { cluster, node, _folder: folder })
    }

    async fn end(self) -> anyhow::Result<()> {
        self.node.leave().await?;
        if let Some((_, cluster)) = self.cluster {
            cluster.stop().await?;
        }
        Ok(())
    }
}
