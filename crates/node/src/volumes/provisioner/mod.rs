//! The provisioner `windlass.dev/local`: PersistentVolumes that are directories of this node, created when a claim needs them and
//! removed after they were released. It works with the embedded cluster and with any other.

mod decide;

use crate::file_tree;
use decide::{FINALIZER, Observed, Step, directory_of, steps};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use windlass::cache::{Cache, Opened, Scope};
use windlass::{Reason, Recorder};
use windlass_clock::Clock;

/// Changes within this time are handled together.
const DEBOUNCE: Duration = Duration::from_millis(5);
/// The initial and the maximum back-off after a failure.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_mins(1);

/// Provisions and deletes the volumes of one node.
pub(crate) struct Provisioner {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    /// The node's name.
    pub(crate) node: String,
    /// The directory of its volumes.
    pub(crate) folder: PathBuf,
    claims: Opened<PersistentVolumeClaim>,
    volumes: Opened<PersistentVolume>,
    classes: Opened<StorageClass>,
}

impl Provisioner {
    /// Opens the watches that it needs in this cache.
    pub(crate) fn new(
        client: Client,
        clock: Clock,
        recorder: Recorder,
        node: &str,
        folder: PathBuf,
        cache: &Cache,
    ) -> Self {
        Self {
            client,
            clock,
            recorder,
            node: node.to_owned(),
            folder,
            claims: cache.open(Scope::default()),
            volumes: cache.open(Scope::default()),
            classes: cache.open(Scope::default()),
        }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let changed = Arc::new(Notify::new());
        let handler = || {
            let changed = changed.clone();
            Arc::new(move |_: &_| changed.notify_one())
        };
        let _listening = (
            self.claims.listen_while(handler()),
            self.volumes.listen_while(handler()),
            self.classes.listen_while(handler()),
        );
        self.claims.synced().await;
        self.volumes.synced().await;
        self.classes.synced().await;
        let mut backoff = INITIAL_BACKOFF;
        loop {
            match self.reconcile().await {
                true => {
                    backoff = INITIAL_BACKOFF;
                    changed.notified().await;
                    self.clock.sleep(DEBOUNCE).await;
                }
                false => {
                    self.clock.sleep(backoff).await;
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                }
            }
        }
    }

    /// Takes all steps that can be taken now. Returns whether all succeeded.
    async fn reconcile(&self) -> bool {
        let (claims, volumes, classes) = (self.claims.list(), self.volumes.list(), self.classes.list());
        let observed = Observed {
            node: &self.node,
            folder: &self.folder,
            claims: &claims,
            volumes: &volumes,
            classes: &classes,
        };
        let mut succeeded = true;
        for step in steps(&observed) {
            if let Err(why) = self.act(&step).await {
                tracing::warn!("failed to provision or delete a volume: {why}");
                succeeded = false;
            }
        }
        succeeded
    }

    async fn act(&self, step: &Step) -> Result<(), String> {
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let params = PatchParams::default();
        let done = match step {
            Step::Provision(claim, volume) => {
                let made = volumes.create(&PostParams::default(), volume).await;
                let record = |warning, reason, message| {
                    self.recorder.tell(&**claim, warning, Reason::new(reason, message));
                };
                match &made {
                    Ok(made) => record(
                        false,
                        "ProvisioningSucceeded",
                        format!("Successfully provisioned volume {}", made.name_any()),
                    ),
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    Err(error) => {
                        record(true, "ProvisioningFailed", format!("failed to provision volume: {error}"));
                    }
                }
                made.map(drop)
            }
            Step::AddFinalizer(volume) => {
                let mut present = volume.metadata.finalizers.clone().unwrap_or_default();
                present.push(FINALIZER.to_owned());
                volumes.patch(&volume.name_any(), &params, &finalizers(volume, present)).await.map(drop)
            }
            Step::Expand(volume, to) => {
                let patch = json!({
                    "metadata": { "resourceVersion": volume.metadata.resource_version },
                    "spec": { "capacity": { "storage": to } },
                });
                volumes.patch(&volume.name_any(), &params, &Patch::Merge(patch)).await.map(drop)
            }
            Step::SetCapacity(claim, to) => {
                let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
                let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
                let patch = json!({
                    "metadata": { "resourceVersion": claim.metadata.resource_version },
                    "status": { "capacity": { "storage": to } },
                });
                claims.patch_status(&claim.name_any(), &params, &Patch::Merge(patch)).await.map(drop)
            }
            Step::Delete(volume) => {
                let only = Preconditions { uid: volume.metadata.uid.clone(), resource_version: None };
                let params = DeleteParams { preconditions: Some(only), ..DeleteParams::default() };
                volumes.delete(&volume.name_any(), &params).await.map(drop)
            }
            Step::RemoveDirectory(volume, path) => {
                if let Err(why) = remove(path).await {
                    let message = format!("failed to remove {}: {why}", path.display());
                    self.recorder.tell(&**volume, true, Reason::new("VolumeFailedDelete", message.clone()));
                    return Err(message);
                }
                let present = volume
                    .metadata
                    .finalizers
                    .iter()
                    .flatten()
                    .filter(|present| *present != FINALIZER)
                    .cloned();
                volumes
                    .patch(&volume.name_any(), &params, &finalizers(volume, present.collect()))
                    .await
                    .map(drop)
            }
        };
        match done {
            // It was done or changed meanwhile: the watch will say so.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            done => done.map_err(|error| error.to_string()),
        }
    }
}

fn finalizers(volume: &PersistentVolume, present: Vec<String>) -> Patch<serde_json::Value> {
    Patch::Merge(json!({ "metadata": {
        "finalizers": present, "uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version,
    } }))
}

async fn remove(path: &Path) -> Result<(), String> {
    let path = path.to_owned();
    let removed = tokio::task::spawn_blocking(move || file_tree::remove(&path));
    removed.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Removes the finalizer from all volumes of a node that leaves for good: nobody would remove their directories, and a deletion
/// must not wait for that.
pub(crate) async fn remove_finalizers(client: &Client, folder: &Path) -> Result<(), kube::Error> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    for volume in volumes.list(&ListParams::default()).await?.items {
        let present = volume.metadata.finalizers.iter().flatten().any(|present| present == FINALIZER);
        if !present || directory_of(&volume, folder).is_none() {
            continue;
        }
        let others =
            volume.metadata.finalizers.iter().flatten().filter(|present| *present != FINALIZER).cloned();
        let patch = finalizers(&volume, others.collect());
        match volumes.patch(&volume.name_any(), &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            done => drop(done?),
        }
    }
    Ok(())
}
