//! The volumes of the node's claims: folders of its own, made when a claim asks for them and removed when nobody needs them.
//!
//! The node is the provisioner that classes name `windlass.dev/local`, on the embedded cluster and on any other.

mod decide;

use decide::{HOLD, Seen, Step, folder_of, steps};
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

/// Changes that come close together are looked at together.
const TOGETHER: Duration = Duration::from_millis(5);
/// What failed is tried again after so long, and then ever later.
const AGAIN: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// Makes and removes the volumes of one node.
pub(crate) struct Maker {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    /// The node's name.
    pub(crate) node: String,
    /// Where its volumes are.
    pub(crate) folder: PathBuf,
    claims: Opened<PersistentVolumeClaim>,
    volumes: Opened<PersistentVolume>,
    classes: Opened<StorageClass>,
}

impl Maker {
    /// Watches what it needs through this cache, once that is started.
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

    /// Looks after the volumes as long as the node is there.
    pub(crate) async fn run(self) {
        let changed = Arc::new(Notify::new());
        let told = || {
            let changed = changed.clone();
            Arc::new(move |_: &_| changed.notify_one())
        };
        let _listening = (
            self.claims.listen_while(told()),
            self.volumes.listen_while(told()),
            self.classes.listen_while(told()),
        );
        self.claims.synced().await;
        self.volumes.synced().await;
        self.classes.synced().await;
        let mut again = AGAIN;
        loop {
            match self.turn().await {
                true => {
                    again = AGAIN;
                    changed.notified().await;
                    self.clock.sleep(TOGETHER).await;
                }
                false => {
                    self.clock.sleep(again).await;
                    again = (again * 2).min(LONGEST);
                }
            }
        }
    }

    /// Does what can be done now. Answers whether all went well.
    async fn turn(&self) -> bool {
        let (claims, volumes, classes) = (self.claims.list(), self.volumes.list(), self.classes.list());
        let seen = Seen {
            node: &self.node,
            folder: &self.folder,
            claims: &claims,
            volumes: &volumes,
            classes: &classes,
        };
        let mut well = true;
        for step in steps(&seen) {
            if let Err(why) = self.carry_out(&step).await {
                tracing::warn!("a volume of this node: {why}");
                well = false;
            }
        }
        well
    }

    async fn carry_out(&self, step: &Step) -> Result<(), String> {
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let params = PatchParams::default();
        let done = match step {
            Step::Make(claim, volume) => {
                let made = volumes.create(&PostParams::default(), volume).await;
                let told = |warning, reason, message| {
                    self.recorder.tell(&**claim, warning, Reason::new(reason, message));
                };
                match &made {
                    Ok(made) => told(
                        false,
                        "ProvisioningSucceeded",
                        format!("Successfully provisioned volume {}", made.name_any()),
                    ),
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    Err(error) => {
                        told(true, "ProvisioningFailed", format!("failed to provision volume: {error}"));
                    }
                }
                made.map(drop)
            }
            Step::Hold(volume) => {
                let mut held = volume.metadata.finalizers.clone().unwrap_or_default();
                held.push(HOLD.to_owned());
                volumes.patch(&volume.name_any(), &params, &finalizers(volume, held)).await.map(drop)
            }
            Step::Grow(volume, to) => {
                let patch = json!({
                    "metadata": { "resourceVersion": volume.metadata.resource_version },
                    "spec": { "capacity": { "storage": to } },
                });
                volumes.patch(&volume.name_any(), &params, &Patch::Merge(patch)).await.map(drop)
            }
            Step::Grown(claim, to) => {
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
            Step::Remove(volume, path) => {
                if let Err(why) = remove(path).await {
                    let message = format!("{} cannot be removed: {why}", path.display());
                    self.recorder.tell(&**volume, true, Reason::new("VolumeFailedDelete", message.clone()));
                    return Err(message);
                }
                let held = volume.metadata.finalizers.iter().flatten().filter(|held| *held != HOLD).cloned();
                volumes
                    .patch(&volume.name_any(), &params, &finalizers(volume, held.collect()))
                    .await
                    .map(drop)
            }
        };
        match done {
            // Somebody else did it, or changed it meanwhile: the watch tells.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            done => done.map_err(|error| error.to_string()),
        }
    }
}

fn finalizers(volume: &PersistentVolume, held: Vec<String>) -> Patch<serde_json::Value> {
    Patch::Merge(json!({ "metadata": {
        "finalizers": held, "uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version,
    } }))
}

async fn remove(path: &Path) -> Result<(), String> {
    let path = path.to_owned();
    let removed = tokio::task::spawn_blocking(move || match super::host::remove_folder(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    });
    removed.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Lets all volumes of a node go that leaves for good: nobody is there any more who would remove their folders, and whoever
/// deletes them is not to wait for that.
pub(crate) async fn let_go(client: &Client, folder: &Path) -> Result<(), kube::Error> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    for volume in volumes.list(&ListParams::default()).await?.items {
        let held = volume.metadata.finalizers.iter().flatten().any(|held| held == HOLD);
        if !held || folder_of(&volume, folder).is_none() {
            continue;
        }
        let others = volume.metadata.finalizers.iter().flatten().filter(|held| *held != HOLD).cloned();
        let patch = finalizers(&volume, others.collect());
        match volumes.patch(&volume.name_any(), &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            done => drop(done?),
        }
    }
    Ok(())
}
