//! PersistentVolumeClaims of pods: whether they exist, from which nodes their volumes can be used, and which wait for a
//! selected node.

use super::info::{NodeInfo, PodInfo};
use super::node_affinity::fits;
use crate::controller_ref::controller_of;
use crate::pods::Claimed;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use std::sync::Arc;
use windlass::Key;
use windlass::cache::{Cache, Listener, Store};

/// The annotation with the node that was selected for a claim.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The claims, volumes and classes of the cluster.
#[derive(Debug, Clone)]
pub(super) struct Volumes {
    pub(super) claims: Arc<Store<PersistentVolumeClaim>>,
    volumes: Arc<Store<PersistentVolume>>,
    classes: Arc<Store<StorageClass>>,
}

impl Volumes {
    pub(super) fn of(cache: &Cache) -> Self {
        Self { claims: cache.store(), volumes: cache.store(), classes: cache.store() }
    }

    /// Waits until the caches are synced.
    pub(super) async fn synced(&self) {
        self.claims.synced().await;
        self.volumes.synced().await;
        self.classes.synced().await;
    }

    /// Calls `listener` for every change of a claim, a volume or a class.
    pub(super) fn listen(&self, listener: Listener) {
        self.claims.listen(listener.clone());
        self.volumes.listen(listener.clone());
        self.classes.listen(listener);
    }

    /// Whether the claims of a pod allow it to be scheduled at all.
    pub(super) fn check(&self, pod: &PodInfo) -> Result<(), String> {
        for claimed in &pod.claims {
            let name = &claimed.name;
            let Some(claim) = self.claim(pod, claimed) else {
                return Err(match claimed.ephemeral {
                    true => format!(
                        "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
                    ),
                    false => format!("persistentvolumeclaim {name:?} not found"),
                });
            };
            if claim.metadata.deletion_timestamp.is_some() {
                return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
            }
            if claimed.ephemeral && controller_of(&claim.metadata).is_none_or(|owner| owner.uid != pod.uid) {
                return Err(crate::volume::not_made_for(name, &pod.namespace, pod.key.name()));
            }
            if !is_bound(&claim) && !self.waits_for_a_node(&claim) {
                return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
            }
        }
        Ok(())
    }

    /// Whether the volumes of a pod are usable on a node.
    pub(super) fn check_node(&self, pod: &PodInfo, node: &NodeInfo) -> Result<(), &'static str> {
        for claim in pod.claims.iter().filter_map(|name| self.claim(pod, name)) {
            if !is_bound(&claim) {
                let elsewhere = |to: &String| *to != node.name;
                if selected_node(&claim).is_some_and(elsewhere) {
                    return Err("node(s) didn't match the node that a claim waits for");
                }
                continue;
            }
            let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
            let Some(volume) = self.volumes.get(&Key::new(self.volumes.cluster().clone(), None, name)) else {
                return Err("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)");
            };
            let required =
                volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
            if required
                .is_some_and(|required| !required.node_selector_terms.iter().any(|term| fits(term, node)))
            {
                return Err("node(s) didn't match PersistentVolume's node affinity");
            }
        }
        Ok(())
    }

    /// The unbound claims of a pod, which wait for a selected node.
    pub(super) fn unbound_claims(&self, pod: &PodInfo) -> Vec<Arc<PersistentVolumeClaim>> {
        let claims = pod.claims.iter().filter_map(|name| self.claim(pod, name));
        claims.filter(|claim| !is_bound(claim)).collect()
    }

    /// Whether all claims of a pod are bound.
    pub(super) fn are_bound(&self, pod: &PodInfo) -> bool {
        pod.claims.iter().all(|name| self.claim(pod, name).is_some_and(|claim| is_bound(&claim)))
    }

    fn claim(&self, pod: &PodInfo, claimed: &Claimed) -> Option<Arc<PersistentVolumeClaim>> {
        self.claims.get(&Key::new(self.claims.cluster().clone(), Some(&pod.namespace), &claimed.name))
    }

    fn waits_for_a_node(&self, claim: &PersistentVolumeClaim) -> bool {
        let Some(name) = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()) else {
            return false;
        };
        let class = self.classes.get(&Key::new(self.classes.cluster().clone(), None, name));
        class.is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"))
    }
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    let named =
        claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).is_some_and(|name| !name.is_empty());
    named && claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
}

/// The node that was selected for a claim.
pub(super) fn selected_node(claim: &PersistentVolumeClaim) -> Option<&String> {
    claim.metadata.annotations.as_ref()?.get(SELECTED_NODE)
}
