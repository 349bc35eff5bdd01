//! What becomes of an object, given what became of its owners.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// The finalizer of an owner whose dependents are to be orphaned.
pub(super) const ORPHAN: &str = "orphan";
/// The finalizer of an owner that is deleted after its dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// What an object is doing, by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeletionState {
    /// It is being deleted, once its dependents are orphaned.
    Orphaning,
    /// It is being deleted, once its dependents are gone (foreground).
    WaitingForDependents,
    /// It is being deleted, and there is nothing to do.
    Terminating,
    /// It lives, as long as its owners let it.
    Live,
}

pub(super) fn deletion_state(meta: &ObjectMeta) -> DeletionState {
    match meta.deletion_timestamp {
        None => DeletionState::Live,
        Some(_) if has(meta, ORPHAN) => DeletionState::Orphaning,
        Some(_) if has(meta, FOREGROUND) => DeletionState::WaitingForDependents,
        Some(_) => DeletionState::Terminating,
    }
}

pub(super) fn has(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.iter().flatten().any(|name| name == finalizer)
}

/// What became of an owner that an object names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// It is there.
    Solid,
    /// It exists, as the API says, but is not in the cache: its deletion might be missed.
    Unwatched,
    /// There is no such object; perhaps another of that name.
    Absent,
    /// It waits for its dependents to go.
    Waiting,
    /// Nobody knows its kind. It may be that it is served tomorrow.
    Unknown,
    /// It is in a namespace, and the object is in none: it cannot be its owner.
    Misplaced,
}

/// What an object itself owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dependents {
    None,
    Some,
    /// Some, of which one waits for its own dependents: perhaps for this very object.
    Waiting,
}

/// What to do about an object that is not being deleted.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Keep,
    /// It stays for now, and is checked again.
    CheckAgain,
    /// It stays, and names these owners from now on.
    PatchOwners(Vec<OwnerReference>),
    /// Delete it with this propagation policy. With `before`, patch its owner references first: it must block none of its
    /// owners, since they may wait for each other.
    Delete {
        propagation: &'static str,
        before: Option<Vec<OwnerReference>>,
    },
}

/// What to do about an object that is not being deleted, given the state of each of its owners, in order.
pub(super) fn verdict(
    meta: &ObjectMeta,
    owners: &[Owner],
    dependents: impl FnOnce() -> Dependents,
) -> Verdict {
    let named = meta.owner_references.as_deref().unwrap_or_default();
    if named.is_empty() || owners.contains(&Owner::Misplaced) {
        return Verdict::Keep;
    }
    if owners.contains(&Owner::Unknown) {
        return Verdict::CheckAgain;
    }
    let is_solid = |owner: &Owner| matches!(owner, Owner::Solid | Owner::Unwatched);
    if owners.iter().any(is_solid) {
        if owners.iter().all(is_solid) {
            return if owners.contains(&Owner::Unwatched) { Verdict::CheckAgain } else { Verdict::Keep };
        }
        let solid = named.iter().zip(owners).filter(|(_, owner)| is_solid(owner));
        return Verdict::PatchOwners(solid.map(|(reference, _)| reference.clone()).collect());
    }
    if owners.contains(&Owner::Waiting) {
        let before = match dependents() {
            Dependents::None => return Verdict::Delete { propagation: own_propagation(meta), before: None },
            Dependents::Some => None,
            Dependents::Waiting => unblocked(named),
        };
        return Verdict::Delete { propagation: "Foreground", before };
    }
    Verdict::Delete { propagation: own_propagation(meta), before: None }
}

/// The finalizers on the object decide the propagation policy.
fn own_propagation(meta: &ObjectMeta) -> &'static str {
    match () {
        () if has(meta, ORPHAN) => "Orphan",
        () if has(meta, FOREGROUND) => "Foreground",
        () => "Background",
    }
}

/// The same references, none of which blocks; none if none did.
fn unblocked(named: &[OwnerReference]) -> Option<Vec<OwnerReference>> {
    let blocks = |reference: &OwnerReference| reference.block_owner_deletion == Some(true);
    named.iter().any(blocks).then(|| {
        let free = |reference: &OwnerReference| OwnerReference {
            block_owner_deletion: Some(false),
            ..reference.clone()
        };
        named
            .iter()
            .map(|reference| if blocks(reference) { free(reference) } else { reference.clone() })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn reference(uid: &str) -> OwnerReference {
        OwnerReference { uid: uid.into(), block_owner_deletion: Some(true), ..OwnerReference::default() }
    }

    fn owned_by(uids: &[&str], finalizers: &[&str]) -> ObjectMeta {
        ObjectMeta {
            owner_references: Some(uids.iter().map(|uid| reference(uid)).collect()),
            finalizers: Some(finalizers.iter().map(|name| (*name).to_owned()).collect()),
            ..ObjectMeta::default()
        }
    }

    fn verdict_for(uids: &[&str], owners: &[Owner], dependents: Dependents) -> Verdict {
        verdict(&owned_by(uids, &[]), owners, || dependents)
    }

    #[test]
    fn an_object_goes_only_when_every_owner_is_gone() {
        use Owner::{Absent, Solid, Unwatched, Waiting};
        let gone = Verdict::Delete { propagation: "Background", before: None };
        assert_eq!(verdict_for(&["a"], &[Solid], Dependents::None), Verdict::Keep);
        assert_eq!(verdict_for(&["a"], &[Absent], Dependents::Some), gone);
        assert_eq!(verdict_for(&["a", "b"], &[Absent, Absent], Dependents::None), gone);
        assert_eq!(verdict_for(&["a"], &[Unwatched], Dependents::None), Verdict::CheckAgain);
        let left = Verdict::PatchOwners(vec![reference("b")]);
        assert_eq!(verdict_for(&["a", "b"], &[Absent, Solid], Dependents::None), left);
        assert_eq!(
            verdict_for(&["a", "b"], &[Waiting, Unwatched], Dependents::None),
            left,
            "or the owner waits for ever"
        );
    }

    #[test]
    fn what_nobody_can_judge_stays() {
        use Owner::{Absent, Misplaced, Unknown};
        assert_eq!(verdict_for(&["a", "b"], &[Absent, Unknown], Dependents::None), Verdict::CheckAgain);
        assert_eq!(verdict_for(&["a"], &[Misplaced], Dependents::None), Verdict::Keep);
        assert_eq!(verdict(&ObjectMeta::default(), &[], || Dependents::None), Verdict::Keep);
    }

    #[test]
    fn an_owner_that_waits_is_waited_for_by_what_has_dependents() {
        let delete = |propagation, before| Verdict::Delete { propagation, before };
        let waiting = |dependents| verdict_for(&["a"], &[Owner::Waiting], dependents);
        assert_eq!(waiting(Dependents::None), delete("Background", None));
        assert_eq!(waiting(Dependents::Some), delete("Foreground", None));
        let free = OwnerReference { block_owner_deletion: Some(false), ..reference("a") };
        assert_eq!(
            waiting(Dependents::Waiting),
            delete("Foreground", Some(vec![free])),
            "in a circle nobody blocks"
        );
    }

    #[test]
    fn what_was_put_on_an_object_says_how_it_goes() {
        for (finalizer, propagation) in
            [(ORPHAN, "Orphan"), (FOREGROUND, "Foreground"), ("a/b", "Background")]
        {
            let found = verdict(&owned_by(&["a"], &[finalizer]), &[Owner::Absent], || Dependents::None);
            assert_eq!(found, Verdict::Delete { propagation, before: None });
        }
    }

    #[test]
    fn what_an_object_is_doing_shows_in_its_metadata() {
        let mut meta = owned_by(&[], &[FOREGROUND]);
        assert_eq!(deletion_state(&meta), DeletionState::Live);
        meta.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(deletion_state(&meta), DeletionState::WaitingForDependents);
        meta.finalizers = Some(vec!["a/b".into()]);
        assert_eq!(deletion_state(&meta), DeletionState::Terminating);
        meta.finalizers = Some(vec!["a/b".into(), ORPHAN.into()]);
        assert_eq!(deletion_state(&meta), DeletionState::Orphaning);
    }
}
