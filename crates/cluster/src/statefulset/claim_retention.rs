//! `persistentVolumeClaimRetentionPolicy`: the owner references of a pod's claims, by which they are deleted with the pod or
//! with the set.

use super::identity::Set;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

const SET: (&str, &str) = ("apps/v1", "StatefulSet");
const POD: (&str, &str) = ("v1", "Pod");

/// Whether claims are deleted when the set is scaled down, and when it is deleted.
fn deletes_claims(set: &Set) -> (bool, bool) {
    let policy = set.spec.persistent_volume_claim_retention_policy.as_ref();
    let deletes = |word: Option<&String>| word.is_some_and(|word| word == "Delete");
    (
        deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
        deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
    )
}

fn names(reference: &OwnerReference, kind: (&str, &str), object: &ObjectMeta) -> bool {
    reference.api_version == kind.0
        && reference.kind == kind.1
        && Some(&reference.name) == object.name.as_ref()
}

fn is(reference: &OwnerReference, object: &ObjectMeta) -> bool {
    Some(&reference.uid) == object.uid.as_ref()
}

/// Whether a claim belongs to an earlier pod of this name: it is about to be deleted, and a new pod must wait for a new claim.
pub(super) fn is_stale(set: &Set, claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let (scaled, _) = deletes_claims(set);
    scaled && names_other_object(&claim.metadata, POD, &pod.metadata)
}

/// Whether a claim names an object of this kind and name, and not this one.
fn names_other_object(claim: &ObjectMeta, kind: (&str, &str), object: &ObjectMeta) -> bool {
    let named = claim.owner_references.iter().flatten().find(|reference| names(reference, kind, object));
    named.is_some_and(|reference| !is(reference, object))
}

/// Whether a claim that the policy applies to has a conflicting controller.
pub(super) fn has_conflicting_owner(set: &Set, claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    if deletes_claims(set) == (false, false) {
        return false;
    }
    claim.metadata.owner_references.iter().flatten().any(|reference| {
        for (kind, object) in [(SET, set.meta), (POD, &pod.metadata)] {
            if names(reference, kind, object) {
                return !is(reference, object);
            }
        }
        reference.controller == Some(true)
    })
}

/// The owner references that a claim should have, if they differ.
pub(super) fn owners(
    set: &Set,
    claim: &PersistentVolumeClaim,
    pod: &Pod,
    condemned: bool,
) -> Option<Vec<OwnerReference>> {
    let meta = &claim.metadata;
    if names_other_object(meta, SET, set.meta) || names_other_object(meta, POD, &pod.metadata) {
        // Left by an earlier set or pod of the same name: it is deleted with that one.
        return None;
    }
    let old = meta.owner_references.clone().unwrap_or_default();
    let ours =
        |reference: &&OwnerReference| names(reference, SET, set.meta) || names(reference, POD, &pod.metadata);
    let mut new: Vec<OwnerReference> = old.iter().filter(|reference| !ours(reference)).cloned().collect();
    if !has_conflicting_owner(set, claim, pod) {
        match deletes_claims(set) {
            (true, _) if condemned => new.push(controller(POD, &pod.metadata)),
            (_, true) => new.push(controller(SET, set.meta)),
            _ => {}
        }
    }
    let sorted = |mut owners: Vec<OwnerReference>| {
        owners.sort_by(|one, other| one.uid.cmp(&other.uid));
        owners
    };
    (sorted(old) != sorted(new.clone())).then_some(new)
}

fn controller(kind: (&str, &str), object: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: kind.0.to_owned(),
        kind: kind.1.to_owned(),
        name: object.name.clone().unwrap_or_default(),
        uid: object.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::StatefulSet;
    use serde_json::json;

    fn set(scaled: &str, deleted: &str) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": { "name": "db", "uid": "set" },
            "spec": {
                "selector": {}, "serviceName": "db", "template": {},
                "persistentVolumeClaimRetentionPolicy": { "whenScaled": scaled, "whenDeleted": deleted },
            },
        }))
        .unwrap()
    }

    fn pod(uid: &str) -> Pod {
        serde_json::from_value(json!({ "metadata": { "name": "db-0", "uid": uid } })).unwrap()
    }

    fn claim(owners: &[OwnerReference]) -> PersistentVolumeClaim {
        let metadata = ObjectMeta { owner_references: Some(owners.to_vec()), ..ObjectMeta::default() };
        PersistentVolumeClaim { metadata, ..PersistentVolumeClaim::default() }
    }

    fn kinds(owners: Option<Vec<OwnerReference>>) -> Option<Vec<String>> {
        owners.map(|owners| owners.into_iter().map(|owner| owner.kind).collect())
    }

    #[test]
    fn the_policy_says_with_whom_a_claim_goes() {
        for (scaled, deleted, kept, condemned) in [
            ("Retain", "Retain", None, None),
            ("Retain", "Delete", Some("StatefulSet"), Some("StatefulSet")),
            ("Delete", "Retain", None, Some("Pod")),
            ("Delete", "Delete", Some("StatefulSet"), Some("Pod")),
        ] {
            let set = set(scaled, deleted);
            let set = Set::of(&set).unwrap();
            let wanted = |kind: Option<&str>| kind.map(|kind| vec![kind.to_owned()]);
            let pod = pod("pod");
            assert_eq!(kinds(owners(&set, &claim(&[]), &pod, false)), wanted(kept), "{scaled} {deleted}");
            assert_eq!(kinds(owners(&set, &claim(&[]), &pod, true)), wanted(condemned), "{scaled} {deleted}");
            let settled = owners(&set, &claim(&[]), &pod, true).unwrap_or_default();
            assert_eq!(owners(&set, &claim(&settled), &pod, true), None, "{scaled} {deleted} is settled");
        }
    }

    #[test]
    fn a_claim_of_another_is_left_to_it() {
        let deletes = set("Delete", "Delete");
        let deletes = Set::of(&deletes).unwrap();
        let earlier = claim(&[controller(POD, &pod("earlier").metadata)]);
        assert_eq!(owners(&deletes, &earlier, &pod("new"), false), None);
        assert!(is_stale(&deletes, &earlier, &pod("new")));
        let mut other = controller(("example.com/v1", "Keeper"), &pod("keeper").metadata);
        assert!(has_conflicting_owner(&deletes, &claim(&[other.clone()]), &pod("new")));
        let both = claim(&[other.clone(), controller(SET, deletes.meta)]);
        assert_eq!(kinds(owners(&deletes, &both, &pod("new"), false)), Some(vec!["Keeper".to_owned()]));
        other.controller = None;
        assert!(!has_conflicting_owner(&deletes, &claim(&[other]), &pod("new")));
    }
}
