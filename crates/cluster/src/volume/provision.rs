//! Dynamic provisioning of local volumes, and the default StorageClass `standard`.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::path::Path;
use windlass::{Manager, Task};
use windlass_component_helpers::local_volumes::{self, PROVISIONER};

/// The folder of volumes on a node that does not provision them itself.
const FOLDER: &str = "/var/lib/windlass/volumes";
/// The default StorageClass.
const STANDARD: &str = "standard";
/// The annotation of the default StorageClass.
pub(super) const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// The volume for a claim, on a node that does not provision itself.
pub(super) fn volume(claim: &PersistentVolumeClaim, class: &StorageClass) -> Option<PersistentVolume> {
    local_volumes::volume(claim, class, Path::new(FOLDER))
}

/// Creates the default StorageClass in a cluster that has none.
pub(super) fn add(manager: Manager) -> Manager {
    manager.task("default-storage-class", |task| async move {
        create_default_class(&task).await.map_err(Into::into)
    })
}

async fn create_default_class(task: &Task) -> Result<(), kube::Error> {
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
