//! A running cluster: the controllers, the scheduler and the simulated nodes on an embedded API.

use crate::simulated_kubelet::{Options, SharedInformers, SimulatedKubelet};
use crate::{Settings, controllers, identities, scheduler};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::{Api as KubeApi, Client};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use windlass::Manager;
use windlass::cache::{Cache, Namespaces};
use windlass_apiserver::Api;
use windlass_clock::Clock;
use windlass_component_helpers::node_status::is_ready;

/// The wait before a node that could not join tries again.
const JOIN_AGAIN: Duration = Duration::from_secs(1);

/// How long a cluster may take to get ready: only one that cannot takes it.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// The controllers, the scheduler and the simulated nodes of a cluster, running on an embedded API. Dropping it aborts them.
pub struct Cluster {
    nodes: usize,
    stop: Arc<Notify>,
    /// The scheduler and the nodes: they can be aborted at any time.
    others: Mutex<JoinSet<()>>,
    task: Mutex<Option<JoinHandle<windlass::Result<()>>>>,
}

impl Cluster {
    /// Starts them. The API serves `metrics.k8s.io` from then on, so that `kubectl top` works.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(api: &Api, mut settings: Settings) -> Self {
        settings.issuer.get_or_insert_with(|| api.clone());
        api.serve_metrics();
        let stop = Arc::new(Notify::new());
        let clock = api.clock();
        // One cache for all of them: a pod is watched, decoded and stored once.
        let cache = Cache::new("local".into(), Namespaces::All);
        let granted = granted(api.clone()).boxed().shared();
        let mut others = JoinSet::new();
        // Also without simulated nodes: others may join.
        others.spawn(scheduler::on(&cache, identities::scheduler(api), clock.clone()));
        let informers = SharedInformers::new(&cache);
        for number in 1..=settings.simulated_nodes {
            let name = format!("node-{number}");
            let (client, granted) = (identities::kubelet(api, &name), granted.clone());
            let kubelet = run_kubelet(informers.clone(), client, clock.clone(), Options::named(name));
            others.spawn(async move {
                granted.await;
                kubelet.await;
            });
        }
        let client = identities::controller_manager(api);
        let task = if settings.without_controllers {
            cache.transform(crate::pods::strip_unused_fields);
            cache.start(&client, clock, &mut others);
            None
        } else {
            let manager = Manager::new(client, clock.clone()).clients(identities::controllers(api));
            let manager = controllers(manager.sharing(cache), &settings);
            let stopped = stop.clone();
            Some(tokio::spawn(async move {
                granted.await;
                let ended = manager.run_until(async move { stopped.notified().await }).await;
                if let Err(error) = &ended {
                    tracing::error!("the controllers of the cluster ended: {error}");
                }
                ended
            }))
        };
        Self { nodes: settings.simulated_nodes, stop, others: Mutex::new(others), task: Mutex::new(task) }
    }

    /// Waits until pods can be created and can run: the default ServiceAccount exists, and every node is ready.
    ///
    /// # Errors
    /// [`SettleError`] when the API refuses or it took too long.
    pub async fn settled(&self, api: &Api) -> Result<(), SettleError> {
        let client = identities::controller_manager(api);
        let wall = Clock::real();
        let deadline = wall.moment() + SETTLED_WITHIN;
        let accounts: KubeApi<ServiceAccount> = KubeApi::default_namespaced(client.clone());
        let nodes: KubeApi<Node> = KubeApi::all(client);
        loop {
            let ready =
                nodes.list(&Default::default()).await?.items.iter().filter(|node| is_ready(node)).count();
            if ready >= self.nodes && accounts.get_opt("default").await?.is_some() {
                return Ok(());
            }
            if wall.moment() > deadline {
                return Err(SettleError::Late { ready, nodes: self.nodes });
            }
            wall.sleep(Duration::from_millis(1)).await;
        }
    }

    /// Stops them gracefully, and waits until nothing runs any more.
    ///
    /// # Errors
    /// The error that they ended with.
    pub async fn stop(&self) -> windlass::Result<()> {
        let mut others = std::mem::take(&mut *self.others.lock());
        others.shutdown().await;
        self.stop.notify_one();
        let task = self.task.lock().take();
        match task {
            Some(task) => task.await.unwrap_or(Ok(())),
            None => Ok(()),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// A cluster did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// The API refused.
    #[error("cannot read nodes and ServiceAccounts")]
    Api(#[from] kube::Error),
    /// It took too long.
    #[error(
        "{ready} of {nodes} nodes are ready, or the default ServiceAccount is missing, after {SETTLED_WITHIN:?}"
    )]
    Late {
        /// The number of ready nodes.
        ready: usize,
        /// The number of nodes.
        nodes: usize,
    },
}

/// Runs a simulated kubelet, and retries until its node has joined.
async fn run_kubelet(informers: SharedInformers, client: Client, clock: Clock, options: Options) {
    loop {
        match SimulatedKubelet::join_shared(&informers, client.clone(), clock.clone(), options.clone()).await
        {
            Ok(_kubelet) => std::future::pending().await,
            Err(error) => tracing::warn!("{error}"),
        }
        clock.sleep(JOIN_AGAIN).await;
    }
}

/// Lets the parts do what they have to; without it, some of them are refused what they do, and say so.
async fn granted(api: Api) {
    if let Err(error) = api.bootstrap(&identities::GRANTS).await {
        tracing::warn!("the roles of the cluster's own parts cannot be stored: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::{is_ready as is_ready_pod, node_of};
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::PostParams;
    use serde_json::json;
    use std::collections::HashSet;
    use windlass_apiserver::{Config, Identity};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nodes_that_share_a_cache_have_each_their_own_pods_and_addresses() -> anyhow::Result<()> {
        const PODS: usize = 40;
        let api = Api::new(Config::default());
        let cluster = Cluster::start(&api, Settings { simulated_nodes: 4, ..Settings::default() });
        cluster.settled(&api).await?;
        let client = Client::new(api.service(Identity::admin()), "default");
        let labels = json!({ "app": "web" });
        let wanted: Deployment = serde_json::from_value(json!({
            "metadata": { "name": "web" },
            "spec": { "replicas": PODS, "selector": { "matchLabels": labels }, "template": {
                "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
            } },
        }))?;
        let deployments: KubeApi<Deployment> = KubeApi::default_namespaced(client.clone());
        deployments.create(&PostParams::default(), &wanted).await?;
        let wall = Clock::real();
        let deadline = wall.moment() + SETTLED_WITHIN;
        let pods: KubeApi<Pod> = KubeApi::default_namespaced(client.clone());
        let ready = loop {
            let all = pods.list(&Default::default()).await?.items;
            let ready: Vec<Pod> = all.into_iter().filter(is_ready_pod).collect();
            if ready.len() == PODS {
                break ready;
            }
            anyhow::ensure!(wall.moment() < deadline, "{} of {PODS} pods are ready", ready.len());
            wall.sleep(Duration::from_millis(5)).await;
        };
        let nodes: HashSet<&str> = ready.iter().filter_map(node_of).collect();
        assert_eq!(nodes.len(), 4, "they are spread");
        let addresses: HashSet<&str> =
            ready.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.as_deref()).collect();
        assert_eq!(addresses.len(), PODS, "no two have the same");
        let ranges = KubeApi::<Node>::all(client).list(&Default::default()).await?;
        let ranges: HashSet<_> = ranges.into_iter().filter_map(|node| node.spec?.pod_cidr).collect();
        assert_eq!(ranges.len(), 4);
        Ok(cluster.stop().await?)
    }
}
