//! Claims of pods: whether they are there, where their volumes can be reached, and which wait to be told of a node.

use super::info::{NodeFacts, PodFacts};
use super::node_affinity::fits;
use crate::controller_ref::controller_of;
use crate::pods::Claimed;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use std::sync::Arc;
use windlass::Key;
use windlass::cache::{Cache, Listener, Store};

/// Tells a claim for which node its volume is to be made.
pub(super) const SELECTED: &str = "volume.kubernetes.io/selected-node";

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

    /// Waits until they are known.
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

    /// Whether a pod's claims are such that it can be scheduled at all.
    pub(super) fn check(&self, pod: &PodFacts) -> Result<(), String> {
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

    /// Whether the volumes of a pod can be reached from a node.
    pub(super) fn ask(&self, pod: &PodFacts, node: &NodeFacts) -> Result<(), &'static str> {
        for claim in pod.claims.iter().filter_map(|name| self.claim(pod, name)) {
            if !is_bound(&claim) {
                let elsewhere = |to: &String| *to != node.name;
                if selected(&claim).is_some_and(elsewhere) {
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

    /// The claims of a pod that wait to be told of its node.
    pub(super) fn to_tell(&self, pod: &PodFacts) -> Vec<Arc<PersistentVolumeClaim>> {
        let claims = pod.claims.iter().filter_map(|name| self.claim(pod, name));
        claims.filter(|claim| !is_bound(claim)).collect()
    }

    /// Whether all claims of a pod have their volumes.
    pub(super) fn are_bound(&self, pod: &PodFacts) -> bool {
        pod.claims.iter().all(|name| self.claim(pod, name).is_some_and(|claim| is_bound(&claim)))
    }

    fn claim(&self, pod: &PodFacts, claimed: &Claimed) -> Option<Arc<PersistentVolumeClaim>> {
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

/// The node that a claim was told of.
pub(super) fn selected(claim: &PersistentVolumeClaim) -> Option<&String> {
    claim.metadata.annotations.as_ref()?.get(SELECTED)
}
