//! What the scheduler writes: bindings, the condition of unschedulable pods, and events.

use super::Scheduler;
use super::info::PodInfo;
use super::preemption::Candidate;
use super::volume_binding::{SELECTED_NODE, selected_node};
use k8s_openapi::api::core::v1::Pod;
use kube::Error;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use windlass::{Key, Reason};

/// How long a pod waits for its volumes to be provisioned before it is retried.
const BIND_TIMEOUT: Duration = Duration::from_secs(600);

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Done,
    /// There is nothing more to do: the pod is gone, or bound already.
    Moot,
    Failed,
}

impl Scheduler {
    /// Binds a pod to a node.
    pub(super) async fn bind(
        &self,
        pod: &Pod,
        info: &PodInfo,
        node: &str,
        permit: OwnedSemaphorePermit,
    ) -> Written {
        let mut permit = Some(permit);
        if !info.claims.is_empty() {
            // Provisioning may take long: it must not hold up other bindings.
            drop(permit.take());
            if !self.bind_volumes(info, node).await {
                return Written::Failed;
            }
            permit = self.writes.clone().acquire_owned().await.ok();
        }
        let _permit = permit;
        let name = info.key.name();
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": { "name": name, "namespace": info.namespace, "uid": info.uid },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        let to = format!("{}/binding", path(&info.key));
        match self.send(http::Method::POST, &to, "application/json", &binding).await {
            Ok(_) => {
                let message = format!("Successfully assigned {}/{name} to {node}", info.namespace);
                self.recorder.tell(pod, false, Reason::new("Scheduled", message));
                Written::Done
            }
            // Gone, or bound by somebody else: the watch shows it, and corrects the assumption.
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {
                self.known.lock().state.forget_assumed(&info.key);
                Written::Moot
            }
            Err(error) => {
                let message = format!("binding rejected: {error}");
                self.recorder.tell(pod, true, Reason::new("FailedScheduling", message));
                Written::Failed
            }
        }
    }

    /// Annotates the claims of a pod with its node, and waits until they are bound.
    async fn bind_volumes(&self, info: &PodInfo, node: &str) -> bool {
        for claim in self.volumes.unbound_claims(info) {
            if selected_node(&claim).is_some_and(|selected| selected == node) {
                continue;
            }
            let patch =
                json!({ "metadata": { "uid": claim.metadata.uid, "annotations": { SELECTED_NODE: node } } });
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims/{name}", info.namespace);
            if self.send(http::Method::PATCH, &path, "application/merge-patch+json", &patch).await.is_err() {
                return false;
            }
        }
        let changed = Arc::new(Notify::new());
        let rings = changed.clone();
        let _listening = self.volumes.claims.listen_while(Arc::new(move |_| rings.notify_one()));
        let bound = async {
            while !self.volumes.are_bound(info) {
                changed.notified().await;
            }
        };
        self.clock.timeout(BIND_TIMEOUT, bound).await.is_ok()
    }

    /// Reports that a pod is unschedulable, and deletes the victims of its preemption if there are any.
    pub(super) async fn mark_unschedulable(&self, pod: &Pod, message: String, candidate: Option<Candidate>) {
        self.recorder.tell(pod, true, Reason::new("FailedScheduling", message.clone()));
        let node = candidate.as_ref().map(|candidate| candidate.node.as_str());
        if let Some(candidate) = &candidate {
            for victim in &candidate.victims {
                self.preempt(pod, victim).await;
            }
        }
        let status = pod.status.as_ref();
        let before = crate::pods::condition(pod, "PodScheduled");
        let nominated = status.and_then(|status| status.nominated_node_name.as_deref());
        let said = before.is_some_and(|before| {
            before.status == "False"
                && before.reason.as_deref() == Some("Unschedulable")
                && before.message.as_deref() == Some(&message)
        });
        if said && nominated == node {
            return;
        }
        let since = before.filter(|before| before.status == "False");
        let since = since.and_then(|before| before.last_transition_time.clone());
        let now = self.clock.now();
        let now = windlass_clock::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        let mut patch = json!({
            "metadata": { "uid": pod.metadata.uid },
            "status": { "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                "observedGeneration": pod.metadata.generation,
                "lastTransitionTime": since.map_or_else(|| Value::from(now), |since| json!(since)),
            }] },
        });
        if nominated != node && node.is_some() {
            patch["status"]["nominatedNodeName"] = json!(node);
        }
        let key = Key::of("".into(), &pod.metadata);
        let path = format!("{}/status", path(&key));
        match self.send(http::Method::PATCH, &path, "application/strategic-merge-patch+json", &patch).await {
            Ok(answer) => drop(self.pods.wrote_text(answer.as_bytes(), None)),
            Err(error) => tracing::debug!(pod = %key, "cannot update the condition PodScheduled: {error}"),
        }
    }

    /// Deletes a pod to make room for one of higher priority.
    async fn preempt(&self, by: &Pod, victim: &PodInfo) {
        let now = self.clock.now();
        let now = windlass_clock::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        let name = by.metadata.name.as_deref().unwrap_or_default();
        let message = format!("{}: preempting to accommodate a higher priority pod", super::NAME);
        let patch = json!({
            "metadata": { "uid": victim.uid },
            "status": { "conditions": [{
                "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
                "message": message, "lastTransitionTime": now,
            }] },
        });
        let place = path(&victim.key);
        let marked = format!("{place}/status");
        let sent =
            self.send(http::Method::PATCH, &marked, "application/strategic-merge-patch+json", &patch).await;
        if let Err(Error::Api(status)) = &sent
            && matches!(status.code, 404 | 409)
        {
            return;
        }
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": victim.uid },
        });
        if let Err(error) = self.send(http::Method::DELETE, &place, "application/json", &options).await {
            tracing::debug!(pod = %victim.key, "cannot delete the preemption victim: {error}");
            return;
        }
        if let Some(pod) = self.pods.get(&victim.key) {
            let by_uid = by.metadata.uid.as_deref().unwrap_or_default();
            let message = format!("Preempted by pod {by_uid} on node {}", victim.node);
            tracing::debug!(pod = %victim.key, by = name, "preempted");
            self.recorder.tell(&*pod, false, Reason::new("Preempted", message));
        }
    }

    async fn send(
        &self,
        method: http::Method,
        path: &str,
        media: &str,
        body: &Value,
    ) -> Result<String, Error> {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{path}?fieldManager=kube-scheduler"))
            .header(http::header::CONTENT_TYPE, media)
            .body(body.to_string().into_bytes());
        self.client.request_text(request.map_err(Error::HttpError)?).await
    }
}

fn path(key: &Key) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", key.namespace().unwrap_or_default(), key.name())
}
