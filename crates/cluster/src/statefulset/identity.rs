//! The identity of a StatefulSet's pod: its ordinal, names, labels and volumes.

use crate::{history, pods};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// A StatefulSet, with frequently used values at hand.
pub(super) struct Set<'a> {
    pub(super) meta: &'a ObjectMeta,
    pub(super) spec: &'a StatefulSetSpec,
    pub(super) name: &'a str,
    /// The first ordinal.
    pub(super) start: i64,
    /// The number of replicas.
    pub(super) replicas: i64,
    pub(super) min_ready_seconds: i32,
    /// Whether pods are managed in order (OrderedReady), and not in parallel.
    pub(super) ordered: bool,
}

impl<'a> Set<'a> {
    /// None for a set without a spec, which the API does not admit.
    pub(super) fn of(set: &'a StatefulSet) -> Option<Self> {
        let spec = set.spec.as_ref()?;
        Some(Self {
            meta: &set.metadata,
            spec,
            name: set.metadata.name.as_deref()?,
            start: spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default().into(),
            replicas: spec.replicas.unwrap_or(1).into(),
            min_ready_seconds: spec.min_ready_seconds.unwrap_or_default(),
            ordered: spec.pod_management_policy.as_deref() != Some("Parallel"),
        })
    }

    /// Whether a pod with this ordinal is a replica.
    pub(super) fn wants(&self, ordinal: i64) -> bool {
        (self.start..self.start + self.replicas).contains(&ordinal)
    }

    /// The ordinal in the name of one of its pods; none for other names.
    pub(super) fn ordinal(&self, pod: &Pod) -> Option<i64> {
        let digits = pod.metadata.name.as_deref()?.strip_prefix(self.name)?.strip_prefix('-')?;
        let ordinal = digits.parse::<i32>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
        ordinal.map(i64::from)
    }

    pub(super) fn pod_name(&self, ordinal: i64) -> String {
        format!("{}-{ordinal}", self.name)
    }

    fn claim_templates(&self) -> impl Iterator<Item = &'a PersistentVolumeClaim> {
        self.spec.volume_claim_templates.iter().flatten()
    }

    fn claim_name(&self, template: &PersistentVolumeClaim, ordinal: i64) -> String {
        format!("{}-{}-{ordinal}", template.metadata.name.as_deref().unwrap_or_default(), self.name)
    }

    /// The names of the claims of the pod with this ordinal.
    pub(super) fn claim_names(&self, ordinal: i64) -> impl Iterator<Item = String> {
        self.claim_templates().map(move |template| self.claim_name(template, ordinal))
    }

    /// The claims of the pod with this ordinal.
    pub(super) fn claims(&self, ordinal: i64) -> Vec<PersistentVolumeClaim> {
        let selected = self.spec.selector.match_labels.iter().flatten();
        let selected: Vec<_> = selected.map(|(key, value)| (key.clone(), value.clone())).collect();
        let claim = |template: &PersistentVolumeClaim| {
            let mut labels = template.metadata.labels.clone().unwrap_or_default();
            labels.extend(selected.iter().cloned());
            let metadata = ObjectMeta {
                name: Some(self.claim_name(template, ordinal)),
                namespace: self.meta.namespace.clone(),
                labels: Some(labels),
                annotations: template.metadata.annotations.clone(),
                finalizers: template.metadata.finalizers.clone(),
                ..ObjectMeta::default()
            };
            PersistentVolumeClaim { metadata, spec: template.spec.clone(), status: None }
        };
        self.claim_templates().map(claim).collect()
    }

    /// A new pod with this ordinal.
    pub(super) fn pod(
        &self,
        ordinal: i64,
        template: &PodTemplateSpec,
        revision: &str,
        owner: OwnerReference,
    ) -> Pod {
        let mut pod = pods::from_template(template, self.meta.namespace.as_deref(), owner);
        pod.metadata.name = Some(self.pod_name(ordinal));
        self.set_identity_labels(&mut pod, ordinal);
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert(history::HASH_LABEL.to_owned(), revision.to_owned());
        if let Some(spec) = &mut pod.spec {
            // Set once: they are immutable.
            spec.hostname = Some(self.pod_name(ordinal));
            spec.subdomain = self.spec.service_name.clone();
        }
        self.set_claim_volumes(&mut pod, ordinal);
        pod
    }

    fn set_identity_labels(&self, pod: &mut Pod, ordinal: i64) {
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert(POD_NAME.to_owned(), self.pod_name(ordinal));
        labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
    }

    /// Sets the volumes of the claims, in place of volumes with their names.
    fn set_claim_volumes(&self, pod: &mut Pod, ordinal: i64) {
        let Some(spec) = &mut pod.spec else { return };
        let volume = |template: &PersistentVolumeClaim| Volume {
            name: template.metadata.name.clone().unwrap_or_default(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: self.claim_name(template, ordinal),
                read_only: None,
            }),
            ..Volume::default()
        };
        let mut volumes: Vec<Volume> = self.claim_templates().map(volume).collect();
        let claimed = volumes.len();
        for other in spec.volumes.take().unwrap_or_default() {
            if !volumes[..claimed].iter().any(|volume| volume.name == other.name) {
                volumes.push(other);
            }
        }
        spec.volumes = Some(volumes).filter(|volumes| !volumes.is_empty());
    }

    /// The pod with its identity and storage, if they do not match.
    pub(super) fn with_identity(&self, pod: &Pod, ordinal: i64) -> Option<Pod> {
        let labels = pod.metadata.labels.as_ref();
        let known = labels.and_then(|labels| labels.get(POD_NAME)) == pod.metadata.name.as_ref();
        let volumes = || pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let claimed = |template: &PersistentVolumeClaim| {
            let volume = volumes().find(|volume| Some(&volume.name) == template.metadata.name.as_ref());
            let claim = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
            claim.is_some_and(|claim| claim.claim_name == self.claim_name(template, ordinal))
        };
        if known && self.claim_templates().all(claimed) {
            return None;
        }
        let mut updated = pod.clone();
        self.set_identity_labels(&mut updated, ordinal);
        self.set_claim_volumes(&mut updated, ordinal);
        Some(updated)
    }
}

/// The revision that a pod was made from.
pub(super) fn revision(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(history::HASH_LABEL).map(String::as_str)
}
