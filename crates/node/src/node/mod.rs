//! The process node: an API client that registers as a Node, keeps its Lease, and runs the pods that are given to it.

mod backend;
mod machine;
mod network;
mod register;

use crate::images::Catalogue;
use crate::net::{NetError, Network, Settings};
use crate::pods::identity::Runner;
use crate::pods::site::Site;
use crate::pressure::{Eviction, Keeper as Pressure, pressures};
use crate::server::{self, ApiGuard, KeyAndCertificate, Serving};
use crate::shim::{Program, Shim};
use crate::volumes::local::Maker;
use backend::Asked;
use k8s_openapi::api::core::v1::{Node as ApiNode, Pod, Service, Taint};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, DeleteParams};
use register::Saying;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use windlass::Recorder;
use windlass::cache::{Cache, Namespaces, Opened, Scope};
use windlass_clock::Clock;
use windlass_cluster::node::heartbeat::{self, Heartbeat};

/// How often a Lease is renewed.
const BEAT: Duration = Duration::from_secs(10);
/// How often a node reports that nothing changed, in beats: every five minutes.
const REPORT_EVERY: u32 = 30;
/// The node's address, unless it is told another: nothing of it is to be reached from other machines.
const ADDRESS: &str = "127.0.0.1";

/// What a node is to be.
#[derive(Clone)]
pub struct Options {
    /// Its name.
    pub name: String,
    /// Its folder: everything of it is in there.
    pub root: PathBuf,
    /// How to run ourselves as shims and as the network.
    pub program: Program,
    /// Where the API is, as `host:port`: what pods reach at `kubernetes.default`. None where it is nowhere to be reached.
    pub api: Option<String>,
    /// Labels, besides the usual.
    pub labels: BTreeMap<String, String>,
    /// Taints from the start.
    pub taints: Vec<Taint>,
    /// The certificates of the authority whose clients may ask it for logs and the like, as PEM; empty where tokens alone are
    /// believed.
    pub client_ca: String,
    /// What images are.
    pub images: Catalogue,
    /// When the machine is short of something, and pods have to go for it.
    pub eviction: Eviction,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("name", &self.name).field("root", &self.root).finish_non_exhaustive()
    }
}

/// A node could not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The API does not take it.
    #[error("node {0} cannot join the cluster")]
    Api(String, #[source] kube::Error),
    /// Its network cannot be made.
    #[error("node {0} has no network")]
    Network(String, #[source] NetError),
    /// Nobody could ask it for logs.
    #[error("node {0} cannot serve")]
    Serve(String, #[source] std::io::Error),
    /// Its folder cannot be made.
    #[error("node {0} has no folder")]
    Folder(String, #[source] std::io::Error),
}

/// A node that has joined a cluster. Dropped, it falls silent; its pods run on, and are found again by the next of its name and
/// folder.
pub struct Node {
    name: String,
    client: Client,
    site: Arc<Site>,
    tasks: JoinSet<()>,
    pods: Option<Keeper>,
    serving: Option<Serving>,
}

/// Who looks after the pods, as long as `keep_on` is held.
struct Keeper {
    keep_on: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Node {
    /// Joins a cluster: finds or makes its network, registers, renews its Lease from now on, and runs the pods that are given
    /// to it.
    ///
    /// # Errors
    /// [`JoinError`] when the machine has no network for it, or the API does not take it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn join(client: Client, clock: Clock, options: Options) -> Result<Self, JoinError> {
        let name = options.name.clone();
        make_root(&options.root).map_err(|error| JoinError::Folder(name.clone(), error))?;
        let failed = |error| JoinError::Api(options.name.clone(), error);
        let listener = TcpListener::bind((ADDRESS, 0)).await;
        let listener = listener.map_err(|error| JoinError::Serve(name.clone(), error))?;
        let port = listener.local_addr().map_err(|error| JoinError::Serve(name.clone(), error))?.port();
        let capacity = machine::capacity(&options.root);
        let mut pressure = Pressure::new(options.eviction, options.root.clone());
        let short = pressure.look(clock.now());
        let saying = Saying {
            name: name.clone(),
            address: ADDRESS.to_owned(),
            port: Some(port),
            labels: options.labels,
            taints: options.taints,
            capacity: capacity.clone(),
            pressures: pressures(&short),
        };
        let registered = register::register(&client, &clock, &saying).await.map_err(failed)?;
        let mut heartbeat = Heartbeat::new(&name, &registered.uid);
        heartbeat.beat(&client, &clock).await.map_err(failed)?;
        let settings =
            Settings { pods: registered.pods, ..Settings::of_node(0, options.root.join("network")) };
        let network = Network::open(&options.program, &settings).await;
        let network = network.map_err(|error| JoinError::Network(name.clone(), error))?;
        let mut tasks = JoinSet::new();
        let cache = Cache::new("".into(), Namespaces::All);
        cache.transform(|pod: &mut Pod| pod.metadata.managed_fields = None);
        let scope = |field: &str| Scope::default().with_fields(&format!("{field}={name}"));
        let own = cache.open::<ApiNode>(scope("metadata.name").expect("a node's name can be selected by"));
        let pods = cache.open::<Pod>(scope("spec.nodeName").expect("a node's name can be selected by"));
        let services = cache.open::<Service>(Scope::default());
        let slices = cache.open::<EndpointSlice>(Scope::default());
        let (recorder, sending) = Recorder::standalone(client.clone(), clock.clone(), "kubelet");
        tasks.spawn(sending);
        let site = Arc::new(Site {
            client: client.clone(),
            clock: clock.clone(),
            node: name.clone(),
            host_ip: ADDRESS.to_owned(),
            allocatable: capacity,
            program: options.program,
            root: options.root,
            network: Some(network.clone()),
            images: options.images,
            recorder,
            cache: cache.clone(),
            pods,
            services: services.clone(),
            runner: Runner { user: nix::unistd::geteuid().as_raw(), group: nix::unistd::getegid().as_raw() },
            workers: Default::default(),
            short: watch::Sender::new(short),
            evicted: Default::default(),
            admitted: Default::default(),
        });
        tasks.spawn(network::publish(network.clone(), clock.clone(), services, slices));
        if let Some(api) = options.api {
            tasks.spawn(network::serve_host(network, clock.clone(), api));
        }
        let serving = serve(listener, &site, options.client_ca);
        let serving = serving.map_err(|error| JoinError::Serve(name.clone(), error))?;
        let (keep_on, until) = oneshot::channel();
        let pods = Keeper { keep_on, task: tokio::spawn(crate::pods::keep(site.clone(), until)) };
        let maker =
            Maker::new(client.clone(), clock.clone(), site.recorder.clone(), &name, site.volumes(), &cache);
        tasks.spawn(maker.run());
        cache.start(&client, &clock, &mut tasks);
        tasks.spawn(pressure.keep(site.clone(), own.clone()));
        tasks.spawn(keep_alive(site.clone(), own, heartbeat, cache));
        Ok(Self { name, client, site, tasks, pods: Some(pods), serving: Some(serving) })
    }

    /// The network of its pods.
    pub fn network(&self) -> Option<&Network> {
        self.site.network.as_ref()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends its work, its pods and its network, and takes its Node away: nothing of it is left on this machine.
    ///
    /// # Errors
    /// When the API does not let its Node go.
    pub async fn leave(mut self) -> Result<(), kube::Error> {
        self.fall_silent().await;
        crate::pods::end_all(&self.site).await;
        crate::volumes::local::let_go(&self.client, &self.site.volumes()).await?;
        let nodes = Api::<ApiNode>::all(self.client.clone());
        match nodes.delete(&self.name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Node {
    /// Ends its work and all its processes, as a machine that is switched off. What its pods wrote stays, and those that are to
    /// run again do so with the next node of its name and folder.
    pub async fn switch_off(mut self) {
        self.fall_silent().await;
        end_processes(&self.site.root).await;
    }

    async fn fall_silent(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.stop().await;
        }
        if let Some(Keeper { keep_on, task }) = self.pods.take() {
            drop(keep_on);
            let _ = task.await;
        }
        self.tasks.shutdown().await;
    }
}

/// Ends all processes of the node that had this folder, whatever became of the node itself.
pub async fn end_processes(root: &std::path::Path) {
    let pods = std::fs::read_dir(root.join("pods")).into_iter().flatten().flatten();
    for pod in pods {
        if let Err(error) = Shim::end_in(&pod.path()).await {
            tracing::warn!("what is left of a pod does not end: {error}");
        }
    }
    if let Some(network) = Network::find(&root.join("network")).await
        && let Err(error) = network.end().await
    {
        tracing::warn!("the node's network does not end: {error}");
    }
}

/// Serves whoever may ask about the node's pods.
fn serve(listener: TcpListener, site: &Arc<Site>, client_ca: String) -> std::io::Result<Serving> {
    let identity = KeyAndCertificate::self_signed(&site.node, &[ADDRESS.to_owned(), "localhost".to_owned()])?;
    let guard = Arc::new(ApiGuard::new(site.client.clone(), site.node.clone()));
    let config = server::Config { identity, client_ca, guard, clock: site.clock.clone() };
    let asked = Asked { site: site.clone(), since: site.clock.now(), used: Default::default() };
    server::serve(listener, config, Arc::new(asked))
}

/// The node's folder, which is nobody else's: Secrets are in it.
fn make_root(root: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o711).create(root)?;
    for folder in ["pods", "logs", "network", "volumes"] {
        builder.create(root.join(folder))?;
    }
    Ok(())
}

/// Renews the Lease and, seldom or when somebody says otherwise, reports how the node fares. Once its Node was deleted it says
/// no more, as a kubelet.
async fn keep_alive(site: Arc<Site>, node: Opened<ApiNode>, mut heartbeat: Heartbeat, cache: Cache) {
    // The watches end with the cache.
    let _cache = cache;
    let (client, clock) = (&site.client, &site.clock);
    let mut short = site.short.subscribe();
    let mut beats = 0_u32;
    let mut next = clock.moment() + BEAT;
    loop {
        tokio::select! {
            () = clock.sleep(next.since(clock.moment())) => {
                next = clock.moment() + BEAT;
                beats += 1;
                if let Err(error) = heartbeat.beat(client, clock).await {
                    tracing::debug!("the lease of a node was not renewed: {error}");
                }
            }
            // What the machine is short of is told at once.
            _ = short.changed() => {}
        }
        let Some(known) = node.list().pop() else { continue };
        let pressures = pressures(&short.borrow_and_update());
        if (beats.is_multiple_of(REPORT_EVERY) || !heartbeat::is_as_said(&known, pressures))
            && let Err(error) = heartbeat::report(client, clock, &known, pressures).await
        {
            tracing::debug!("a node could not report: {error}");
        }
    }
}
