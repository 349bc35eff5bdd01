//! What to do for a PersistentVolumeClaim and for a PersistentVolume.

use super::matching::{class_of, find_best_match, is_for, mismatch, requested, size};
use k8s_openapi::api::core::v1::{
    Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus,
};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_component_helpers::local_volumes::{
    PROVISIONED_BY, PROVISIONER, SELECTED_NODE, annotation, provisions_volumes, reference_to,
};

/// Set on a claim that was bound once.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Set when the controller, not a user, bound it: it may undo that.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// What was observed around a claim.
pub(super) struct ClaimContext<'a> {
    /// Candidate volumes.
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    /// The class that it names.
    pub(super) class: Option<&'a StorageClass>,
    /// The default class.
    pub(super) default_class: Option<&'a str>,
    /// The node that was selected for it.
    pub(super) node: Option<&'a Node>,
    /// The pods that use it and wait for a node.
    pub(super) waiting_pods: &'a [String],
}

/// One step for a claim.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Merge this into the volume.
    Volume(Arc<PersistentVolume>, Value),
    /// Merge this into the claim.
    Claim(Value),
    /// Make this the status of the claim.
    Status(Box<PersistentVolumeClaimStatus>),
    /// Provision a volume for it, on its node.
    Provision,
    /// Record an event: whether it is a warning, the reason and the message.
    Event(bool, &'static str, String),
}

/// What to do for a claim, one write at a time: each pass observes the result of the last one.
pub(super) fn claim_steps(claim: &PersistentVolumeClaim, context: &ClaimContext) -> Vec<Step> {
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    let volume = context.volumes.iter().find(|volume| volume.metadata.name.as_deref() == Some(named));
    if annotation(&claim.metadata, BIND_COMPLETED).is_some() {
        let lost = |reason, message: &str| mark_lost(claim, reason, message);
        return match volume {
            None if named.is_empty() => lost(
                "ClaimLost",
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
            ),
            None => {
                lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
            }
            Some(volume) if is_for(volume, claim) || claim_ref(volume).is_none() => bind(claim, volume),
            Some(_) => lost(
                "ClaimMisbound",
                "Two claims are bound to the same volume, this one is bound incorrectly",
            ),
        };
    }
    if !named.is_empty() {
        let Some(volume) = volume else { return pending(claim) };
        let why = match claim_ref(volume) {
            Some(_) if is_for(volume, claim) => return bind(claim, volume),
            Some(_) => {
                let message = format!("volume {named:?} already bound to a different claim.");
                Step::Event(true, "FailedBinding", message)
            }
            None => match mismatch(volume, claim) {
                None => return bind(claim, volume),
                Some(why) => {
                    let message = format!("Cannot bind to requested volume {named:?}: {why}");
                    Step::Event(true, "VolumeMismatch", message)
                }
            },
        };
        return with_pending(claim, why);
    }
    let waits = context
        .class
        .is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
    if let Some(volume) = find_best_match(context.volumes, claim, waits, context.node) {
        return bind(claim, &volume);
    }
    match class_of(claim) {
        None => match context.default_class {
            Some(class) => vec![Step::Claim(json!({ "spec": { "storageClassName": class } }))],
            None => without_class(claim),
        },
        Some("") => without_class(claim),
        Some(_) if waits && annotation(&claim.metadata, SELECTED_NODE).is_none() => {
            let (reason, message) = match context.waiting_pods {
                [] => {
                    let message = "waiting for first consumer to be created before binding";
                    ("WaitForFirstConsumer", message.to_owned())
                }
                [pod] => ("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
                pods => {
                    ("WaitForPodScheduled", format!("waiting for pods {} to be scheduled", pods.join(",")))
                }
            };
            with_pending(claim, Step::Event(false, reason, message))
        }
        Some(name) => match context.class {
            None => {
                let message = format!("storageclass.storage.k8s.io {name:?} not found");
                with_pending(claim, Step::Event(true, "ProvisioningFailed", message))
            }
            Some(class)
                if class.provisioner == PROVISIONER && !context.node.is_some_and(provisions_volumes) =>
            {
                vec![Step::Provision]
            }
            Some(class) => external_provisioning(claim, &class.provisioner),
        },
    }
}

/// An external provisioner provisions the volume: annotations tell it which claims are its own.
fn external_provisioning(claim: &PersistentVolumeClaim, provisioner: &str) -> Vec<Step> {
    const PROVISIONER_ANNOTATIONS: [&str; 2] =
        ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];
    let mut steps = Vec::new();
    if PROVISIONER_ANNOTATIONS.iter().any(|name| annotation(&claim.metadata, name) != Some(provisioner)) {
        let annotations =
            json!({ PROVISIONER_ANNOTATIONS[0]: provisioner, PROVISIONER_ANNOTATIONS[1]: provisioner });
        steps.push(Step::Claim(json!({ "metadata": { "annotations": annotations } })));
    }
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system \
         administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
    );
    steps.push(Step::Event(false, "ExternalProvisioning", message));
    steps
}

fn without_class(claim: &PersistentVolumeClaim) -> Vec<Step> {
    let message = "no persistent volumes available for this claim and no storage class is set";
    with_pending(claim, Step::Event(false, "FailedBinding", message.to_owned()))
}

fn with_pending(claim: &PersistentVolumeClaim, step: Step) -> Vec<Step> {
    let mut steps = pending(claim);
    steps.push(step);
    steps
}

fn pending(claim: &PersistentVolumeClaim) -> Vec<Step> {
    with_phase(claim, "Pending", None)
}

fn mark_lost(claim: &PersistentVolumeClaim, reason: &'static str, message: &str) -> Vec<Step> {
    let mut steps = with_phase(claim, "Lost", None);
    if !steps.is_empty() {
        steps.push(Step::Event(true, reason, message.to_owned()));
    }
    steps
}

/// The status with this phase, and the volume's access modes and capacity if it is bound.
fn with_phase(claim: &PersistentVolumeClaim, phase: &str, volume: Option<&PersistentVolume>) -> Vec<Step> {
    let mut status = claim.status.clone().unwrap_or_default();
    status.phase = Some(phase.to_owned());
    let offered = volume.and_then(|volume| volume.spec.as_ref());
    status.access_modes = offered.and_then(|spec| spec.access_modes.clone());
    status.capacity = offered.and_then(|spec| spec.capacity.clone());
    if claim.status.as_ref() == Some(&status) { Vec::new() } else { vec![Step::Status(Box::new(status))] }
}

pub(super) fn claim_ref(volume: &PersistentVolume) -> Option<&ObjectReference> {
    volume.spec.as_ref()?.claim_ref.as_ref()
}

/// The next step of a binding: the volume refers to the claim, the claim to the volume, and the statuses say Bound.
fn bind(claim: &PersistentVolumeClaim, volume: &Arc<PersistentVolume>) -> Vec<Step> {
    let uid = claim_ref(volume).and_then(|reference| reference.uid.as_ref()).filter(|uid| !uid.is_empty());
    let version = &volume.metadata.resource_version;
    if uid.is_none() {
        let mut patch = json!({
            "metadata": { "resourceVersion": version },
            "spec": { "claimRef": reference_to(claim) },
        });
        if claim_ref(volume).is_none() {
            patch["metadata"]["annotations"] = json!({ BOUND_BY_CONTROLLER: "yes" });
        }
        return vec![Step::Volume(volume.clone(), patch)];
    }
    let ours = annotation(&volume.metadata, PROVISIONED_BY) == Some(PROVISIONER);
    if ours && requested(claim) > size(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref())) {
        // Volumes of our own grow with the request.
        let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
        let storage = resources.and_then(|resources| resources.requests.as_ref()?.get("storage"));
        let patch = json!({
            "metadata": { "resourceVersion": version },
            "spec": { "capacity": { "storage": storage } },
        });
        return vec![Step::Volume(volume.clone(), patch)];
    }
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    let completed = annotation(&claim.metadata, BIND_COMPLETED).is_some();
    if named.is_empty() || !completed {
        let mut annotations = json!({ BIND_COMPLETED: "yes" });
        if named.is_empty() {
            annotations[BOUND_BY_CONTROLLER] = "yes".into();
        }
        let patch = json!({
            "metadata": { "annotations": annotations, "resourceVersion": claim.metadata.resource_version },
            "spec": { "volumeName": volume.metadata.name },
        });
        return vec![Step::Claim(patch)];
    }
    with_phase(claim, "Bound", Some(volume))
}

/// What to do for a volume.
#[derive(Debug, PartialEq)]
pub(super) enum VolumeStep {
    /// It is in this phase, for this reason.
    Phase(&'static str, String),
    /// Delete it: its claim is gone, and it was provisioned for that claim.
    Delete,
    /// Unbind it: its claim is bound to another volume.
    Unbind(Value),
    /// The claim's reconcile is next.
    Leave,
}

/// What to do for a volume, given the claim that it refers to, if that exists.
pub(super) fn volume_step(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> VolumeStep {
    let uid = claim_ref(volume).and_then(|reference| reference.uid.as_deref()).unwrap_or_default();
    if uid.is_empty() {
        return VolumeStep::Phase("Available", String::new());
    }
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let released = matches!(phase, Some("Released" | "Failed"));
    let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_deref() == Some(uid)) else {
        if !released {
            return VolumeStep::Phase("Released", String::new());
        }
        return reclaim(volume);
    };
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    if named.is_empty() {
        return VolumeStep::Leave;
    }
    if Some(named) == volume.metadata.name.as_deref() {
        return VolumeStep::Phase("Bound", String::new());
    }
    if annotation(&volume.metadata, PROVISIONED_BY).is_some() && policy(volume) == "Delete" {
        return if released { reclaim(volume) } else { VolumeStep::Phase("Released", String::new()) };
    }
    match annotation(&volume.metadata, BOUND_BY_CONTROLLER) {
        Some(_) => VolumeStep::Unbind(json!({
            "metadata": { "annotations": { BOUND_BY_CONTROLLER: null } }, "spec": { "claimRef": null },
        })),
        None => {
            VolumeStep::Unbind(json!({ "spec": { "claimRef": { "uid": null, "resourceVersion": null } } }))
        }
    }
}

fn policy(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()).unwrap_or("Retain")
}

fn reclaim(volume: &PersistentVolume) -> VolumeStep {
    if policy(volume) != "Delete" || volume.metadata.deletion_timestamp.is_some() {
        return VolumeStep::Leave;
    }
    match annotation(&volume.metadata, PROVISIONED_BY) {
        Some(PROVISIONER) => VolumeStep::Delete,
        // Its external provisioner deletes it.
        Some(_) => VolumeStep::Leave,
        None => {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            let why = "no deletable volume plugin matched";
            VolumeStep::Phase(
                "Failed",
                format!("error getting deleter volume plugin for volume {name:?}: {why}"),
            )
        }
    }
}
