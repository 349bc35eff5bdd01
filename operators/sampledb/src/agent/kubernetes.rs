//! The two objects that an agent may read and write: the database's Lease and its own SampleDBInstance.

use crate::api::v1alpha1::{SampleDBInstance, SampleDBInstanceStatus, UpgradeReport};
use crate::api_error::said;
use crate::data_version::{DataVersion, InvalidDataVersion};
use crate::leadership::{InvalidLease, Leadership};
use crate::settings::Settings;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use windlass::clock::{Clock, Timestamp};

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(3);
/// How long to wait before a watch that failed is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a watch lasts, in seconds.
const WATCH_SECONDS: u32 = 240;
/// How often a change that meets another is tried again.
const ATTEMPTS: usize = 5;
/// The agent's field manager.
const MANAGER: &str = "sampledb-agent";
/// That of an upgrade's Jobs: an agent that reports after them leaves what they said.
const UPGRADE_MANAGER: &str = "sampledb-upgrade";

/// A request failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The API server says why, or cannot be reached.
    #[error("the API server: {}", said(.0))]
    Kube(#[from] kube::Error),
    /// It does not answer.
    #[error("the API server does not answer within {} s", LIMIT.as_secs())]
    Silent,
    /// The Lease was written by somebody else.
    #[error(transparent)]
    Lease(#[from] InvalidLease),
    /// So was what it says of the data's version.
    #[error(transparent)]
    DataVersion(#[from] InvalidDataVersion),
    /// Others were faster, again and again.
    #[error("the Lease changes all the time")]
    Contended,
}

/// Reads and writes them.
#[derive(Debug, Clone)]
pub struct Kubernetes {
    leases: Api<Lease>,
    instances: Api<SampleDBInstance>,
    lease: String,
    instance: String,
    clock: Clock,
    /// The latest version that was watched or written.
    latest: Arc<watch::Sender<Option<Arc<Lease>>>>,
}

impl Kubernetes {
    /// By a client of the pod's own account.
    pub fn new(client: Client, settings: &Settings, clock: Clock) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), &settings.namespace),
            instances: Api::namespaced(client, &settings.namespace),
            lease: settings.database.clone(),
            instance: settings.instance.clone(),
            clock,
            latest: Arc::new(watch::Sender::new(None)),
        }
    }

    /// The Lease, as it is watched and written.
    pub fn watch_lease(&self) -> watch::Receiver<Option<Arc<Lease>>> {
        follow(self.leases.clone(), self.lease.clone(), self.clock.clone(), self.latest.clone());
        self.latest.subscribe()
    }

    /// The instance, as it is watched.
    pub fn watch_instance(&self) -> watch::Receiver<Option<Arc<SampleDBInstance>>> {
        let latest = Arc::new(watch::Sender::new(None));
        let receiver = latest.subscribe();
        follow(self.instances.clone(), self.instance.clone(), self.clock.clone(), latest);
        receiver
    }

    /// The time of day.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn within<T>(&self, work: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ApiError> {
        Ok(self.clock.timeout(LIMIT, work).await.map_err(|_| ApiError::Silent)??)
    }

    /// Changes the Lease by compare-and-swap: `change` is given what it says now, read live, and answers whether it is to be
    /// written. Answers whether it was.
    ///
    /// # Errors
    /// [`ApiError`]; it may have been written nevertheless.
    pub async fn change_lease(
        &self,
        mut change: impl FnMut(&mut Leadership, &mut Lease) -> bool,
    ) -> Result<bool, ApiError> {
        for _ in 0..ATTEMPTS {
            let mut lease = self.within(self.leases.get(&self.lease)).await?;
            let mut leadership = Leadership::of(&lease)?;
            if !change(&mut leadership, &mut lease) {
                return Ok(false);
            }
            leadership.write(&mut lease);
            let sent = self.within(self.leases.replace(&self.lease, &PostParams::default(), &lease)).await;
            match sent {
                Ok(lease) => {
                    offer(&self.latest, lease);
                    return Ok(true);
                }
                Err(ApiError::Kube(kube::Error::Api(status))) if status.code == 409 => {}
                Err(error) => return Err(error),
            }
        }
        Err(ApiError::Contended)
    }

    /// Reports how the instance is.
    ///
    /// # Errors
    /// [`ApiError`]
    pub async fn report(&self, status: &SampleDBInstanceStatus) -> Result<(), ApiError> {
        self.apply_status(MANAGER, json!(status)).await
    }

    /// Reports what an upgrade does, or what came of it.
    ///
    /// # Errors
    /// [`ApiError`]
    pub async fn report_upgrade(&self, report: &UpgradeReport) -> Result<(), ApiError> {
        self.apply_status(UPGRADE_MANAGER, json!({ "upgrade": report })).await
    }

    /// What the Lease says of the data's version, read live.
    ///
    /// # Errors
    /// [`ApiError`]
    pub async fn data_version(&self) -> Result<Option<DataVersion>, ApiError> {
        let lease = self.within(self.leases.get(&self.lease)).await?;
        Ok(DataVersion::of(&lease)?)
    }

    async fn apply_status(&self, manager: &str, status: Value) -> Result<(), ApiError> {
        let object = json!({
            "apiVersion": SampleDBInstance::api_version(&()),
            "kind": SampleDBInstance::kind(&()),
            "metadata": { "name": self.instance },
            "status": status,
        });
        let how = PatchParams::apply(manager).force();
        self.within(self.instances.patch_status(&self.instance, &how, &Patch::Apply(object))).await?;
        Ok(())
    }
}

/// Keeps the latest version of one object, read and then watched for as long as somebody looks.
fn follow<K>(api: Api<K>, name: String, clock: Clock, latest: Arc<watch::Sender<Option<Arc<K>>>>)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    tokio::spawn(async move {
        while !latest.is_closed() {
            if let Err(error) = follow_once(&api, &name, &clock, &latest).await {
                tracing::warn!("{name} cannot be watched: {error}");
            }
            clock.sleep(AGAIN).await;
        }
    });
}

/// Keeps a version unless a later one is known. Versions of one resource are ordered.
fn offer<K: Resource>(latest: &watch::Sender<Option<Arc<K>>>, object: K) {
    let version =
        |object: &K| object.meta().resource_version.as_deref().and_then(|text| text.parse::<u64>().ok());
    latest.send_if_modified(|known| {
        let later = known
            .as_ref()
            .is_none_or(|known| known.meta().uid != object.meta().uid || version(known) < version(&object));
        if later {
            *known = Some(Arc::new(object));
        }
        later
    });
}

async fn follow_once<K>(
    api: &Api<K>,
    name: &str,
    clock: &Clock,
    latest: &watch::Sender<Option<Arc<K>>>,
) -> Result<(), ApiError>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let there = clock.timeout(LIMIT, api.get_opt(name)).await.map_err(|_| ApiError::Silent)??;
    let version = there.as_ref().and_then(|object| object.meta().resource_version.clone());
    match there {
        Some(object) => offer(latest, object),
        None => drop(latest.send_replace(None)),
    }
    let Some(version) = version else { return Ok(()) };
    let only = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(WATCH_SECONDS);
    let mut events = api.watch(&only, &version).await?.boxed();
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => offer(latest, object),
            WatchEvent::Deleted(_) => drop(latest.send_replace(None)),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => return Ok(()),
        }
        if latest.is_closed() {
            return Ok(());
        }
    }
    Ok(())
}
