//! Volumes that are folders of one node, made when a claim asks for them: what they look like, whoever makes them.

use super::decide::{SELECTED, annotation, reference};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::json;
use std::path::Path;

/// Who makes them, as classes name it.
pub const PROVISIONER: &str = "windlass.dev/local";
/// Says of a volume who made it.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Says of a node that it makes the volumes of its pods' claims itself, in a folder of its own choice, and removes them.
pub const MAKES_VOLUMES: &str = "windlass.dev/makes-volumes";

/// Whether a node makes its volumes itself.
pub fn makes_volumes(node: &Node) -> bool {
    annotation(&node.metadata, MAKES_VOLUMES) == Some("true")
}

/// The node that was selected for a claim, if one was.
pub fn selected_node(claim: &PersistentVolumeClaim) -> Option<&str> {
    annotation(&claim.metadata, SELECTED)
}

/// The volume for a claim, in this folder of the node that was selected for it, if one was. None where the claim does not say how
/// much it needs.
pub fn volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    folder: &Path,
) -> Option<PersistentVolume> {
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
            "hostPath": { "path": folder.join(&name), "type": "DirectoryOrCreate" },
        },
    });
    if let Some(node) = selected_node(claim) {
        let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] });
        volume["spec"]["nodeAffinity"] =
            json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } });
    }
    serde_json::from_value(volume).ok()
}
