//! Processes one object of the queue: finds out the state of its owners, and writes what follows from it.

use super::decide::{DeletionState, Dependents, FOREGROUND, ORPHAN, Owner, Verdict, deletion_state, verdict};
use super::graph::{Graph, Item, references};
use crate::metadata_client;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::json;
use std::sync::Arc;
use windlass::{Key, Kind, Reason};

/// The field manager.
const MANAGER: &str = "garbage-collector-controller";
/// The most requests at once for one owner.
const AT_ONCE: usize = 16;

/// Whether an object has to be processed again though nothing changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Requeue,
}

impl Graph {
    pub(super) async fn work(&self, item: &Item) -> kube::Result<Outcome> {
        if item.gone {
            self.enqueue_dependents(item);
            return Ok(Outcome::Done);
        }
        let Some(object) = self.find(item) else { return Ok(Outcome::Done) };
        let meta = object.meta();
        match deletion_state(meta) {
            DeletionState::Terminating => Ok(Outcome::Done),
            DeletionState::Live => self.attempt_to_delete(item, meta).await,
            // A dependent that is not cached yet might be orphaned too late, and be lost.
            DeletionState::Orphaning | DeletionState::WaitingForDependents if !self.has_synced() => {
                Ok(Outcome::Requeue)
            }
            DeletionState::Orphaning => self.orphan_dependents(item, meta).await,
            DeletionState::WaitingForDependents => self.wait_for_dependents(item, meta).await,
        }
    }

    /// The object is gone: queues its dependents.
    fn enqueue_dependents(&self, item: &Item) {
        self.absent.lock().add_object(&item.kind, &item.key, &item.uid);
        for (kind, dependent) in self.dependents(&item.uid) {
            self.add(&kind, dependent.meta());
        }
    }

    async fn attempt_to_delete(&self, item: &Item, meta: &ObjectMeta) -> kube::Result<Outcome> {
        let mut owners = Vec::new();
        for reference in references(meta) {
            owners.push(self.owner(item, reference).await?);
        }
        let dependents = || {
            let dependents = self.dependents(&item.uid);
            match dependents
                .iter()
                .any(|(_, dependent)| deletion_state(dependent.meta()) == DeletionState::WaitingForDependents)
            {
                true => Dependents::Waiting,
                false if dependents.is_empty() => Dependents::None,
                false => Dependents::Some,
            }
        };
        match verdict(meta, &owners, dependents) {
            Verdict::Keep => Ok(Outcome::Done),
            Verdict::CheckAgain => Ok(Outcome::Requeue),
            Verdict::PatchOwners(owners) => self.patch_owners(&item.kind, &item.key, meta, &owners).await,
            Verdict::Delete { before: Some(owners), .. } => {
                self.patch_owners(&item.kind, &item.key, meta, &owners).await?;
                // Its resourceVersion changed: the next attempt deletes it.
                Ok(Outcome::Requeue)
            }
            Verdict::Delete { propagation, before: None } => {
                let options = json!({
                    "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation,
                    // The owner references are those that were checked, or the resourceVersion differs.
                    "preconditions": { "uid": meta.uid, "resourceVersion": meta.resource_version },
                });
                ignore_not_found(metadata_client::delete(&self.client, &item.kind, &item.key, &options).await)
            }
        }
    }

    /// The state of an owner: from the cache if it is there, else from the API.
    async fn owner(&self, item: &Item, reference: &OwnerReference) -> kube::Result<Owner> {
        let namespace = item.key.namespace();
        if let Some(observed) = self.observed(reference, namespace) {
            return Ok(observed);
        }
        if self.absent.lock().has(reference, namespace) {
            return Ok(Owner::Absent);
        }
        let Some((kind, _)) = self.kind_of(reference) else { return Ok(Owner::Unknown) };
        if kind.namespaced && namespace.is_none() {
            self.record_invalid_namespace(item, reference);
            return Ok(Owner::Misplaced);
        }
        let key = self.key_of(&kind, namespace, &reference.name);
        match metadata_client::read(&self.client, &kind, &key).await {
            Ok(live) if live.uid.as_deref() == Some(&reference.uid) => {
                Ok(if deletion_state(&live) == DeletionState::WaitingForDependents {
                    Owner::Waiting
                } else {
                    Owner::Unwatched
                })
            }
            Ok(_) => Ok(self.absent(item, reference, &key)),
            Err(error) if metadata_client::is_absent(&error, &reference.name) => {
                Ok(self.absent(item, reference, &key))
            }
            // The kind itself is no more.
            Err(error) if metadata_client::code(&error) == Some(404) => Ok(Owner::Unknown),
            Err(error) => Err(error),
        }
    }

    fn absent(&self, item: &Item, reference: &OwnerReference, key: &Key) -> Owner {
        self.absent.lock().add(reference, key.namespace());
        if key.namespace().is_some() {
            self.record_invalid_namespace(item, reference);
        }
        Owner::Absent
    }

    /// Records an event about an owner reference to another namespace.
    fn record_invalid_namespace(&self, item: &Item, reference: &OwnerReference) {
        let Some((_, Some(monitor))) = self.kind_of(reference) else { return };
        let is_it = |meta: &ObjectMeta| meta.uid.as_deref() == Some(&reference.uid);
        let namespace = item.key.namespace().unwrap_or_default();
        let elsewhere = monitor.objects.list().iter().any(|object| {
            is_it(object.meta()) && object.meta().namespace.as_deref().unwrap_or_default() != namespace
        });
        if elsewhere {
            let OwnerReference { api_version, kind, name, uid, .. } = reference;
            let message = format!(
                "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in \
                 namespace {namespace:?}"
            );
            let reason = Reason::new("OwnerRefInvalidNamespace", message);
            self.recorder.about(&item.kind, &item.key, &item.uid, true, reason);
        }
    }

    /// Patches the owner references of an object, if it is unchanged.
    async fn patch_owners(
        &self,
        kind: &Kind,
        key: &Key,
        meta: &ObjectMeta,
        owners: &[OwnerReference],
    ) -> kube::Result<Outcome> {
        let patch = json!({ "metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": owners,
        } });
        ignore_not_found(metadata_client::merge(&self.client, kind, key, MANAGER, &patch).await)
    }

    async fn wait_for_dependents(&self, item: &Item, meta: &ObjectMeta) -> kube::Result<Outcome> {
        let dependents = self.dependents(&item.uid);
        let blocks = |meta: &ObjectMeta| {
            let named = references(meta).iter();
            named.clone().any(|owner| owner.uid == *item.uid && owner.block_owner_deletion == Some(true))
        };
        let blocked = dependents.iter().any(|(_, dependent)| blocks(dependent.meta()));
        for (kind, dependent) in dependents {
            if deletion_state(dependent.meta()) == DeletionState::Live {
                self.add(&kind, dependent.meta());
            }
        }
        if blocked {
            return Ok(Outcome::Done);
        }
        // The cache of a dependent's kind may lag behind that of its owner, which would be gone before it.
        let live = self.live_dependents(item).await?;
        if live.iter().any(|(_, dependent)| blocks(dependent)) {
            return Ok(Outcome::Requeue);
        }
        self.remove_finalizer(item, meta, FOREGROUND).await
    }

    /// The dependents of an object, listed live.
    async fn live_dependents(&self, item: &Item) -> kube::Result<Vec<(Arc<Kind>, ObjectMeta)>> {
        let namespace = item.key.namespace();
        let listed =
            self.monitors().into_iter().filter(|monitor| namespace.is_none() || monitor.kind.namespaced);
        futures::stream::iter(listed)
            .map(|monitor| async move {
                let all = match metadata_client::list(&self.client, &monitor.kind, namespace).await {
                    Ok(all) => all,
                    // Its CRD is being deleted.
                    Err(error) if matches!(metadata_client::code(&error), Some(404 | 405)) => Vec::new(),
                    Err(error) => return Err(error),
                };
                let named = |meta: &ObjectMeta| references(meta).iter().any(|owner| owner.uid == *item.uid);
                let kind = monitor.kind.clone();
                let found = all.into_iter().filter(named).map(move |meta| (kind.clone(), meta));
                Ok(found.collect::<Vec<_>>())
            })
            .buffer_unordered(AT_ONCE)
            .try_concat()
            .await
    }

    /// Orphans every dependent, then removes the finalizer of the owner. Dependents are listed live: one that the cache does
    /// not show yet would be collected once its owner is gone.
    async fn orphan_dependents(&self, item: &Item, meta: &ObjectMeta) -> kube::Result<Outcome> {
        let dependents = self.live_dependents(item).await?;
        futures::stream::iter(dependents)
            .map(|(kind, meta)| async move {
                let others: Vec<_> =
                    references(&meta).iter().filter(|owner| owner.uid != *item.uid).cloned().collect();
                let key =
                    self.key_of(&kind, meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
                self.patch_owners(&kind, &key, &meta, &others).await
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<_>>()
            .await?;
        self.remove_finalizer(item, meta, ORPHAN).await
    }

    /// Removes one of our finalizers.
    async fn remove_finalizer(
        &self,
        item: &Item,
        meta: &ObjectMeta,
        finalizer: &str,
    ) -> kube::Result<Outcome> {
        let left: Vec<&String> = meta.finalizers.iter().flatten().filter(|name| *name != finalizer).collect();
        let patch = json!({ "metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": left,
        } });
        ignore_not_found(metadata_client::merge(&self.client, &item.kind, &item.key, MANAGER, &patch).await)
    }
}

/// An object that is gone already needs nothing.
fn ignore_not_found(done: kube::Result<()>) -> kube::Result<Outcome> {
    match done {
        Err(error) if metadata_client::code(&error) == Some(404) => Ok(Outcome::Done),
        done => done.map(|()| Outcome::Done),
    }
}
