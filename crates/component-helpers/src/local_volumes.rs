//! PersistentVolumes that are directories of one node, provisioned on demand: what they look like, whoever provisions them.

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::path::Path;

/// The provisioner, as StorageClasses name it.
pub const PROVISIONER: &str = "windlass.dev/local";
/// The annotation with the provisioner of a PersistentVolume.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The annotation of a PersistentVolumeClaim with the node that the scheduler selected for it.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The annotation of a Node whose kubelet provisions and deletes the volumes of its pods' claims itself, in a directory of its
/// choice.
pub const PROVISIONS_VOLUMES: &str = "windlass.dev/makes-volumes";

/// Whether a node's kubelet provisions its volumes itself.
pub fn provisions_volumes(node: &Node) -> bool {
    annotation(&node.metadata, PROVISIONS_VOLUMES) == Some("true")
}

/// The value of an annotation.
pub fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}

/// A reference to a claim, as `spec.claimRef` has it.
pub fn reference_to(claim: &PersistentVolumeClaim) -> Value {
    json!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "namespace": claim.metadata.namespace, "name": claim.metadata.name,
        "uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version,
    })
}

/// The node that was selected for a claim, if one was.
pub fn selected_node(claim: &PersistentVolumeClaim) -> Option<&str> {
    annotation(&claim.metadata, SELECTED_NODE)
}

/// The PersistentVolume for a claim, in this directory of the node that was selected for it, if one was. `None` if the claim
/// requests no storage.
pub fn volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    directory: &Path,
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
            "claimRef": reference_to(claim),
            "hostPath": { "path": directory.join(&name), "type": "DirectoryOrCreate" },
        },
    });
    if let Some(node) = selected_node(claim) {
        let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] });
        volume["spec"]["nodeAffinity"] =
            json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } });
    }
    serde_json::from_value(volume).ok()
}
