//! The simulated kubelet: it registers a Node, renews its Lease, and reports the status of the pods bound to it, but runs no
//! containers. How a pod behaves is defined by its annotations, or by the kubelet's [`Stage`]s.
//!
//! By default a container starts at once, is ready at once, and runs until it is terminated, when it exits at once with code
//! 143; init containers exit at once with code 0; and a container of a Job's pod exits with code 0 after a second.
//!
//! | annotation | value |
//! |---|---|
//! | `simulate.windlass.dev/start-after` | delay from when the kubelet sees the pod until its containers start |
//! | `simulate.windlass.dev/ready-after` | delay from a container's start until it is ready |
//! | `simulate.windlass.dev/exit-after` | delay from a container's start until it exits |
//! | `simulate.windlass.dev/exit-code` | its exit code; alone, the container exits after a second |
//! | `simulate.windlass.dev/stop-after` | delay from the termination signal until the container exits; after the grace period it is killed (137) |
//! | `simulate.windlass.dev/fail-image` | `"true"`: the image cannot be pulled (ErrImagePull, then ImagePullBackOff) |
//!
//! Delays are written as `500ms`, `2s` or `1m30s`, or `never`. Timestamps in a status have whole seconds, and so have delays that
//! count from one. With `.CONTAINER` appended, an annotation applies to that container alone; init containers are only addressed
//! that way. Probes are not run and count as passed.
//!
//! All state is in the pods' status: a kubelet that restarts under the same name resumes where it was.
//! Nodes have IPs in 10.127.0.0/16 and pods in 10.128.0.0/9; nothing can be reached there.
//!
//! | file | what |
//! |---|---|
//! | `register` | the Node that it registers |
//! | `informers` | the watches that all simulated kubelets of a process share |
//! | `pod_workers` | the queue and workers: sync a pod, patch its status |
//! | `sync_pod`, `sync_container` | pure: what becomes of a pod, and of one container, by now |
//! | `behavior`, `stages` | how pods behave, from annotations and stages |
//! | `addresses` | pod CIDRs and pod IPs |

mod addresses;
mod behavior;
mod informers;
mod options;
mod pod_workers;
mod register;
mod stages;
mod sync_container;
mod sync_pod;

pub use informers::SharedInformers;
pub use options::Options;
pub use stages::{Stage, StageError};

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams};
use pod_workers::PodWorkers;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::Recorder;
use windlass::cache::{Cache, Namespaces, Scope};
use windlass_clock::Clock;
use windlass_component_helpers::node_lease::NodeLease;
use windlass_component_helpers::node_status::{self, NodePressure};

/// How often the Lease is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// The interval when a test drives the clock. A Lease is valid that long, and a node counts as alive for longer; so a simulated
/// day does not stop thousands of times for nothing.
const SLOWEST_RENEW_INTERVAL: Duration = Duration::from_secs(40);
/// How often the node's status is reported when nothing changed.
const STATUS_REPORT_INTERVAL: Duration = Duration::from_secs(300);

/// A simulated kubelet whose node has joined a cluster. When dropped it stops without a word, as a machine that loses its
/// power.
pub struct SimulatedKubelet {
    name: String,
    client: Client,
    workers: Arc<PodWorkers>,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for SimulatedKubelet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedKubelet").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A simulated node could not join its cluster.
#[derive(Debug, thiserror::Error)]
#[error("node {name} cannot join the cluster")]
pub struct JoinError {
    name: String,
    #[source]
    source: kube::Error,
}

impl SimulatedKubelet {
    /// Joins a cluster: registers the node, starts to renew its Lease, and syncs the pods that are bound to it.
    ///
    /// # Errors
    /// [`JoinError`] when the node cannot be registered.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn join(client: Client, clock: Clock, options: Options) -> Result<Self, JoinError> {
        let scope = |field: &str| Scope::default().with_fields(&format!("{field}={}", options.name));
        let own = scope("metadata.name").expect("a node's name can be selected by");
        let bound = scope("spec.nodeName").expect("a node's name can be selected by");
        let cache = Cache::new("".into(), Namespaces::All);
        cache.transform(crate::pods::strip_unused_fields);
        let informers = SharedInformers::scoped(&cache, own, bound);
        let mut kubelet = Self::join_shared(&informers, client.clone(), clock.clone(), options).await?;
        cache.start(&client, &clock, &mut kubelet.tasks);
        Ok(kubelet)
    }

    /// As [`SimulatedKubelet::join`], with informers that it shares with others. Whoever starts their cache starts the watches.
    ///
    /// # Errors
    /// [`JoinError`] when the node cannot be registered.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn join_shared(
        informers: &SharedInformers,
        client: Client,
        clock: Clock,
        options: Options,
    ) -> Result<Self, JoinError> {
        let failed = |source| JoinError { name: options.name.clone(), source };
        let registered = register::register(&client, &clock, &options, informers).await.map_err(failed)?;
        let mut lease = NodeLease::new(&options.name, &registered.uid);
        lease.renew(&client, &clock).await.map_err(failed)?;
        let mut tasks = JoinSet::new();
        let (recorder, sending) = Recorder::standalone(client.clone(), clock.clone(), "kubelet");
        tasks.spawn(sending);
        let (pods, range) = (informers.pods().clone(), registered.range);
        let workers = PodWorkers::new(client.clone(), clock.clone(), pods, range, &options, recorder);
        informers.add_kubelet(&options.name, &workers);
        PodWorkers::start(&workers, &mut tasks);
        tasks.spawn(heartbeat(client.clone(), clock, informers.clone(), options.name.clone(), lease));
        Ok(Self { name: options.name, client, workers, tasks })
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Stops, and deletes its Node, so that nothing waits for it; its pods are then garbage collected.
    ///
    /// # Errors
    /// When the Node cannot be deleted.
    pub async fn leave(mut self) -> Result<(), kube::Error> {
        self.workers.stop();
        self.tasks.shutdown().await;
        let nodes = Api::<Node>::all(self.client.clone());
        match nodes.delete(&self.name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Renews the Lease, and reports the node's status at long intervals or when the API has another one. Once its Node was deleted
/// it reports nothing, as a kubelet.
async fn heartbeat(
    client: Client,
    clock: Clock,
    informers: SharedInformers,
    name: String,
    mut lease: NodeLease,
) {
    let mut reported = clock.moment();
    loop {
        clock.sleep_between(RENEW_INTERVAL, SLOWEST_RENEW_INTERVAL).await;
        if let Err(error) = lease.renew(&client, &clock).await {
            tracing::debug!(node = name, "failed to renew the Lease of a simulated node: {error}");
        }
        let Some(node) = informers.node(&name) else { continue };
        let now = clock.moment();
        let pressure = NodePressure::default();
        if now - reported < STATUS_REPORT_INTERVAL && node_status::is_current(&node, pressure) {
            continue;
        }
        match node_status::report(&client, &clock, &node, pressure).await {
            Ok(()) => reported = now,
            Err(error) => {
                tracing::debug!(node = name, "failed to report the status of a simulated node: {error}")
            }
        }
    }
}
