//! What is to be done for a claim, and for a volume.

use super::matching::{best, class_of, is_for, misfit, requested, size};
use k8s_openapi::api::core::v1::{
    Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus,
};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_component_helpers::local_volumes::{
    PROVISIONED_BY, PROVISIONER, SELECTED_NODE, annotation, provisions_volumes, reference_to,
};

/// A claim that was bound once.
const COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Bound by us, not by a user: we may undo it.
const BY_US: &str = "pv.kubernetes.io/bound-by-controller";

/// What there is for a claim.
pub(super) struct Around<'a> {
    /// The volumes that may be for it.
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    /// The class that it names.
    pub(super) class: Option<&'a StorageClass>,
    /// The class of those that leave it open.
    pub(super) default_class: Option<&'a str>,
    /// The node that was selected for it.
    pub(super) node: Option<&'a Node>,
    /// The pods that use it and wait for a node.
    pub(super) waiting_pods: &'a [String],
}

/// One thing to do for a claim.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Merge this into the volume.
    Volume(Arc<PersistentVolume>, Value),
    /// Merge this into the claim.
    Claim(Value),
    /// Make this the status of the claim.
    Status(Box<PersistentVolumeClaimStatus>),
    /// Make a volume for it, on its node.
    Provision,
    /// Say something: whether it is a warning, the reason and the message.
    Tell(bool, &'static str, String),
}

/// What is to be done for a claim, one write after the other: each pass sees what the last one did.
pub(super) fn claim_steps(claim: &PersistentVolumeClaim, around: &Around) -> Vec<Step> {
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    let volume = around.volumes.iter().find(|volume| volume.metadata.name.as_deref() == Some(named));
    if annotation(&claim.metadata, COMPLETED).is_some() {
        let lost = |reason, message: &str| lose(claim, reason, message);
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
                Step::Tell(true, "FailedBinding", message)
            }
            None => match misfit(volume, claim) {
                None => return bind(claim, volume),
                Some(why) => {
                    let message = format!("Cannot bind to requested volume {named:?}: {why}");
                    Step::Tell(true, "VolumeMismatch", message)
                }
            },
        };
        return with_pending(claim, why);
    }
    let waits = around
        .class
        .is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
    if let Some(volume) = best(around.volumes, claim, waits, around.node) {
        return bind(claim, &volume);
    }
    match class_of(claim) {
        None => match around.default_class {
            Some(class) => vec![Step::Claim(json!({ "spec": { "storageClassName": class } }))],
            None => without_class(claim),
        },
        Some("") => without_class(claim),
        Some(_) if waits && annotation(&claim.metadata, SELECTED_NODE).is_none() => {
            let (reason, message) = match around.waiting_pods {
                [] => {
                    let message = "waiting for first consumer to be created before binding";
                    ("WaitForFirstConsumer", message.to_owned())
                }
                [pod] => ("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
                pods => {
                    ("WaitForPodScheduled", format!("waiting for pods {} to be scheduled", pods.join(",")))
                }
            };
            with_pending(claim, Step::Tell(false, reason, message))
        }
        Some(name) => match around.class {
            None => {
                let message = format!("storageclass.storage.k8s.io {name:?} not found");
                with_pending(claim, Step::Tell(true, "ProvisioningFailed", message))
            }
            Some(class)
                if class.provisioner == PROVISIONER && !around.node.is_some_and(provisions_volumes) =>
            {
                vec![Step::Provision]
            }
            Some(class) => elsewhere(claim, &class.provisioner),
        },
    }
}

/// Somebody else makes the volume: they are told which claims are theirs.
fn elsewhere(claim: &PersistentVolumeClaim, provisioner: &str) -> Vec<Step> {
    const THEIRS: [&str; 2] =
        ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];
    let mut steps = Vec::new();
    if THEIRS.iter().any(|name| annotation(&claim.metadata, name) != Some(provisioner)) {
        let annotations = json!({ THEIRS[0]: provisioner, THEIRS[1]: provisioner });
        steps.push(Step::Claim(json!({ "metadata": { "annotations": annotations } })));
    }
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system \
         administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
    );
    steps.push(Step::Tell(false, "ExternalProvisioning", message));
    steps
}

fn without_class(claim: &PersistentVolumeClaim) -> Vec<Step> {
    let message = "no persistent volumes available for this claim and no storage class is set";
    with_pending(claim, Step::Tell(false, "FailedBinding", message.to_owned()))
}

fn with_pending(claim: &PersistentVolumeClaim, step: Step) -> Vec<Step> {
    let mut steps = pending(claim);
    steps.push(step);
    steps
}

fn pending(claim: &PersistentVolumeClaim) -> Vec<Step> {
    in_phase(claim, "Pending", None)
}

fn lose(claim: &PersistentVolumeClaim, reason: &'static str, message: &str) -> Vec<Step> {
    let mut steps = in_phase(claim, "Lost", None);
    if !steps.is_empty() {
        steps.push(Step::Tell(true, reason, message.to_owned()));
    }
    steps
}

/// The status with this phase, and with what the volume offers if the claim has one.
fn in_phase(claim: &PersistentVolumeClaim, phase: &str, volume: Option<&PersistentVolume>) -> Vec<Step> {
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

/// The first thing that is missing to bind the two: the volume names the claim, the claim the volume, and its status says so.
fn bind(claim: &PersistentVolumeClaim, volume: &Arc<PersistentVolume>) -> Vec<Step> {
    let uid = claim_ref(volume).and_then(|reference| reference.uid.as_ref()).filter(|uid| !uid.is_empty());
    let version = &volume.metadata.resource_version;
    if uid.is_none() {
        let mut patch = json!({
            "metadata": { "resourceVersion": version },
            "spec": { "claimRef": reference_to(claim) },
        });
        if claim_ref(volume).is_none() {
            patch["metadata"]["annotations"] = json!({ BY_US: "yes" });
        }
        return vec![Step::Volume(volume.clone(), patch)];
    }
    let ours = annotation(&volume.metadata, PROVISIONED_BY) == Some(PROVISIONER);
    if ours && requested(claim) > size(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref())) {
        // What we made grows with what is asked for.
        let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
        let storage = resources.and_then(|resources| resources.requests.as_ref()?.get("storage"));
        let patch = json!({
            "metadata": { "resourceVersion": version },
            "spec": { "capacity": { "storage": storage } },
        });
        return vec![Step::Volume(volume.clone(), patch)];
    }
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    let completed = annotation(&claim.metadata, COMPLETED).is_some();
    if named.is_empty() || !completed {
        let mut annotations = json!({ COMPLETED: "yes" });
        if named.is_empty() {
            annotations[BY_US] = "yes".into();
        }
        let patch = json!({
            "metadata": { "annotations": annotations, "resourceVersion": claim.metadata.resource_version },
            "spec": { "volumeName": volume.metadata.name },
        });
        return vec![Step::Claim(patch)];
    }
    in_phase(claim, "Bound", Some(volume))
}

/// What is to be done for a volume.
#[derive(Debug, PartialEq)]
pub(super) enum Fate {
    /// It is in this phase, for this reason.
    Phase(&'static str, String),
    /// Nobody needs it, and it was made for one claim.
    Delete,
    /// The claim has another: it is free again, or set aside as it was.
    Unbind(Value),
    /// The claim's reconcile is next.
    Leave,
}

/// What is to be done for a volume, given the claim that it names, if that is still there.
pub(super) fn fate(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Fate {
    let uid = claim_ref(volume).and_then(|reference| reference.uid.as_deref()).unwrap_or_default();
    if uid.is_empty() {
        return Fate::Phase("Available", String::new());
    }
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let released = matches!(phase, Some("Released" | "Failed"));
    let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_deref() == Some(uid)) else {
        if !released {
            return Fate::Phase("Released", String::new());
        }
        return reclaim(volume);
    };
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    if named.is_empty() {
        return Fate::Leave;
    }
    if Some(named) == volume.metadata.name.as_deref() {
        return Fate::Phase("Bound", String::new());
    }
    if annotation(&volume.metadata, PROVISIONED_BY).is_some() && policy(volume) == "Delete" {
        return if released { reclaim(volume) } else { Fate::Phase("Released", String::new()) };
    }
    match annotation(&volume.metadata, BY_US) {
        Some(_) => Fate::Unbind(json!({
            "metadata": { "annotations": { BY_US: null } }, "spec": { "claimRef": null },
        })),
        None => Fate::Unbind(json!({ "spec": { "claimRef": { "uid": null, "resourceVersion": null } } })),
    }
}

fn policy(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()).unwrap_or("Retain")
}

fn reclaim(volume: &PersistentVolume) -> Fate {
    if policy(volume) != "Delete" || volume.metadata.deletion_timestamp.is_some() {
        return Fate::Leave;
    }
    match annotation(&volume.metadata, PROVISIONED_BY) {
        Some(PROVISIONER) => Fate::Delete,
        // Whoever made it deletes it.
        Some(_) => Fate::Leave,
        None => {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            let why = "no deletable volume plugin matched";
            Fate::Phase("Failed", format!("error getting deleter volume plugin for volume {name:?}: {why}"))
        }
    }
}
