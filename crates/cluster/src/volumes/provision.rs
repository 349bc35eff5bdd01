//! Volumes that are made on demand: folders of one node.

use super::decide::{SELECTED, annotation, reference};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use windlass::{Manager, Task};

/// Who makes them.
pub(super) const PROVISIONER: &str = "windlass.dev/local";
/// Says of a volume who made it.
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The folder of the node in which each volume has one of its own.
const FOLDER: &str = "/var/lib/windlass/volumes";
/// The class of claims that name none.
const STANDARD: &str = "standard";
/// Marks the class of claims that name none.
pub(super) const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// The volume for a claim: on the node that was selected for it, if one was.
pub(super) fn volume(claim: &PersistentVolumeClaim, class: &StorageClass) -> Option<PersistentVolume> {
    let spec = claim.spec.as_ref()?;
    let name = format!("pvc-{}", claim.metadata.uid.as_deref()?);
    let storage = spec.resources.as_ref()?.requests.as_ref()?.get("storage")?;
    let mut volume = json!({
        "metadata": { "name": name, "annotations": { PROVISIONED_BY: PROVISIONER } },
        "spec": {
            "capacity": { "storage": storage },
            "accessModes": spec.access_modes,
            "volumeMode": spec.volume_mode,
            "mountOptions": class.mount_options,
            "storageClassName": class.metadata.name,
            "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
            "claimRef": reference(claim),
            "hostPath": { "path": format!("{FOLDER}/{name}"), "type": "DirectoryOrCreate" },
        },
    });
    if let Some(node) = annotation(&claim.metadata, SELECTED) {
        let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] });
        volume["spec"]["nodeAffinity"] =
            json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } });
    }
    serde_json::from_value(volume).ok()
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
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
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
