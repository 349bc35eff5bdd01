//! Volumes that are made on demand: folders of one node.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::path::Path;
use windlass::{Manager, Task};
use windlass_component_helpers::local_volumes::{self, PROVISIONER};

/// Where volumes are on a node that does not say otherwise.
const FOLDER: &str = "/var/lib/windlass/volumes";
/// The class of claims that name none.
const STANDARD: &str = "standard";
/// Marks the class of claims that name none.
pub(super) const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// The volume for a claim, on a node that leaves it to us.
pub(super) fn volume(claim: &PersistentVolumeClaim, class: &StorageClass) -> Option<PersistentVolume> {
    local_volumes::volume(claim, class, Path::new(FOLDER))
}

/// Makes the class that is there by default, in a cluster that has none.
pub(super) fn add(manager: Manager) -> Manager {
    manager.task("default-storage-class", |task| async move { furnish(&task).await.map_err(Into::into) })
}

async fn furnish(task: &Task) -> Result<(), kube::Error> {
    let classes: Api<StorageClass> = Api::all(task.client().clone());
    if !classes.list_metadata(&kube::api::ListParams::default().limit(1)).await?.items.is_empty() {
        return Ok(());
    }
    match classes.create(&PostParams::default(), &standard()).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        made => made.map(drop),
    }
}

fn standard() -> StorageClass {
    let class: Value = json!({
        "metadata": { "name": STANDARD, "annotations": { DEFAULT: "true" } },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    });
    serde_json::from_value(class).expect("it is written as classes are")
}
