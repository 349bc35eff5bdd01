//! What pods and volumes name that their node has to read.

use super::graph::{Name, Vertex};
use crate::object::{at, list, text};
use serde_json::Value;

/// What marks a mirror pod. It is written by the node itself: it must give it no rights.
pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";

/// The Secrets that volumes name, by the field of the volume: where the name is.
const VOLUME_SECRETS: [(&str, &[&str]); 9] = [
    ("azureFile", &["secretName"]),
    ("cephfs", &["secretRef", "name"]),
    ("cinder", &["secretRef", "name"]),
    ("csi", &["nodePublishSecretRef", "name"]),
    ("flexVolume", &["secretRef", "name"]),
    ("iscsi", &["secretRef", "name"]),
    ("rbd", &["secretRef", "name"]),
    ("scaleIO", &["secretRef", "name"]),
    ("storageos", &["secretRef", "name"]),
];

/// Whether a pod only shows one that a kubelet runs by itself.
pub(crate) fn is_mirror(pod: &Value) -> bool {
    at(pod, &["metadata", "annotations", MIRROR]).is_some()
}

/// What a pod gives its node rights to, in its namespace.
pub(super) fn pod_references(pod: &Value) -> Vec<(Vertex, String)> {
    if is_mirror(pod) { Vec::new() } else { used_by(pod) }
}

/// What a pod uses in its namespace.
pub(super) fn used_by(pod: &Value) -> Vec<(Vertex, String)> {
    let mut found = Vec::new();
    let mut add = |vertex: Vertex, name: &str| {
        if !name.is_empty() {
            found.push((vertex, name.to_owned()));
        }
    };
    add(Vertex::ServiceAccount, text(pod, &["spec", "serviceAccountName"]));
    for secret in list(pod, &["spec", "imagePullSecrets"]) {
        add(Vertex::Secret, text(secret, &["name"]));
    }
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list(pod, &["spec", containers]) {
            for from in list(container, &["envFrom"]) {
                add(Vertex::Secret, text(from, &["secretRef", "name"]));
                add(Vertex::ConfigMap, text(from, &["configMapRef", "name"]));
            }
            for variable in list(container, &["env"]) {
                add(Vertex::Secret, text(variable, &["valueFrom", "secretKeyRef", "name"]));
                add(Vertex::ConfigMap, text(variable, &["valueFrom", "configMapKeyRef", "name"]));
            }
        }
    }
    for volume in list(pod, &["spec", "volumes"]) {
        add(Vertex::Secret, text(volume, &["secret", "secretName"]));
        add(Vertex::ConfigMap, text(volume, &["configMap", "name"]));
        add(Vertex::Claim, text(volume, &["persistentVolumeClaim", "claimName"]));
        if volume.get("ephemeral").is_some_and(|ephemeral| !ephemeral.is_null()) {
            let (pod, volume) = (text(pod, &["metadata", "name"]), text(volume, &["name"]));
            add(Vertex::Claim, &format!("{pod}-{volume}"));
        }
        for source in list(volume, &["projected", "sources"]) {
            add(Vertex::Secret, text(source, &["secret", "name"]));
            add(Vertex::ConfigMap, text(source, &["configMap", "name"]));
        }
        for (kind, path) in VOLUME_SECRETS {
            if let Some(volume) = volume.get(kind) {
                add(Vertex::Secret, text(volume, path));
            }
        }
    }
    for claim in list(pod, &["spec", "resourceClaims"]) {
        add(Vertex::ResourceClaim, text(claim, &["resourceClaimName"]));
    }
    for status in list(pod, &["status", "resourceClaimStatuses"]) {
        add(Vertex::ResourceClaim, text(status, &["resourceClaimName"]));
    }
    add(Vertex::ResourceClaim, text(pod, &["status", "extendedResourceClaimStatus", "resourceClaimName"]));
    found
}

/// The Secrets that nodes need for a volume.
pub(super) fn volume_secrets(volume: &Value) -> Vec<Name> {
    let claim = text(volume, &["spec", "claimRef", "namespace"]);
    let mut found = Vec::new();
    let mut add = |namespace: &str, name: &str| {
        if !name.is_empty() {
            found.push((namespace.to_owned(), name.to_owned()));
        }
    };
    let or_claim =
        |namespace: &str| if namespace.is_empty() { claim.to_owned() } else { namespace.to_owned() };
    let source = |path: &[&str]| text(volume, &[&["spec"], path].concat()).to_owned();
    add(&or_claim(&source(&["azureFile", "secretNamespace"])), &source(&["azureFile", "secretName"]));
    for kind in ["cephfs", "flexVolume", "iscsi", "rbd", "scaleIO"] {
        let namespace = or_claim(&source(&[kind, "secretRef", "namespace"]));
        add(&namespace, &source(&[kind, "secretRef", "name"]));
    }
    for kind in ["cinder", "storageos"] {
        add(&source(&[kind, "secretRef", "namespace"]), &source(&[kind, "secretRef", "name"]));
    }
    for reference in ["nodeExpandSecretRef", "nodePublishSecretRef", "nodeStageSecretRef"] {
        add(&source(&["csi", reference, "namespace"]), &source(&["csi", reference, "name"]));
    }
    found
}
