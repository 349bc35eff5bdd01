//! The simulated node: an API client that registers as a Node, keeps its Lease, and reports the pods that are given to it as a
//! kubelet does. Nothing runs: a pod's life is what its annotations, or the node's [`Stage`]s, say it is.
//!
//! Without any, a container starts at once, is ready at once, and runs until it is asked to stop, which it then does at once
//! (exit code 143); containers that initialize end well at once; and a container of a Job's pod ends well after a second.
//!
//! | annotation | what it says |
//! |---|---|
//! | `simulate.windlass.dev/start-after` | from when the node sees the pod until its containers start |
//! | `simulate.windlass.dev/ready-after` | from a container's start until it is ready |
//! | `simulate.windlass.dev/exit-after` | from a container's start until it exits |
//! | `simulate.windlass.dev/exit-code` | with which code; said alone, it exits after a second |
//! | `simulate.windlass.dev/stop-after` | from when containers are asked to stop until they do; after the pod's grace they are killed (137) |
//! | `simulate.windlass.dev/fail-image` | `"true"`: the image cannot be had (ErrImagePull, then ImagePullBackOff) |
//!
//! Times are as `500ms`, `2s` or `1m30s`, or `never`; what is reported has whole seconds, and so have delays that count from
//! it. With `.CONTAINER` after it, an annotation is about that container alone; about one that initializes, it has to be.
//! Probes are not made: they would pass.
//!
//! What is remembered is in the pods' own status: a node that starts again under its name goes on where it was.
//! Nodes have addresses in 10.127.0.0/16 and pods in 10.128.0.0/9, which nobody reaches.

mod addresses;
pub mod conditions;
mod containers;
mod decide;
pub mod heartbeat;
mod options;
mod rack;
mod register;
mod script;
mod stages;
mod work;

pub use options::Options;
pub use rack::Rack;
pub use stages::{Stage, StageError};

use heartbeat::{Heartbeat, Pressures};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::Recorder;
use windlass::cache::{Cache, Namespaces, Scope};
use windlass_clock::Clock;
use work::Kubelet;

/// How often a Lease is renewed.
const BEAT: Duration = Duration::from_secs(10);
/// Where a test drives the time, as seldom as this: a Lease holds that long, and a node is believed to be alive for longer. So
/// a day does not stop thousands of times for nothing.
const SLOWEST_BEAT: Duration = Duration::from_secs(40);
/// How often a node reports that nothing changed.
const REPORT_EVERY: Duration = Duration::from_secs(300);

/// A simulated node that has joined a cluster. Dropped, it falls silent, as a machine does that loses its power.
pub struct Simulated {
    name: String,
    client: Client,
    kubelet: Arc<Kubelet>,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulated").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Whether a node says that pods can run on it.
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// A node could not join.
#[derive(Debug, thiserror::Error)]
#[error("node {name} cannot join the cluster")]
pub struct JoinError {
    name: String,
    #[source]
    source: kube::Error,
}

impl Simulated {
    /// Joins a cluster: registers, renews its Lease from now on, and works on the pods that are given to it.
    ///
    /// # Errors
    /// [`JoinError`] when the API does not take it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn join(client: Client, clock: Clock, options: Options) -> Result<Self, JoinError> {
        let scope = |field: &str| Scope::default().with_fields(&format!("{field}={}", options.name));
        let own = scope("metadata.name").expect("a node's name can be selected by");
        let given = scope("spec.nodeName").expect("a node's name can be selected by");
        let cache = Cache::new("".into(), Namespaces::All);
        cache.transform(crate::pods::lighten);
        let rack = Rack::of(&cache, own, given);
        let mut node = Self::join_in(&rack, client.clone(), clock.clone(), options).await?;
        cache.start(&client, &clock, &mut node.tasks);
        Ok(node)
    }

    /// As [`Simulated::join`], in a rack with others: what they share is watched by whoever starts the rack's cache.
    ///
    /// # Errors
    /// [`JoinError`] when the API does not take it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn join_in(
        rack: &Rack,
        client: Client,
        clock: Clock,
        options: Options,
    ) -> Result<Self, JoinError> {
        let failed = |source| JoinError { name: options.name.clone(), source };
        let registered = register::register(&client, &clock, &options, rack).await.map_err(failed)?;
        let mut heartbeat = Heartbeat::new(&options.name, &registered.uid);
        heartbeat.beat(&client, &clock).await.map_err(failed)?;
        let mut tasks = JoinSet::new();
        let (recorder, sending) = Recorder::standalone(client.clone(), clock.clone(), "kubelet");
        tasks.spawn(sending);
        let (pods, range) = (rack.pods().clone(), registered.range);
        let kubelet = Kubelet::new(client.clone(), clock.clone(), pods, range, &options, recorder);
        rack.enter(&options.name, &kubelet);
        Kubelet::start(&kubelet, &mut tasks);
        tasks.spawn(keep_alive(client.clone(), clock, rack.clone(), options.name.clone(), heartbeat));
        Ok(Self { name: options.name, client, kubelet, tasks })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends its work and takes its Node away, so that nobody waits for it; its pods are then collected.
    ///
    /// # Errors
    /// When the API does not let its Node go.
    pub async fn leave(mut self) -> Result<(), kube::Error> {
        self.kubelet.stop();
        self.tasks.shutdown().await;
        let nodes = Api::<Node>::all(self.client.clone());
        match nodes.delete(&self.name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Renews the Lease and, seldom or when somebody says otherwise, reports how the node fares. Once its Node was deleted it says
/// no more, as a kubelet.
async fn keep_alive(client: Client, clock: Clock, rack: Rack, name: String, mut heartbeat: Heartbeat) {
    let mut reported = clock.moment();
    loop {
        clock.sleep_between(BEAT, SLOWEST_BEAT).await;
        if let Err(error) = heartbeat.beat(&client, &clock).await {
            tracing::debug!("the lease of a simulated node was not renewed: {error}");
        }
        let Some(known) = rack.node(&name) else { continue };
        let now = clock.moment();
        if now - reported < REPORT_EVERY && heartbeat::is_as_said(&known, Pressures::default()) {
            continue;
        }
        match heartbeat::report(&client, &clock, &known, Pressures::default()).await {
            Ok(()) => reported = now,
            Err(error) => tracing::debug!("a simulated node could not report: {error}"),
        }
    }
}
