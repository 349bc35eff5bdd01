//! Questions about pods that several controllers ask, and how a pod is built from a template.

use crate::controller_ref::controller_of;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::sync::Arc;
use windlass::cache::{Cache, Index};

/// The pod's condition of this type.
pub(crate) fn condition<'a>(pod: &'a Pod, of: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == of)
}

/// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`; empty if it is not set.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether it is in a terminal phase: it will not run again.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether it is being deleted.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether it counts as a replica: neither terminal nor terminating.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && !is_terminating(pod)
}

/// Whether its condition Ready is true.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Whether it has been ready for `min_ready_seconds`.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    is_ready(pod) && available_at(pod, min_ready_seconds).is_some_and(|at| at <= now)
}

/// When a ready pod becomes available, if its state does not change.
pub(crate) fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    let since = condition(pod, "Ready").filter(|ready| ready.status == "True")?.last_transition_time.as_ref();
    match (min_ready_seconds, since) {
        // Whatever the clock was then: it may have been set back since.
        (0, _) => Some(Timestamp::MIN),
        (_, None) => None,
        (seconds, Some(since)) => since.0.checked_add(jiff::SignedDuration::from_secs(seconds.into())).ok(),
    }
}

/// The node that it is bound to.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Pods by the node that they are bound to.
pub(crate) const BY_NODE: Index<Pod> =
    Index::new("node", |pod| node_of(pod).map(str::to_owned).into_iter().collect());

/// Drops the fields that neither controllers nor the scheduler nor nodes read: with thousands of pods, they are most of the
/// cache. Whoever writes a whole pod reads it live first.
pub(crate) fn strip_unused_fields(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    if let Some(status) = &mut pod.status {
        status.conditions.iter_mut().for_each(Vec::shrink_to_fit);
        status.container_statuses.iter_mut().for_each(Vec::shrink_to_fit);
        status.init_container_statuses.iter_mut().for_each(Vec::shrink_to_fit);
        status.pod_ips.iter_mut().for_each(Vec::shrink_to_fit);
        status.host_ips.iter_mut().for_each(Vec::shrink_to_fit);
    }
    let Some(spec) = &mut pod.spec else { return };
    spec.security_context = None;
    spec.ephemeral_containers = None;
    spec.image_pull_secrets = None;
    spec.dns_config = None;
    spec.host_aliases = None;
    spec.tolerations.iter_mut().for_each(Vec::shrink_to_fit);
    if let Some(volumes) = &mut spec.volumes {
        volumes.retain(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some());
        volumes.shrink_to_fit();
    }
    spec.volumes.take_if(|volumes| volumes.is_empty());
    let light = |container: &mut Container| {
        *container = Container {
            name: std::mem::take(&mut container.name),
            image: container.image.take(),
            ports: container.ports.take(),
            resources: container.resources.take(),
            restart_policy: container.restart_policy.take(),
            ..Container::default()
        };
    };
    spec.containers.iter_mut().for_each(light);
    spec.containers.shrink_to_fit();
    spec.init_containers.iter_mut().flatten().for_each(light);
}

/// Pods without a controller, by namespace: those that can be adopted.
const ORPHANS: Index<Pod> = Index::new("orphans", |pod| match controller_of(&pod.metadata) {
    None => vec![pod.metadata.namespace.clone().unwrap_or_default()],
    Some(_) => Vec::new(),
});

/// The pods that an object owns, and the pods of its namespace without a controller: all that it may have to adopt or release,
/// at a cost that does not grow with the pods of others.
pub(crate) fn own_and_orphans(cache: &Cache, owner: &ObjectMeta) -> Vec<Arc<Pod>> {
    let store = cache.store::<Pod>();
    let mut pods = store.owned_by(owner.uid.as_deref().unwrap_or_default());
    pods.extend(store.find(ORPHANS, owner.namespace.as_deref().unwrap_or_default()));
    pods
}

/// A PersistentVolumeClaim that a volume of a pod refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) name: String,
    /// Whether it is created for the pod from a template (generic ephemeral volume), and deleted with it.
    pub(crate) ephemeral: bool,
}

/// The claims that a pod's volumes refer to, or that are created for it.
pub(crate) fn claims(pod: &Pod) -> impl Iterator<Item = Claimed> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(move |volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => Some(Claimed { name: claim.claim_name.clone(), ephemeral: false }),
        (None, Some(_)) => Some(Claimed { name: ephemeral_claim(name, &volume.name), ephemeral: true }),
        (None, None) => None,
    })
}

/// The name of the claim of a pod's ephemeral volume.
pub(crate) fn ephemeral_claim(pod: &str, volume: &str) -> String {
    format!("{pod}-{volume}")
}

/// The `generateName` of an object's pods.
pub(crate) fn prefix(owner: &str) -> String {
    format!("{owner}-")
}

/// A time as the API stores it.
pub(crate) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// A pod from a template, with this controller. It has no name: the caller sets one, or has one generated.
pub(crate) fn from_template(
    template: &PodTemplateSpec,
    namespace: Option<&str>,
    owner: OwnerReference,
) -> Pod {
    let written = template.metadata.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        namespace: namespace.map(str::to_owned),
        labels: written.labels,
        annotations: written.annotations,
        finalizers: written.finalizers,
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec.clone(), status: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::PodStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn ready_since(since: &str) -> Pod {
        let ready = PodCondition {
            type_: "Ready".into(),
            status: "True".into(),
            last_transition_time: Some(Time(since.parse().unwrap())),
            ..PodCondition::default()
        };
        let status = PodStatus { conditions: Some(vec![ready]), ..PodStatus::default() };
        Pod { status: Some(status), ..Pod::default() }
    }

    #[test]
    fn a_pod_is_available_once_it_was_ready_long_enough() {
        let pod = ready_since("2026-01-01T00:00:00Z");
        let at = |text: &str| text.parse().unwrap();
        assert!(is_available(&pod, 0, at("2026-01-01T00:00:00Z")));
        assert!(!is_available(&pod, 10, at("2026-01-01T00:00:09Z")));
        assert!(is_available(&pod, 10, at("2026-01-01T00:00:10Z")));
        assert!(!is_available(&Pod::default(), 0, at("2026-01-01T00:00:10Z")));
        assert!(is_available(&pod, 0, at("2025-01-01T00:00:00Z")), "a clock that was set back is no matter");
    }
}
