//! A cluster with one process node, and what tests ask of it.

use anyhow::{Context, bail};
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use windlass_apiserver::{Config, Identity};
use windlass_clock::Clock;
use windlass_cluster::{Cluster, Settings};
use windlass_node::Program;
use windlass_node::images::{Catalogue, ImageError};
use windlass_node::shim::{Exec, Shim};
use windlass_node::{EvictionConfig, Kubelet, Options};

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) type Test = fn(&Fixture) -> LocalBoxFuture<'_, anyhow::Result<()>>;

/// What a test wants, made when it runs.
pub(crate) type Wanted = fn() -> Wants;

/// What a test wants of its node.
#[derive(Clone)]
pub(crate) struct Wants {
    /// When pods have to go.
    pub(crate) eviction: EvictionConfig,
    /// A disk of its own of so many MiB, which only root can make.
    pub(crate) disk: Option<u32>,
    /// The API at a port of this machine, as pods reach it.
    pub(crate) served: bool,
}

impl Default for Wants {
    /// Whatever else is on this machine's disk and in its memory.
    fn default() -> Self {
        Self { eviction: EvictionConfig::never(), disk: None, served: false }
    }
}

/// A cluster with one process node.
pub(crate) struct Fixture {
    pub(crate) client: Client,
    api: windlass_apiserver::Api,
    cluster: Cluster,
    node: parking_lot::Mutex<Option<Kubelet>>,
    folder: tempfile::TempDir,
    wants: Wants,
    serving: Option<windlass_apiserver::Serving>,
}

impl Fixture {
    pub(crate) async fn start(wants: Wants) -> anyhow::Result<Self> {
        let api = windlass_apiserver::Api::open(Config::default()).await?;
        let client = Client::new(api.service(Identity::privileged("test")), "default");
        let (serving, root_ca) = match wants.served {
            false => (None, "a certificate".to_owned()),
            true => {
                let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
                (Some(api.serve_tls(listener)?), api.credentials()?.ca_certificate().to_owned())
            }
        };
        let settings = Settings { root_ca: Some(root_ca), ..Settings::default() };
        let cluster = Cluster::start(&api, settings);
        cluster.settled(&api).await?;
        let folder = tempfile::Builder::new().prefix("windlass-node").tempdir()?;
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let fixture =
            Self { client, api, cluster, node: parking_lot::Mutex::new(None), folder, wants, serving };
        if let Some(size) = fixture.wants.disk {
            std::fs::create_dir(fixture.root())?;
            let options = format!("mode=711,size={size}m");
            let none = nix::mount::MsFlags::empty();
            nix::mount::mount(Some("tmpfs"), &fixture.root(), Some("tmpfs"), none, Some(options.as_str()))?;
        }
        fixture.join().await?;
        Ok(fixture)
    }

    /// The node's folder.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("node")
    }

    /// The user's own recipes.
    pub(crate) fn recipes(&self) -> PathBuf {
        self.folder.path().join("recipes.yaml")
    }

    fn catalogue(&self) -> Catalogue {
        Catalogue::new(self.folder.path().join("images"), self.recipes(), self.root().join("images"))
    }

    /// Whether an image's program is not installed here: then its test says so, and is skipped.
    pub(crate) fn lacks(&self, image: &str) -> bool {
        let found = self.catalogue().resolve(image);
        let lacking = matches!(found, Err(ImageError::Program { .. }));
        if let (true, Err(why)) = (lacking, found) {
            eprintln!("skipped: {why}");
        }
        lacking
    }

    pub(crate) async fn join(&self) -> anyhow::Result<()> {
        let options = Options {
            name: "process-1".to_owned(),
            root: self.root(),
            program: Program::current()?,
            api: self.serving.as_ref().map(|serving| serving.address().to_string()),
            labels: Default::default(),
            taints: Vec::new(),
            client_ca: self.api.credentials()?.ca_certificate().to_owned(),
            images: self.catalogue(),
            eviction: self.wants.eviction.clone(),
        };
        let node = Kubelet::join(self.client.clone(), Clock::real(), options).await?;
        *self.node.lock() = Some(node);
        Ok(())
    }

    /// The node's network process.
    pub(crate) fn network_pid(&self) -> Option<i32> {
        self.node.lock().as_ref()?.network().map(windlass_node::net::Network::pid)
    }

    /// The node falls silent.
    pub(crate) fn stop_node(&self) {
        drop(self.node.lock().take());
    }

    /// Waits until something holds.
    pub(crate) async fn eventually(
        &self,
        what: &str,
        holds: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let clock = Clock::real();
        let due = clock.moment() + LIMIT;
        while !holds().await? {
            anyhow::ensure!(clock.moment() < due, "in vain: {what}");
            clock.sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Runs a script in a container.
    pub(crate) async fn exec(&self, pod: &str, container: &str, script: &str) -> anyhow::Result<()> {
        let uid = self.pods().get(pod).await?.uid().context("it has a UID")?;
        let shim = Shim::find(&self.root().join("pods").join(uid)).await.context("it has a shim")?;
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let running = shim.exec(container, Exec { command, ..Exec::default() }).await?;
        let code = running.control.wait().await?;
        anyhow::ensure!(code == 0, "{script:?} ended with {code}");
        Ok(())
    }

    pub(crate) async fn end(self) -> anyhow::Result<()> {
        let node = self.node.lock().take();
        if let Some(node) = node {
            node.leave().await?;
        }
        self.cluster.stop().await?;
        let left: Vec<_> = std::fs::read_dir(self.root().join("pods"))?.collect();
        if self.wants.disk.is_some() {
            nix::mount::umount2(&self.root(), nix::mount::MntFlags::MNT_DETACH)?;
        }
        anyhow::ensure!(left.is_empty(), "folders of pods are left: {left:?}");
        if let Some(serving) = self.serving {
            serving.stop().await;
        }
        drop(self.api);
        Ok(())
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    /// Makes a pod with this spec.
    pub(crate) async fn run(&self, name: &str, spec: Value) -> anyhow::Result<Pod> {
        let pod = serde_json::from_value(serde_json::json!({"metadata": {"name": name}, "spec": spec}))?;
        Ok(self.pods().create(&PostParams::default(), &pod).await?)
    }

    /// Makes any object of a kind that is known.
    pub(crate) async fn make<K>(&self, object: Value) -> anyhow::Result<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
    }

    pub(crate) async fn delete(&self, name: &str) -> anyhow::Result<()> {
        self.pods().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until a pod is as asked; an error says how it is instead, and what was told of it.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Pod) -> bool,
    ) -> anyhow::Result<Pod> {
        let clock = Clock::real();
        let due = clock.moment() + LIMIT;
        loop {
            let pod = self.pods().get_opt(name).await?;
            if let Some(pod) = pod.as_ref().filter(|pod| holds(pod)) {
                return Ok(pod.clone());
            }
            if clock.moment() > due {
                let told = self.events(name).await?;
                let status =
                    pod.and_then(|pod| pod.status).map(|status| serde_json::to_string_pretty(&status));
                bail!("pod {name} is not {what}: {}\n{told:#?}", status.transpose()?.unwrap_or_default());
            }
            clock.sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn until_gone(&self, name: &str) -> anyhow::Result<()> {
        let clock = Clock::real();
        let due = clock.moment() + LIMIT;
        while self.pods().get_opt(name).await?.is_some() {
            anyhow::ensure!(clock.moment() < due, "pod {name} is still there");
            clock.sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    pub(crate) async fn until_phase(&self, name: &str, phase: &str) -> anyhow::Result<Pod> {
        self.until(name, phase, |pod| self::phase(pod) == phase).await
    }

    pub(crate) async fn until_ready(&self, name: &str) -> anyhow::Result<Pod> {
        self.until(name, "ready", is_ready).await
    }

    /// What was told of a pod, as `Reason: message`.
    pub(crate) async fn events(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let all = events.list(&ListParams::default()).await?;
        let of = all.into_iter().filter(|event| event.involved_object.name.as_deref() == Some(name));
        let text = |event: Event| {
            format!("{}: {}", event.reason.unwrap_or_default(), event.message.unwrap_or_default())
        };
        Ok(of.map(text).collect())
    }

    /// Waits until something was told of a pod.
    pub(crate) async fn until_told(&self, name: &str, part: &str) -> anyhow::Result<()> {
        let clock = Clock::real();
        let due = clock.moment() + LIMIT;
        loop {
            let told = self.events(name).await?;
            if told.iter().any(|told| told.contains(part)) {
                return Ok(());
            }
            anyhow::ensure!(clock.moment() < due, "{part:?} was not told of {name}: {told:#?}");
            clock.sleep(Duration::from_millis(20)).await;
        }
    }

    /// What a container wrote in one of its runs.
    pub(crate) fn log(&self, pod: &Pod, container: &str, attempt: u32) -> anyhow::Result<String> {
        let uid = pod.uid().context("it has a UID")?;
        let folder = format!("default_{}_{uid}", pod.name_any());
        let path = self.root().join("logs").join(folder).join(container).join(format!("{attempt}.log"));
        let text = std::fs::read_to_string(&path).with_context(|| format!("{} is read", path.display()))?;
        Ok(text
            .lines()
            .map(|line| line.splitn(4, ' ').nth(3).unwrap_or_default().to_owned() + "\n")
            .collect())
    }
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The status of a container.
pub(crate) fn status(pod: &Pod, name: &str) -> k8s_openapi::api::core::v1::ContainerStatus {
    let status = pod.status.clone().unwrap_or_default();
    let usual = status.container_statuses.into_iter().chain(status.init_container_statuses);
    let all = usual.chain(status.ephemeral_container_statuses).flatten();
    all.into_iter().find(|status| status.name == name).unwrap_or_default()
}
