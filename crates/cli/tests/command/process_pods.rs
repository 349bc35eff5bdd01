//! A cluster whose pods are processes, and what tests of operators ask there.

use crate::process::{Cluster, windlass};
use crate::project::client_of;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams, PostParams};
use kube::core::crd::CustomResourceExt;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use windlass_clock::Clock;

/// Longer than anything takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);

/// Why pods of a program cannot be processes here, which a test that needs them prints.
pub(crate) fn cannot_run(program: &str) -> Option<String> {
    let able = windlass(&["doctor"]).output().unwrap().stdout;
    let installed = Command::new(program).arg("--version").output().is_ok();
    let able = String::from_utf8_lossy(&able).contains("can run pods as processes");
    (!able || !installed)
        .then(|| format!("skipped: pods of {program} cannot be processes here (`windlass doctor` says why)"))
}

/// The default namespace of a cluster.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
}

impl World {
    /// Of a cluster that was started as a process.
    pub(crate) async fn of(cluster: &Cluster) -> Self {
        Self { client: client_of(cluster).await, clock: Clock::real() }
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::default_namespaced(self.client.clone())
    }

    /// Looks until it holds.
    pub(crate) async fn until<F: Future<Output = bool>>(&self, what: &str, holds: impl Fn() -> F) {
        let looks = async {
            while !holds().await {
                self.clock.sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(self.clock.timeout(PATIENCE, looks).await.is_ok(), "{what}");
    }

    /// Has a kind served.
    pub(crate) async fn install<K>(&self)
    where
        K: CustomResourceExt
            + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let definitions: Api<_> = Api::all(self.client.clone());
        definitions.create(&PostParams::default(), &K::crd()).await.unwrap();
        let served = || async { self.api::<K>().list(&Default::default()).await.is_ok() };
        self.until("the kind is served", served).await;
    }

    /// What a pod prints that runs to its end.
    pub(crate) async fn prints(&self, mut spec: Value) -> String {
        spec["restartPolicy"] = "Never".into();
        let pod =
            serde_json::from_value(json!({"metadata": {"generateName": "asks-"}, "spec": spec})).unwrap();
        let pods = self.api::<Pod>();
        let name = pods.create(&PostParams::default(), &pod).await.unwrap().name_any();
        self.until("the pod has ended", || async {
            let phase = pods.get(&name).await.unwrap().status.and_then(|status| status.phase);
            matches!(phase.as_deref(), Some("Succeeded" | "Failed"))
        })
        .await;
        pods.logs(&name, &LogParams::default()).await.unwrap().trim().to_owned()
    }
}
