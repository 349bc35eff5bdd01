//! A small operator, and what its tests share.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use std::future::Future;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass::clock::Clock;
use windlass::{Controller, Manager, Observed, Plan, Reasoned, Refusal, Result};
use windlass_apiserver::{Api as Embedded, Config, Identity};

/// A fresh API, and a client that may do everything.
pub fn cluster() -> (Embedded, Client) {
    let api = Embedded::new(Config::default());
    let client = Client::new(api.service(Identity::admin()), "default");
    (api, client)
}

#[derive(Debug)]
pub enum Why {
    Mirrors,
    WaitsForPatience,
    Unwanted,
}

impl Reasoned for Why {}

/// Mirrors a ConfigMap as a Secret. Some names ask for trouble.
pub fn decide(map: &ConfigMap, _: &Observed) -> Result<Plan, Refusal> {
    match map.name_any().as_str() {
        "panics" => panic!("as it was asked to"),
        "waits" => return Ok(Plan::waiting(Why::WaitsForPatience)),
        "unwanted" => return Err(Why::Unwanted.into()),
        _ => {}
    }
    let mut secret = Secret::default();
    secret.metadata.name = Some(map.name_any());
    secret.metadata.namespace = map.namespace();
    Ok(Plan::new().apply(secret, Why::Mirrors))
}

/// The controller of it.
pub fn mirror() -> Controller<ConfigMap> {
    Controller::deciding(decide).named("mirror").owns::<Secret>()
}

/// Creates a ConfigMap in the default namespace.
pub async fn make(client: &Client, name: &str) {
    let metadata = ObjectMeta { name: Some(name.into()), ..Default::default() };
    let map = ConfigMap { metadata, ..Default::default() };
    Api::namespaced(client.clone(), "default").create(&PostParams::default(), &map).await.unwrap();
}

/// Whether a Secret is there.
pub async fn has_secret(client: &Client, name: &str) -> bool {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    secrets.get_opt(name).await.unwrap().is_some()
}

/// A manager that runs until told to stop.
pub struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<()>>,
}

impl Running {
    pub fn start(manager: Manager) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(manager.run_until(async {
            let _ = stopped.await;
        }));
        Self { stop, task }
    }

    pub async fn stop(self) -> Result<()> {
        let _ = self.stop.send(());
        self.task.await.unwrap()
    }

    /// How it ended by itself.
    pub async fn ended(self) -> Result<()> {
        let Self { stop: _stop, task } = self;
        Clock::real().timeout(Duration::from_secs(20), task).await.unwrap().unwrap()
    }
}

/// Waits until it is so, for a while.
pub async fn until<F: Future<Output = bool>>(what: &str, so: impl Fn() -> F) {
    let clock = Clock::real();
    for _ in 0..1_000 {
        if so().await {
            return;
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 10 s: {what}");
}
