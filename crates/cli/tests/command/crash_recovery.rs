//! The command killed at random moments of a rollout: it recovers from its data folder, with no surplus and no orphaned pod.

use crate::process::{Cluster, windlass};
use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Api, Client, ResourceExt};
use nix::sys::signal::Signal;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;
use windlass_clock::Clock;

const PODS: usize = 60;
/// The quarter of them that a rollout may have on top.
const SURGE: usize = 15;
const ROLLOUTS: usize = 2;
const KILLS_IN_EACH: usize = 3;
const PATIENCE: Duration = Duration::from_secs(120);

/// A cluster that is killed and comes back.
struct Mortal {
    data: PathBuf,
    running: Option<Cluster>,
    client: Client,
}

impl Mortal {
    async fn start(data: PathBuf) -> Self {
        let running = up(&data);
        Self { client: client(&data).await, running: Some(running), data }
    }

    async fn dies_and_comes_back(&mut self) {
        self.running.take().unwrap().end(Signal::SIGKILL);
        self.running = Some(up(&self.data));
        self.client = client(&self.data).await;
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::default_namespaced(self.client.clone())
    }

    async fn pods(&self) -> Vec<Pod> {
        self.api::<Pod>().list(&ListParams::default()).await.unwrap().items
    }

    /// Lets so many things happen to pods; fewer if nothing happens for a while.
    async fn lets_happen(&self, count: usize) {
        let from = self.api::<Pod>().list(&ListParams::default().limit(1)).await.unwrap();
        let from = from.metadata.resource_version.unwrap();
        let watch = self.api::<Pod>().watch(&WatchParams::default().timeout(30), &from).await.unwrap();
        let mut watch = pin!(watch);
        for _ in 0..count {
            match Clock::real().timeout(Duration::from_secs(2), watch.try_next()).await {
                Ok(Ok(Some(_))) => {}
                _ => return,
            }
        }
    }

    /// Waits until all pods are ready and of this image, and nothing else is there.
    async fn converges(&self, image: &str) {
        let deadline = Clock::real().moment() + PATIENCE;
        loop {
            let deployment = self.api::<Deployment>().get("web").await.unwrap();
            let status = deployment.status.unwrap_or_default();
            let all = Some(i32::try_from(PODS).unwrap());
            let counts = [status.replicas, status.updated_replicas, status.ready_replicas];
            let settled = status.observed_generation == deployment.metadata.generation
                && counts.iter().all(|count| *count == all)
                && self.pods().await.len() == PODS;
            if settled {
                break;
            }
            assert!(Clock::real().moment() < deadline, "{image} is not rolled out: {counts:?}");
            Clock::real().sleep(Duration::from_millis(50)).await;
        }
        let pods = self.pods().await;
        let image_of = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone();
        assert!(pods.iter().all(|pod| image_of(pod).as_deref() == Some(image)));
    }

    /// Whoever is owned has its owner.
    async fn has_no_orphans(&self) {
        let deployment = self.api::<Deployment>().get("web").await.unwrap();
        let sets = self.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap().items;
        let owner = |references: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference]| {
            references.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone())
        };
        for set in &sets {
            assert_eq!(owner(set.owner_references()), deployment.uid(), "the owner of {}", set.name_any());
        }
        let by_uid: BTreeMap<_, _> = sets.iter().map(|set| (set.uid().unwrap(), set)).collect();
        let mut names = BTreeSet::new();
        for pod in self.pods().await {
            let owner = owner(pod.owner_references()).unwrap();
            assert!(by_uid.contains_key(&owner), "the owner of {} is gone", pod.name_any());
            assert!(names.insert(pod.name_any()));
        }
    }
}

fn up(data: &std::path::Path) -> Cluster {
    let mut command = windlass(&["cluster", "up", "--data-dir", data.to_str().unwrap()]);
    command.env("XDG_RUNTIME_DIR", data.parent().unwrap());
    Cluster::of(command)
}

async fn client(data: &std::path::Path) -> Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(data.join("kubeconfig")).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Numbers by chance, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound).unwrap()
    }
}

fn revision(object: &impl kube::Resource) -> Option<String> {
    object.annotations().get("deployment.kubernetes.io/revision").cloned()
}

#[tokio::test]
async fn a_rollout_goes_on_after_every_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Mortal::start(folder.path().join("data")).await;
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": PODS,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{ "name": "web", "image": "web:1" }],
                },
            },
        },
    });
    let web: Deployment = serde_json::from_value(web).unwrap();
    cluster.api::<Deployment>().create(&PostParams::default(), &web).await.unwrap();
    let mut chance = Chance(36);
    for rollout in 1..=ROLLOUTS + 1 {
        let image = format!("web:{rollout}");
        let containers = json!([{ "name": "web", "image": image }]);
        let change = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        let patched = cluster.api::<Deployment>();
        patched.patch("web", &PatchParams::default(), &Patch::Strategic(change)).await.unwrap();
        for _ in 0..KILLS_IN_EACH {
            cluster.lets_happen(chance.below(150)).await;
            cluster.dies_and_comes_back().await;
            let staying = cluster.pods().await;
            let staying = staying.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count();
            assert!(staying <= PODS + SURGE, "{staying} pods");
        }
        cluster.converges(&image).await;
        cluster.has_no_orphans().await;
        let deployment = cluster.api::<Deployment>().get("web").await.unwrap();
        assert_eq!(revision(&deployment), Some(rollout.to_string()));
        let sets = cluster.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap();
        assert_eq!(sets.items.len(), rollout, "a set per template");
        let newest = sets.iter().find(|set| revision(*set) == Some(rollout.to_string())).unwrap();
        assert_eq!(newest.status.as_ref().unwrap().replicas, i32::try_from(PODS).unwrap());
    }
    cluster.api::<Deployment>().delete("web", &Default::default()).await.unwrap();
    cluster.dies_and_comes_back().await;
    let deadline = Clock::real().moment() + PATIENCE;
    while !cluster.pods().await.is_empty() {
        assert!(Clock::real().moment() < deadline, "pods outlive their owner");
        Clock::real().sleep(Duration::from_millis(50)).await;
    }
    assert!(cluster.running.take().unwrap().end(Signal::SIGTERM).success());
}

/// The newest segment of the log of a cluster that is stopped.
fn last_segment(data: &std::path::Path) -> PathBuf {
    let files = std::fs::read_dir(data.join("store")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "log")).max().unwrap()
}

#[tokio::test]
async fn a_log_whose_end_is_missing_is_refused_until_the_loss_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let cluster = up(&data);
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&data).await);
    let map = |name: &str| ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..Default::default() },
        ..Default::default()
    };
    maps.create(&PostParams::default(), &map("kept")).await.unwrap();
    let last = maps.create(&PostParams::default(), &map("acknowledged")).await.unwrap();
    cluster.end(Signal::SIGKILL);
    std::fs::remove_file(last_segment(&data)).unwrap();

    let arguments = ["cluster", "up", "--data-dir", data.to_str().unwrap()];
    let refused = windlass(&arguments).env("XDG_RUNTIME_DIR", folder.path()).output().unwrap();
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && why.contains("changes are missing"), "{why}");

    let mut command = windlass(&arguments);
    command.arg("--accept-data-loss").env("XDG_RUNTIME_DIR", folder.path());
    let cluster = Cluster::of(command);
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&data).await);
    assert!(maps.get_opt("acknowledged").await.unwrap().is_none());
    let version = |map: ConfigMap| map.resource_version().unwrap().parse::<u64>().unwrap();
    let next = maps.create(&PostParams::default(), &map("next")).await.unwrap();
    assert!(version(next) > version(last), "no version is given twice");
    cluster.end(Signal::SIGKILL);
    let again = up(&data);
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&data).await);
    assert!(maps.get_opt("next").await.unwrap().is_some());
    drop(again);
}
