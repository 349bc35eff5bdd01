//! ControllerRevisions: the numbered templates that a workload had, so that it can be rolled back. Shared by StatefulSets and
//! DaemonSets.
//!
//! The hash of a template is computed as Kubernetes does, so that a revision has the same name under both.

mod hash;

pub(crate) use hash::hash;

use crate::controller_ref;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass::cache::{Cache, Index};
use windlass::write::{Basis, Deletion};
use windlass::{Key, Kind, Object, Reconcile, ReconcileError, Selector};

/// The label of a revision, and of the pods made from it.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";
/// The longest prefix of the owner's name in a revision's name: the rest is for the hash.
const MAX_PREFIX: usize = 223;
/// The most attempts at another name, when the name is taken by a revision with other content.
const MAX_ATTEMPTS: usize = 8;

/// The data of a revision of this template: a patch that replaces the template.
pub(crate) fn data(template: &PodTemplateSpec) -> Value {
    let mut template = serde_json::to_value(template).unwrap_or_default();
    template["$patch"] = "replace".into();
    json!({ "spec": { "template": template } })
}

/// The template that a revision stores; none if it stores something else.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// The name of a revision: unlikely to be that of one with other content.
pub(crate) fn name(owner: &str, hash: &str) -> String {
    let end = owner.floor_char_boundary(MAX_PREFIX);
    format!("{}-{hash}", &owner[..end])
}

/// A revision of this template, with the owner's annotations (such as the change cause).
pub(crate) fn new_revision(
    owner: &ObjectMeta,
    reference: OwnerReference,
    template: &PodTemplateSpec,
    number: i64,
    collisions: i32,
) -> ControllerRevision {
    let data = data(template);
    let hash = hash(&data, collisions);
    let written = template.metadata.as_ref().and_then(|meta| meta.labels.clone());
    let mut labels = written.unwrap_or_default();
    labels.insert(HASH_LABEL.to_owned(), hash.clone());
    let metadata = ObjectMeta {
        name: Some(name(owner.name.as_deref().unwrap_or_default(), &hash)),
        namespace: owner.namespace.clone(),
        labels: Some(labels),
        annotations: owner.annotations.clone(),
        owner_references: Some(vec![reference]),
        ..ObjectMeta::default()
    };
    ControllerRevision { metadata, data: Some(RawExtension(data)), revision: number }
}

/// Whether two revisions have the same content.
pub(crate) fn equal_revision(one: &ControllerRevision, other: &ControllerRevision) -> bool {
    one.data == other.data || template(one).is_some_and(|found| Some(found) == template(other))
}

/// Oldest first, by their numbers.
pub(crate) fn sort(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_by(|one, other| {
        let key = |of: &ControllerRevision| {
            (
                of.revision,
                of.metadata.creation_timestamp.as_ref().map(|time| time.0),
                of.metadata.name.clone(),
            )
        };
        key(one).cmp(&key(other))
    });
}

/// The number of the next revision, after these.
pub(crate) fn next_number(sorted: &[Arc<ControllerRevision>]) -> i64 {
    sorted.last().map_or(1, |last| last.revision + 1)
}

/// How the revision of the current template becomes the newest.
#[derive(Debug, PartialEq)]
pub(crate) enum Newest {
    /// It is already.
    Current(Arc<ControllerRevision>),
    /// It exists: it gets this number.
    Renumber(Arc<ControllerRevision>, i64),
    /// It does not exist yet.
    Create(Box<ControllerRevision>),
}

/// How `wanted`, with the next number, becomes the newest of these.
pub(crate) fn newest(sorted: &[Arc<ControllerRevision>], wanted: ControllerRevision) -> Newest {
    match sorted.iter().rposition(|revision| equal_revision(revision, &wanted)) {
        Some(position) if position + 1 == sorted.len() => Newest::Current(sorted[position].clone()),
        Some(position) => Newest::Renumber(sorted[position].clone(), wanted.revision),
        None => Newest::Create(Box::new(wanted)),
    }
}

/// The oldest unused revisions, except the newest `limit` of them.
pub(crate) fn revisions_to_delete(
    sorted: &[Arc<ControllerRevision>],
    live: &BTreeSet<&str>,
    limit: i32,
) -> Vec<Arc<ControllerRevision>> {
    let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
    let used = |revision: &ControllerRevision| {
        revision.metadata.name.as_deref().is_some_and(|name| live.contains(name))
    };
    let idle: Vec<_> = sorted.iter().filter(|revision| !used(revision)).collect();
    let excess = idle.len().saturating_sub(limit);
    idle.into_iter().take(excess).cloned().collect()
}

/// Revisions without a controller, by namespace.
const ORPHANS: Index<ControllerRevision> = Index::new("orphans", |revision| {
    let is_orphan = controller_ref::controller_of(&revision.metadata).is_none();
    revision.metadata.namespace.iter().filter(|_| is_orphan).cloned().collect()
});

/// The revisions that an object owns, and those of its namespace without a controller.
pub(crate) fn own_and_orphans(cache: &Cache, owner: &ObjectMeta) -> Vec<Arc<ControllerRevision>> {
    let store = cache.store::<ControllerRevision>();
    let mut revisions = store.owned_by(owner.uid.as_deref().unwrap_or_default());
    revisions.extend(store.find(ORPHANS, owner.namespace.as_deref().unwrap_or_default()));
    revisions
}

/// The revisions that belong to the owner, sorted, after adopting matching orphans.
///
/// # Errors
/// When one could not be adopted.
pub(crate) async fn claim<K: Object>(
    ctx: &Reconcile<K>,
    owner: &ObjectMeta,
    selector: &Selector,
    found: Vec<Arc<ControllerRevision>>,
) -> Result<Vec<Arc<ControllerRevision>>, ReconcileError> {
    let mut mine = controller_ref::claim(ctx, owner, selector, found).await?;
    sort(&mut mine);
    Ok(mine)
}

/// Makes the revision of this template the newest, and returns it with the collision count.
///
/// # Errors
/// When it could not be written.
pub(crate) async fn sync_current<K: Object>(
    ctx: &Reconcile<K>,
    owner: &ObjectMeta,
    template: &PodTemplateSpec,
    sorted: &[Arc<ControllerRevision>],
    mut collisions: i32,
) -> Result<(Arc<ControllerRevision>, i32), ReconcileError> {
    for _ in 0..MAX_ATTEMPTS {
        let wanted = new_revision(owner, ctx.owner_reference(), template, next_number(sorted), collisions);
        let wanted = match newest(sorted, wanted) {
            Newest::Current(revision) => return Ok((revision, collisions)),
            Newest::Renumber(revision, number) => {
                ctx.merge(&*revision, "", json!({ "revision": number })).await?;
                let renumbered = ControllerRevision { revision: number, ..(*revision).clone() };
                return Ok((Arc::new(renumbered), collisions));
            }
            Newest::Create(wanted) => wanted,
        };
        match ctx.create(&*wanted).await {
            Ok(made) => return Ok((Arc::new(made), collisions)),
            Err(ReconcileError::Act(error)) if error.code() == Some(409) => {
                // Ours, which the cache does not show yet, or a hash collision.
                let key = Key::of(ctx.cache().cluster().clone(), &wanted.metadata);
                let there = ctx.writer().read(&Kind::of::<ControllerRevision>(), &key).await?;
                let there = there.and_then(|json| serde_json::from_value::<ControllerRevision>(json).ok());
                match there {
                    Some(there) if equal_revision(&there, &wanted) => {
                        return Ok((Arc::new(there), collisions));
                    }
                    Some(_) => collisions += 1,
                    None => {}
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(ReconcileError::custom("no name for the ControllerRevision is free after several hash collisions"))
}

/// Deletes unused revisions beyond the limit.
///
/// # Errors
/// When one could not be deleted.
pub(crate) async fn truncate<K: Object>(
    ctx: &Reconcile<K>,
    sorted: &[Arc<ControllerRevision>],
    live: &BTreeSet<&str>,
    limit: i32,
) -> Result<(), ReconcileError> {
    for revision in revisions_to_delete(sorted, live, limit) {
        ctx.delete(&*revision, &Deletion::new(Basis::Absent)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(image: &str) -> PodTemplateSpec {
        let template = json!({
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "c", "image": image }] },
        });
        serde_json::from_value(template).unwrap()
    }

    fn revision(image: &str, number: i64) -> Arc<ControllerRevision> {
        let owner = ObjectMeta { name: Some("web".into()), ..ObjectMeta::default() };
        Arc::new(new_revision(&owner, OwnerReference::default(), &pods(image), number, 0))
    }

    #[test]
    fn a_revision_gives_its_template_back() {
        let made = revision("a", 1);
        assert_eq!(template(&made), Some(pods("a")));
        let labels = made.metadata.labels.as_ref().unwrap();
        assert_eq!(made.metadata.name, Some(format!("web-{}", labels[HASH_LABEL])));
        assert_eq!(labels["app"], "web");
        assert_ne!(revision("b", 1).metadata.name, made.metadata.name);
    }

    #[test]
    fn what_was_there_before_is_numbered_anew_and_what_never_was_is_made() {
        let history = [revision("a", 1), revision("b", 2)];
        let wanted = |image: &str| (*revision(image, next_number(&history))).clone();
        assert_eq!(newest(&history, wanted("b")), Newest::Current(history[1].clone()));
        assert_eq!(newest(&history, wanted("a")), Newest::Renumber(history[0].clone(), 3));
        assert!(matches!(newest(&history, wanted("c")), Newest::Create(made) if made.revision == 3));
        assert_eq!(next_number(&[]), 1);
    }

    #[test]
    fn the_oldest_that_nobody_uses_go_first() {
        let mut history = vec![revision("d", 4), revision("b", 2), revision("a", 1), revision("c", 3)];
        sort(&mut history);
        let used = history[0].metadata.name.clone().unwrap();
        let live = BTreeSet::from([used.as_str()]);
        let numbers = |limit| {
            revisions_to_delete(&history, &live, limit).iter().map(|one| one.revision).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), [2, 3]);
        assert_eq!(numbers(0), [2, 3, 4]);
        assert!(numbers(3).is_empty() && numbers(-1).is_empty());
    }

    #[test]
    fn long_names_leave_room_for_the_hash() {
        assert_eq!(name(&"x".repeat(250), "abc").len(), 227);
    }
}
