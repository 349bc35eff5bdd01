//! A namespace on one of the environments, and what the tests ask there.

use anyhow::{Context, bail};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod, ServiceAccount};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, LogParams, PostParams,
};
use kube::{Api, Client, ResourceExt};
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::Target;

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// A namespace of a test's own.
pub(crate) struct Place {
    /// A client for everything.
    pub(crate) client: Client,
    /// Its name.
    pub(crate) namespace: String,
}

impl Place {
    /// A new namespace in which pods can run.
    pub(crate) async fn in_(target: &Target) -> anyhow::Result<Self> {
        let place = Self { client: target.client(), namespace: target.namespace().await? };
        let accounts: Api<ServiceAccount> = Api::namespaced(place.client.clone(), &place.namespace);
        place.until("there is an account", async || Ok(accounts.get_opt("default").await?)).await?;
        Ok(place)
    }

    /// Makes what a manifest says; what is of the whole cluster may be there.
    pub(crate) async fn apply(&self, manifest: &str) -> anyhow::Result<()> {
        for document in serde_saphyr::from_multiple::<serde_json::Value>(manifest)? {
            let object: DynamicObject = serde_json::from_value(document)?;
            let types = object.types.clone().context("it says what it is")?;
            let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
            let whole = types.kind == "StorageClass";
            let api: Api<DynamicObject> = match whole {
                true => Api::all_with(self.client.clone(), &kind),
                false => Api::namespaced_with(self.client.clone(), &self.namespace, &kind),
            };
            match api.create(&PostParams::default(), &object).await {
                Err(kube::Error::Api(status)) if whole && status.code == 409 => {}
                made => drop(made.with_context(|| format!("making {} {}", types.kind, object.name_any()))?),
            }
        }
        Ok(())
    }

    /// Its pods.
    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Waits for something. An error says what is there and what was told instead.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        find: impl AsyncFn() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let clock = Clock::real();
        let due = clock.moment() + LIMIT;
        loop {
            if let Some(found) = find().await? {
                return Ok(found);
            }
            if clock.moment() > due {
                bail!("in vain: {what}; there is\n{}", self.told().await?);
            }
            clock.sleep(Duration::from_millis(50)).await;
        }
    }

    /// How the pods are, and what was told.
    async fn told(&self) -> anyhow::Result<String> {
        let mut lines = Vec::new();
        for pod in self.pods().list(&ListParams::default()).await? {
            lines.push(format!("{}: {}", pod.name_any(), serde_json::to_string(&pod.status)?));
        }
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        for event in events.list(&ListParams::default()).await? {
            let about = event.involved_object.name.unwrap_or_default();
            let (reason, message) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
            lines.push(format!("{about}: {reason}: {message}"));
        }
        Ok(lines.join("\n"))
    }

    /// Waits until so many pods with a label are ready, and none else is there.
    pub(crate) async fn ready(&self, label: &str, count: usize) -> anyhow::Result<Vec<Pod>> {
        let labelled = ListParams::default().labels(label);
        self.until(&format!("{count} pods {label} are ready"), async || {
            let pods = self.pods().list(&labelled).await?.items;
            let ready = pods.len() == count && pods.iter().all(is_ready);
            Ok(ready.then_some(pods))
        })
        .await
    }

    /// Waits until a Job has ended. Answers the type and the reason of the condition that says so.
    pub(crate) async fn ended(&self, job: &str) -> anyhow::Result<(String, String)> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), &self.namespace);
        self.until(&format!("job {job} has ended"), async || {
            let status = jobs.get(job).await?.status.unwrap_or_default();
            let mut conditions = status.conditions.into_iter().flatten();
            let ended = conditions.find(|condition| {
                matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
            });
            Ok(ended.map(|ended| (ended.type_, ended.reason.unwrap_or_default())))
        })
        .await
    }

    /// Waits until a Job has succeeded. Answers what its pod wrote, as the API tells it.
    pub(crate) async fn said(&self, job: &str) -> anyhow::Result<String> {
        let (ended, _) = self.ended(job).await?;
        let of = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
        let pods = self.pods().list(&of).await?.items;
        let mut said = String::new();
        for pod in &pods {
            said += &self.pods().logs(&pod.name_any(), &LogParams::default()).await?;
        }
        anyhow::ensure!(
            ended == "Complete",
            "job {job} failed; its pods wrote\n{said}\n{}",
            self.told().await?
        );
        Ok(said)
    }

    /// Kills a pod, and waits until it is gone or another has its name.
    pub(crate) async fn kill(&self, pod: &Pod) -> anyhow::Result<()> {
        let name = pod.name_any();
        self.pods().delete(&name, &DeleteParams::default().grace_period(0)).await?;
        self.until(&format!("{name} is gone"), async || {
            let there = self.pods().get_opt(&name).await?;
            Ok(there.is_none_or(|there| there.uid() != pod.uid()).then_some(()))
        })
        .await
    }
}

/// Whether a pod can serve.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
