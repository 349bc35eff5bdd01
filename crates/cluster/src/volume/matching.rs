//! Which PersistentVolume matches a PersistentVolumeClaim.

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::Selector;
use windlass::quantity::value;

/// The deprecated annotation for the class.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The class of a claim: none if it is unset, empty if it asks for none.
pub(super) fn class_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let named = claim.metadata.annotations.as_ref().and_then(|annotations| annotations.get(CLASS));
    named.or(claim.spec.as_ref()?.storage_class_name.as_ref()).map(String::as_str)
}

pub(super) fn class_of_volume(volume: &PersistentVolume) -> &str {
    let named = volume.metadata.annotations.as_ref().and_then(|annotations| annotations.get(CLASS));
    let class = volume.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    named.or(class).map(String::as_str).unwrap_or_default()
}

pub(super) fn size(amounts: Option<&BTreeMap<String, Quantity>>) -> i64 {
    amounts.and_then(|amounts| amounts.get("storage")).and_then(value).unwrap_or_default()
}

pub(super) fn requested(claim: &PersistentVolumeClaim) -> i64 {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    size(resources.and_then(|resources| resources.requests.as_ref()))
}

pub(super) fn capacity(volume: &PersistentVolume) -> i64 {
    size(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()))
}

/// Whether a volume is bound to this claim, or reserved for one of its name.
pub(super) fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else { return false };
    reference.name == claim.metadata.name
        && reference.namespace == claim.metadata.namespace
        && reference.uid.as_ref().is_none_or(|uid| uid.is_empty() || Some(uid) == claim.metadata.uid.as_ref())
}

fn same_mode(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let volume = volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    let claim = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    volume.unwrap_or("Filesystem") == claim.unwrap_or("Filesystem")
}

fn same_attributes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let volume = volume.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    let claim = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    volume.unwrap_or_default() == claim.unwrap_or_default()
}

fn offers_access(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let offered: Vec<&String> =
        volume.spec.iter().flat_map(|spec| spec.access_modes.iter().flatten()).collect();
    let wanted = claim.spec.iter().flat_map(|spec| spec.access_modes.iter().flatten());
    wanted.into_iter().all(|mode| offered.contains(&mode))
}

/// Why a volume that a claim names does not match it.
pub(super) fn mismatch(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    if volume.metadata.deletion_timestamp.is_some() {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        return Some(format!("the volume is marked for deletion {name:?}"));
    }
    let checks = [
        (capacity(volume) >= requested(claim), "requested PV is too small"),
        (class_of_volume(volume) == class_of(claim).unwrap_or_default(), "storageClassName does not match"),
        (same_attributes(volume, claim), "volumeAttributesClassName does not match"),
        (same_mode(volume, claim), "incompatible volumeMode"),
        (offers_access(volume, claim), "incompatible accessMode"),
    ];
    checks.iter().find(|(holds, _)| !holds).map(|(_, why)| (*why).to_owned())
}

/// The volume that is reserved for a claim, or else the smallest unbound one that matches. A claim that waits for a node gets
/// only volumes that are usable there.
pub(super) fn find_best_match(
    volumes: &[Arc<PersistentVolume>],
    claim: &PersistentVolumeClaim,
    waits: bool,
    node: Option<&Node>,
) -> Option<Arc<PersistentVolume>> {
    let spec = claim.spec.as_ref()?;
    let fits_at_all = |volume: &&Arc<PersistentVolume>| {
        volume.metadata.deletion_timestamp.is_none()
            && capacity(volume) >= requested(claim)
            && same_mode(volume, claim)
    };
    let own = volumes.iter().filter(fits_at_all).find(|volume| is_for(volume, claim));
    if own.is_some() || (waits && node.is_none()) {
        return own.cloned();
    }
    let selector = spec.selector.as_ref().map(Selector::of).transpose().ok()?;
    let free = volumes.iter().filter(fits_at_all).filter(|volume| {
        let claimed = volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_some());
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        !claimed && phase == Some("Available")
    });
    let fitting = free.filter(|volume| {
        mismatch(volume, claim).is_none()
            && selector.as_ref().is_none_or(|selector| selector.matches(volume.metadata.labels.as_ref()))
            && node.is_none_or(|node| reaches(volume, node))
    });
    fitting.min_by_key(|volume| (capacity(volume), volume.metadata.name.clone())).cloned()
}

/// Whether a volume is usable on a node.
fn reaches(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else { return true };
    required.node_selector_terms.iter().any(|term| {
        let expressions = term.match_expressions.iter().flatten().map(|term| LabelSelectorRequirement {
            key: term.key.clone(),
            operator: term.operator.clone(),
            values: term.values.clone(),
        });
        let selector = LabelSelector { match_expressions: Some(expressions.collect()), match_labels: None };
        Selector::of(&selector).is_ok_and(|selector| selector.matches(node.metadata.labels.as_ref()))
    })
}
