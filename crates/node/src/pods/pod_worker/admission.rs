//! Admission of a pod that is new to this node.

use super::super::decide::EVICTED;
use super::super::sysctls;
use super::PodWorker;
use crate::eviction::{self, Eviction, EvictionCause};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::Reason;
use windlass_component_helpers::admission::{Rejection, admit};

impl PodWorker {
    /// Admits a new pod, or rejects it: because of node pressure, forbidden sysctls, or missing resources.
    pub(super) async fn admit(&mut self, pod: &Pod) {
        if !is_new(pod) {
            return;
        }
        let labels = self.node_labels_for(pod).await;
        let rejection = self.rejection(pod, labels.as_ref());
        let Some(Rejection { reason, message }) = rejection else { return };
        self.context.recorder.tell(pod, true, Reason::new(reason.clone(), message.clone()));
        self.state.eviction =
            Some(Eviction { message, at: self.now(), cause: EvictionCause::Rejected(reason) });
    }

    fn rejection(&self, pod: &Pod, labels: Option<&BTreeMap<String, String>>) -> Option<Rejection> {
        let context = &self.context;
        if let Some(message) = eviction::decide::rejected(pod, &context.pressure.borrow()) {
            return Some(Rejection { reason: EVICTED.to_owned(), message });
        }
        if let Some(message) = sysctls::rejected(pod, context.uses_host_network(pod)) {
            return Some(Rejection { reason: sysctls::FORBIDDEN.to_owned(), message });
        }
        // Under the lock: of two pods that need the same, exactly one is admitted.
        let mut admitted = context.admitted.lock();
        let is_here = |other: &Arc<Pod>| {
            let uid = other.metadata.uid.as_deref().unwrap_or_default();
            uid != self.uid && (admitted.contains(uid) || !is_new(other))
        };
        let others: Vec<Arc<Pod>> = context.pods.list().into_iter().filter(is_here).collect();
        let rejection = admit(pod, &others, &context.allocatable, &context.node, labels);
        if rejection.is_none() {
            admitted.insert(self.uid.clone());
        }
        rejection
    }

    /// The node's labels, if the pod selects by them; `None` if they cannot be read, since the scheduler has checked too.
    async fn node_labels_for(&self, pod: &Pod) -> Option<BTreeMap<String, String>> {
        let spec = pod.spec.as_ref()?;
        let affine = spec.affinity.as_ref().is_some_and(|affinity| affinity.node_affinity.is_some());
        let selects = spec.node_selector.as_ref().is_some_and(|selector| !selector.is_empty());
        if !affine && !selects {
            return None;
        }
        let nodes: Api<Node> = Api::all(self.context.client.clone());
        nodes.get(&self.context.node).await.ok().map(|node| node.metadata.labels.unwrap_or_default())
    }
}

fn is_new(pod: &Pod) -> bool {
    pod.status.as_ref().is_none_or(|status| status.start_time.is_none())
}
