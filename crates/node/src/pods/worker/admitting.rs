//! Whether a pod that is new here is taken in.

use super::super::decide::EVICTED;
use super::super::known::{Cause, Evicted};
use super::super::sysctls;
use super::Worker;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::Reason;

impl Worker {
    /// Takes a new pod in, unless the machine is short of what it needs, others have it, or it must not have what it asks for.
    pub(super) async fn admit(&mut self, pod: &Pod) {
        if !is_new(pod) {
            return;
        }
        let labels = self.labels_for(pod).await;
        let refused = self.refused(pod, labels.as_ref());
        let Some((reason, message)) = refused else { return };
        self.site.recorder.tell(pod, true, Reason::new(reason.clone(), message.clone()));
        self.known.evicted = Some(Evicted { message, at: self.now(), cause: Cause::Refusal(reason) });
    }

    fn refused(&self, pod: &Pod, labels: Option<&BTreeMap<String, String>>) -> Option<(String, String)> {
        let site = &self.site;
        if let Some(message) = crate::pressure::judge::refused(pod, &site.short.borrow()) {
            return Some((EVICTED.to_owned(), message));
        }
        if let Some(message) = sysctls::refused(pod, site.on_host_network(pod)) {
            return Some((sysctls::FORBIDDEN.to_owned(), message));
        }
        // One after the other: two that want the same must not both find it free, nor both find it taken.
        let mut admitted = site.admitted.lock();
        let is_here = |other: &Arc<Pod>| {
            let uid = other.metadata.uid.as_deref().unwrap_or_default();
            uid != self.uid && (admitted.contains(uid) || !is_new(other))
        };
        let others: Vec<Arc<Pod>> = site.pods.list().into_iter().filter(is_here).collect();
        let refused = windlass_cluster::refusal(pod, &others, &site.allocatable, &site.node, labels);
        if refused.is_none() {
            admitted.insert(self.uid.clone());
        }
        refused
    }

    /// The node's labels, where the pod asks for some; none where they cannot be read, since the scheduler has looked too.
    async fn labels_for(&self, pod: &Pod) -> Option<BTreeMap<String, String>> {
        let spec = pod.spec.as_ref()?;
        let affine = spec.affinity.as_ref().is_some_and(|affinity| affinity.node_affinity.is_some());
        let selects = spec.node_selector.as_ref().is_some_and(|selector| !selector.is_empty());
        if !affine && !selects {
            return None;
        }
        let nodes: Api<Node> = Api::all(self.site.client.clone());
        nodes.get(&self.site.node).await.ok().map(|node| node.metadata.labels.unwrap_or_default())
    }
}

fn is_new(pod: &Pod) -> bool {
    pod.status.as_ref().is_none_or(|status| status.start_time.is_none())
}
