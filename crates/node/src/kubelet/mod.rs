//! The kubelet: registers a Node, renews its Lease, and runs the pods that are bound to it as processes.
//!
//! A kubelet that leaves removes everything; one that is shut down kills its processes and keeps its directory; one that is
//! killed ends nothing, and the next one with its directory adopts its pods.

mod backend;
mod machine;
mod network;
mod register;
mod service_proxy;

use crate::eviction::{EvictionConfig, EvictionManager, node_pressure};
use crate::images::Catalogue;
use crate::net::{NetError, Network, Settings};
use crate::pods::node_context::NodeContext;
use crate::pods::security_context::Runner;
use crate::program::Program;
use crate::server::{self, KeyAndCertificate, ServerHandle, WebhookAuth};
use crate::shim::Shim;
use crate::volumes::provisioner::Provisioner;
use backend::KubeletBackend;
use k8s_openapi::api::core::v1::{Node, Pod, Service, Taint};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, DeleteParams};
use register::NodeOptions;
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
use windlass_component_helpers::node_lease::NodeLease;
use windlass_component_helpers::node_status;

/// How often the Lease is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// How often the node's status is reported when nothing changed, in renewals: every five minutes.
const STATUS_REPORT_EVERY: u32 = 30;
/// The node's IP: nothing of it can be reached from other machines.
const ADDRESS: &str = "127.0.0.1";

/// The options of a kubelet.
#[derive(Clone)]
pub struct Options {
    /// The node's name.
    pub name: String,
    /// The node's directory, which contains everything of it.
    pub root: PathBuf,
    /// How to run this program as shims and as the network process.
    pub program: Program,
    /// The API server's `host:port`, which pods reach at `kubernetes.default`. `None` if it listens nowhere.
    pub api: Option<String>,
    /// Labels, beside the well-known ones.
    pub labels: BTreeMap<String, String>,
    /// Taints that the node is registered with.
    pub taints: Vec<Taint>,
    /// The CA of client certificates that its server accepts, as PEM; empty to accept bearer tokens only.
    pub client_ca: String,
    /// The images of this machine.
    pub images: Catalogue,
    /// When pods are evicted.
    pub eviction: EvictionConfig,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("name", &self.name).field("root", &self.root).finish_non_exhaustive()
    }
}

/// A node could not join its cluster.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The Node could not be registered.
    #[error("node {0} cannot join the cluster")]
    Api(String, #[source] kube::Error),
    /// Its network could not be created.
    #[error("failed to set up the network of node {0}")]
    Network(String, #[source] NetError),
    /// Its server could not be started.
    #[error("failed to start the server of node {0}")]
    Serve(String, #[source] std::io::Error),
    /// Its directory could not be created.
    #[error("failed to create the directory of node {0}")]
    Directory(String, #[source] std::io::Error),
}

/// The clients of a node's parts. Each may have an identity of its own; one client is good for all of them, too.
#[derive(Clone)]
pub struct Clients {
    /// Of the kubelet: what belongs to the node, and to the pods that are bound to it.
    pub kubelet: Client,
    /// Of the Service proxy, and of the DNS server beside it: Services and EndpointSlices.
    pub proxy: Client,
    /// Of the provisioner of local volumes: PersistentVolumes, their claims and StorageClasses.
    pub provisioner: Client,
}

impl From<Client> for Clients {
    fn from(client: Client) -> Self {
        Self { kubelet: client.clone(), proxy: client.clone(), provisioner: client }
    }
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

/// A running kubelet. When it is dropped its pods keep running, and are adopted by the next kubelet with its name and directory.
pub struct Kubelet {
    name: String,
    clients: Clients,
    context: Arc<NodeContext>,
    tasks: JoinSet<()>,
    pods: Option<PodWorkers>,
    serving: Option<ServerHandle>,
}

/// The task of the pod workers, which runs as long as `running` is held.
struct PodWorkers {
    running: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Kubelet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubelet").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Kubelet {
    /// Joins a cluster: sets up the network, registers the node, starts to renew its Lease, and runs the pods that are bound to it.
    ///
    /// # Errors
    /// [`JoinError`] when the network cannot be set up, or the node cannot be registered.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn join(
        clients: impl Into<Clients>,
        clock: Clock,
        options: Options,
    ) -> Result<Self, JoinError> {
        let clients = clients.into();
        let client = clients.kubelet.clone();
        let name = options.name.clone();
        create_root(&options.root).map_err(|error| JoinError::Directory(name.clone(), error))?;
        let failed = |error| JoinError::Api(options.name.clone(), error);
        let listener = TcpListener::bind((ADDRESS, 0)).await;
        let listener = listener.map_err(|error| JoinError::Serve(name.clone(), error))?;
        let port = listener.local_addr().map_err(|error| JoinError::Serve(name.clone(), error))?.port();
        let capacity = machine::capacity(&options.root);
        let mut eviction = EvictionManager::new(options.eviction, options.root.clone());
        let pressure = eviction.observe(clock.now());
        let node = NodeOptions {
            name: name.clone(),
            address: ADDRESS.to_owned(),
            port: Some(port),
            labels: options.labels,
            taints: options.taints,
            capacity: capacity.clone(),
            pressure: node_pressure(&pressure),
        };
        let registered = register::register(&client, &clock, node).await.map_err(failed)?;
        let mut lease = NodeLease::new(&name, &registered.uid);
        lease.renew(&client, &clock).await.map_err(failed)?;
        let settings =
            Settings { pods: registered.pods, ..Settings::of_node(0, options.root.join("network")) };
        let network = Network::open(&options.program, &settings).await;
        let network = network.map_err(|error| JoinError::Network(name.clone(), error))?;
        let mut tasks = JoinSet::new();
        let cache = Cache::new("".into(), Namespaces::All);
        cache.transform(|pod: &mut Pod| pod.metadata.managed_fields = None);
        let scope = |field: &str| Scope::default().with_fields(&format!("{field}={name}"));
        let own = cache.open::<Node>(scope("metadata.name").expect("a node's name can be selected by"));
        let pods = cache.open::<Pod>(scope("spec.nodeName").expect("a node's name can be selected by"));
        let of_services = Cache::new("".into(), Namespaces::All);
        let services = of_services.open::<Service>(Scope::default());
        let slices = of_services.open::<EndpointSlice>(Scope::default());
        let (recorder, sending) = Recorder::standalone(client.clone(), clock.clone(), "kubelet");
        tasks.spawn(sending);
        let context = Arc::new(NodeContext {
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
            pressure: watch::Sender::new(pressure),
            evicted: Default::default(),
            leftovers: Default::default(),
            network_down: Default::default(),
            admitted: Default::default(),
        });
        network::end_lost_sandboxes(&context.root, &network).await;
        tasks.spawn(network::supervise(context.clone()));
        tasks.spawn(service_proxy::publish_services(network.clone(), clock.clone(), services, slices));
        if let Some(api) = options.api {
            tasks.spawn(service_proxy::serve_host(network, clock.clone(), api));
        }
        let serving = serve(listener, &context, options.client_ca);
        let serving = serving.map_err(|error| JoinError::Serve(name.clone(), error))?;
        let (running, stopped) = oneshot::channel();
        let pods = PodWorkers { running, task: tokio::spawn(crate::pods::run(context.clone(), stopped)) };
        let of_volumes = Cache::new("".into(), Namespaces::All);
        let provisioner = Provisioner::new(
            clients.provisioner.clone(),
            clock.clone(),
            context.recorder.clone(),
            &name,
            context.volumes_dir(),
            &of_volumes,
        );
        tasks.spawn(provisioner.run());
        cache.start(&client, &clock, &mut tasks);
        of_services.start(&clients.proxy, &clock, &mut tasks);
        of_volumes.start(&clients.provisioner, &clock, &mut tasks);
        tasks.spawn(eviction.run(context.clone(), own.clone()));
        tasks.spawn(heartbeat(context.clone(), own, lease, [cache, of_services, of_volumes]));
        Ok(Self { name, clients, context, tasks, pods: Some(pods), serving: Some(serving) })
    }

    /// The network of the node.
    pub fn network(&self) -> Option<&Network> {
        self.context.network.as_ref()
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Stops, kills its pods and its network, and deletes its Node: nothing of it is left on this machine.
    ///
    /// # Errors
    /// When the Node cannot be deleted.
    pub async fn leave(mut self) -> Result<(), kube::Error> {
        self.stop().await;
        crate::pods::kill_all(&self.context).await;
        crate::volumes::provisioner::remove_finalizers(
            &self.clients.provisioner,
            &self.context.volumes_dir(),
        )
        .await?;
        let nodes = Api::<Node>::all(self.clients.kubelet.clone());
        match nodes.delete(&self.name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Kubelet {
    /// Stops, and kills all its processes, as a machine that is switched off. What its pods wrote stays, and they are restarted by
    /// the next kubelet with its name and directory.
    pub async fn shut_down(mut self) {
        self.stop().await;
        kill_processes(&self.context.root).await;
    }

    async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.stop().await;
        }
        if let Some(PodWorkers { running, task }) = self.pods.take() {
            drop(running);
            let _ = task.await;
        }
        self.tasks.shutdown().await;
    }
}

/// Kills all processes of the node with this directory, whether its kubelet is running or not.
pub async fn kill_processes(root: &std::path::Path) {
    let pods = std::fs::read_dir(root.join("pods")).into_iter().flatten().flatten();
    for pod in pods {
        if let Err(error) = Shim::end_in(&pod.path()).await {
            tracing::warn!("failed to kill what is left of a pod: {error}");
        }
    }
    if let Some(network) = Network::find(&root.join("network")).await
        && let Err(error) = network.end().await
    {
        tracing::warn!("failed to stop the node's network: {error}");
    }
}

/// Whether processes of the node with this directory run, whether its kubelet does or not.
pub async fn has_processes(root: &std::path::Path) -> bool {
    let mut pods = std::fs::read_dir(root.join("pods")).into_iter().flatten().flatten();
    pods.any(|pod| Shim::is_alive(&pod.path())) || Network::find(&root.join("network")).await.is_some()
}

/// Starts the kubelet's server.
fn serve(
    listener: TcpListener,
    context: &Arc<NodeContext>,
    client_ca: String,
) -> std::io::Result<ServerHandle> {
    let identity =
        KeyAndCertificate::self_signed(&context.node, &[ADDRESS.to_owned(), "localhost".to_owned()])?;
    let auth = Arc::new(WebhookAuth::new(context.client.clone(), context.node.clone()));
    let config = server::Config { identity, client_ca, auth, clock: context.clock.clone() };
    let backend =
        KubeletBackend { context: context.clone(), since: context.clock.now(), used: Default::default() };
    server::serve(listener, config, Arc::new(backend))
}

/// Creates the node's directory. Others cannot list it: it contains Secrets.
fn create_root(root: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o711).create(root)?;
    for folder in ["pods", "logs", "network", "volumes"] {
        builder.create(root.join(folder))?;
    }
    Ok(())
}

/// Renews the Lease, and reports the node's status at long intervals, when a pressure condition changes, or when the API has another
/// one. Once its Node was deleted it reports nothing, as a kubelet.
async fn heartbeat(context: Arc<NodeContext>, node: Opened<Node>, mut lease: NodeLease, caches: [Cache; 3]) {
    // The watches end with the caches.
    let _caches = caches;
    let (client, clock) = (&context.client, &context.clock);
    let (mut pressure, mut network_down) = (context.pressure.subscribe(), context.network_down.subscribe());
    let mut renewals = 0_u32;
    let mut next = clock.moment() + RENEW_INTERVAL;
    loop {
        tokio::select! {
            () = clock.sleep(next.since(clock.moment())) => {
                next = clock.moment() + RENEW_INTERVAL;
                renewals += 1;
                if let Err(error) = lease.renew(client, clock).await {
                    tracing::debug!("failed to renew the node's Lease: {error}");
                }
            }
            _ = pressure.changed() => {}
            _ = network_down.changed() => {}
        }
        let Some(known) = node.list().pop() else { continue };
        let mut pressure = node_pressure(&pressure.borrow_and_update());
        pressure.network_down = *network_down.borrow_and_update();
        if (renewals.is_multiple_of(STATUS_REPORT_EVERY) || !node_status::is_current(&known, pressure))
            && let Err(error) = node_status::report(client, clock, &known, pressure).await
        {
            tracing::debug!("failed to report the node's status: {error}");
        }
    }
}
