//! Pods: a kubelet mirrors its static pods, reports on all of its pods, deletes and evicts them.

use super::equality::same;
use super::{Action, NodeWrite};
use crate::authorization::{MIRROR, is_mirror, pod_names};
use crate::object::{at, list, text};
use crate::status::Status;
use serde_json::Value;

/// What volumes refer to in the API, by the field of the volume.
const VOLUME_REFERENCES: [(&str, &str); 4] = [
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
];

/// And the sources of projected volumes.
const PROJECTED_REFERENCES: [(&str, &str); 3] = [
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

impl NodeWrite<'_> {
    pub(super) fn pod(&self, subresource: &str) -> Result<(), Status> {
        match (subresource, self.action) {
            ("", Action::Create(pod)) => self.mirror_pod(pod),
            ("", Action::Delete(pod)) => match self.has(pod) {
                true => Ok(()),
                false => self.refuse(format!(
                    "node {:?} can only delete pods with spec.nodeName set to itself",
                    self.node
                )),
            },
            ("", Action::Update { .. }) => self.refuse(format!(
                "unexpected operation \"UPDATE\", node {:?} can only create and delete mirror pods",
                self.node
            )),
            ("status", Action::Update { new, old }) => self.pod_status(new, old),
            ("eviction", _) => self.eviction(),
            _ => self.refuse(format!(
                "unexpected pod subresource {subresource:?}, only 'status' and 'eviction' are allowed"
            )),
        }
    }

    /// Whether a pod is on the node.
    fn has(&self, pod: &Value) -> bool {
        text(pod, &["spec", "nodeName"]) == self.node
    }

    fn mirror_pod(&self, pod: &Value) -> Result<(), Status> {
        let node = self.node;
        if !is_mirror(pod) {
            return self.refuse(format!(
                "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
            ));
        }
        if !self.has(pod) {
            return self
                .refuse(format!("node {node:?} can only create pods with spec.nodeName set to itself"));
        }
        self.owned_by_node(pod)?;
        match reference(pod) {
            Some(referred) => {
                self.refuse(format!("node {node:?} can not create pods that reference {referred}"))
            }
            None => Ok(()),
        }
    }

    /// Its one owner is the node as it is now.
    fn owned_by_node(&self, pod: &Value) -> Result<(), Status> {
        let node = self.node;
        let owner = match list(pod, &["metadata", "ownerReferences"]) {
            [owner] => owner,
            [] => {
                return self.refuse(format!(
                    "node {node:?} can only create pods with an owner reference set to itself"
                ));
            }
            _ => {
                let why =
                    format!("node {node:?} can only create pods with a single owner reference set to itself");
                return self.refuse(why);
            }
        };
        let named = [text(owner, &["apiVersion"]), text(owner, &["kind"]), text(owner, &["name"])];
        let says = |field: &str| owner.get(field).and_then(Value::as_bool).unwrap_or(false);
        if named != ["v1", "Node", node] {
            return self
                .refuse(format!("node {node:?} can only create pods with an owner reference set to itself"));
        }
        if !says("controller") {
            let why =
                format!("node {node:?} can only create pods with a controller owner reference set to itself");
            return self.refuse(why);
        }
        if says("blockOwnerDeletion") {
            return self
                .refuse(format!("node {node:?} must not set blockOwnerDeletion on an owner reference"));
        }
        let stored = self.other("nodes", "node", "", node)?;
        let (given, known) = (text(owner, &["uid"]), text(&stored, &["metadata", "uid"]));
        match given == known {
            true => Ok(()),
            false => self.refuse(format!("node {node} UID mismatch: expected {given} got {known}")),
        }
    }

    fn pod_status(&self, new: &Value, old: &Value) -> Result<(), Status> {
        let node = self.node;
        if !self.has(old) {
            let why =
                format!("node {node:?} can only update pod status for pods with spec.nodeName set to itself");
            return self.refuse(why);
        }
        let same = |path: &[&str]| same(at(new, path), at(old, path));
        if !same(&["metadata", "labels"]) {
            return self.refuse(format!("node {node:?} cannot update labels through pod status"));
        }
        if !same(&["status", "resourceClaimStatuses"]) {
            return self.refuse(format!("node {node:?} cannot update resource claim statues"));
        }
        match same(&["status", "extendedResourceClaimStatus"]) {
            true => Ok(()),
            false => self.refuse(format!("node {node:?} cannot update extended resource claim status")),
        }
    }

    fn eviction(&self) -> Result<(), Status> {
        let pod = self.other("pods", "pod", &self.operation.namespace, self.name())?;
        match self.has(&pod) {
            true => Ok(()),
            false => self
                .refuse(format!("node {} can only evict pods with spec.nodeName set to itself", self.node)),
        }
    }
}

/// What in the API a pod refers to, if anything: the first of it.
fn reference(pod: &Value) -> Option<&'static str> {
    if !text(pod, &["spec", "serviceAccountName"]).is_empty() {
        return Some("serviceaccounts");
    }
    let names = pod_names(pod);
    if names.secrets {
        return Some("secrets");
    }
    if names.config_maps {
        return Some("configmaps");
    }
    if !list(pod, &["spec", "resourceClaims"]).is_empty() {
        return Some("resourceclaims");
    }
    let has = |object: &Value, field: &str| object.get(field).is_some_and(|value| !value.is_null());
    list(pod, &["spec", "volumes"]).iter().find_map(|volume| {
        let direct = VOLUME_REFERENCES.iter().find(|(field, _)| has(volume, field));
        direct.map(|(_, referred)| *referred).or_else(|| {
            list(volume, &["projected", "sources"]).iter().find_map(|source| {
                let found = PROJECTED_REFERENCES.iter().find(|(field, _)| has(source, field));
                found.map(|(_, referred)| *referred)
            })
        })
    })
}
