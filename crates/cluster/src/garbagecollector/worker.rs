//! One object at a time: what became of its owners is found out, and what follows is carried out.

use super::decide::{Dependents, Doing, FOREGROUND, ORPHAN, Owner, Verdict, doing, verdict};
use super::graph::{Graph, Item, references};
use crate::metadata_client;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::json;
use std::sync::Arc;
use windlass::{Key, Kind, Reason};

/// Who writes.
const MANAGER: &str = "garbage-collector-controller";
/// Requests that are sent at once for one owner.
const AT_ONCE: usize = 16;

/// Whether an object is to be looked at again though nothing changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Then {
    Done,
    Again,
}

impl Graph {
    pub(super) async fn work(&self, item: &Item) -> kube::Result<Then> {
        if item.gone {
            self.owner_is_gone(item);
            return Ok(Then::Done);
        }
        let Some(object) = self.find(item) else { return Ok(Then::Done) };
        let meta = object.meta();
        match doing(meta) {
            Doing::Goes => Ok(Then::Done),
            Doing::Lives => self.judge(item, meta).await,
            // What is not known of might be released too late, and be lost.
            Doing::Orphans | Doing::Waits if !self.is_complete() => Ok(Then::Again),
            Doing::Orphans => self.release_dependents(item, meta).await,
            Doing::Waits => self.wait_for_dependents(item, meta).await,
        }
    }

    /// It is gone: whatever it owned has one owner less.
    fn owner_is_gone(&self, item: &Item) {
        self.absent.lock().add_object(&item.kind, &item.key, &item.uid);
        for (kind, dependent) in self.dependents(&item.uid) {
            self.add(&kind, dependent.meta());
        }
    }

    async fn judge(&self, item: &Item, meta: &ObjectMeta) -> kube::Result<Then> {
        let mut owners = Vec::new();
        for reference in references(meta) {
            owners.push(self.owner(item, reference).await?);
        }
        let dependents = || {
            let dependents = self.dependents(&item.uid);
            match dependents.iter().any(|(_, dependent)| doing(dependent.meta()) == Doing::Waits) {
                true => Dependents::Waiting,
                false if dependents.is_empty() => Dependents::None,
                false => Dependents::Some,
            }
        };
        match verdict(meta, &owners, dependents) {
            Verdict::Keep => Ok(Then::Done),
            Verdict::KeepForNow => Ok(Then::Again),
            Verdict::Rename(owners) => self.rename(&item.kind, &item.key, meta, &owners).await,
            Verdict::Delete { before: Some(owners), .. } => {
                self.rename(&item.kind, &item.key, meta, &owners).await?;
                // At another version now: with the next look it goes.
                Ok(Then::Again)
            }
            Verdict::Delete { propagation, before: None } => {
                let options = json!({
                    "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation,
                    // Its owners are those that were asked for, or it is at another version.
                    "preconditions": { "uid": meta.uid, "resourceVersion": meta.resource_version },
                });
                unless_gone(metadata_client::delete(&self.client, &item.kind, &item.key, &options).await)
            }
        }
    }

    /// What became of an owner: as watched if it is there, else as the server says.
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
            self.say_misplaced(item, reference);
            return Ok(Owner::Misplaced);
        }
        let key = self.key_of(&kind, namespace, &reference.name);
        match metadata_client::read(&self.client, &kind, &key).await {
            Ok(live) if live.uid.as_deref() == Some(&reference.uid) => {
                Ok(if doing(&live) == Doing::Waits { Owner::Waiting } else { Owner::Unwatched })
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
            self.say_misplaced(item, reference);
        }
        Owner::Absent
    }

    /// Tells people of an owner that is there, and in another namespace.
    fn say_misplaced(&self, item: &Item, reference: &OwnerReference) {
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

    /// Makes an object name these owners, if it is as it was seen.
    async fn rename(
        &self,
        kind: &Kind,
        key: &Key,
        meta: &ObjectMeta,
        owners: &[OwnerReference],
    ) -> kube::Result<Then> {
        let patch = json!({ "metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": owners,
        } });
        unless_gone(metadata_client::merge(&self.client, kind, key, MANAGER, &patch).await)
    }

    async fn wait_for_dependents(&self, item: &Item, meta: &ObjectMeta) -> kube::Result<Then> {
        let dependents = self.dependents(&item.uid);
        let blocks = |meta: &ObjectMeta| {
            let named = references(meta).iter();
            named.clone().any(|owner| owner.uid == *item.uid && owner.block_owner_deletion == Some(true))
        };
        let blocked = dependents.iter().any(|(_, dependent)| blocks(dependent.meta()));
        for (kind, dependent) in dependents {
            if doing(dependent.meta()) == Doing::Lives {
                self.add(&kind, dependent.meta());
            }
        }
        if blocked {
            return Ok(Then::Done);
        }
        // The cache of a dependent's kind may lag behind that of its owner, which would be gone before it.
        let live = self.live_dependents(item).await?;
        if live.iter().any(|(_, dependent)| blocks(dependent)) {
            return Ok(Then::Again);
        }
        self.finish(item, meta, FOREGROUND).await
    }

    /// The dependents of an object as the server shows them.
    async fn live_dependents(&self, item: &Item) -> kube::Result<Vec<(Arc<Kind>, ObjectMeta)>> {
        let namespace = item.key.namespace();
        let listed =
            self.monitors().into_iter().filter(|monitor| namespace.is_none() || monitor.kind.namespaced);
        futures::stream::iter(listed)
            .map(|monitor| async move {
                let all = match metadata_client::list(&self.client, &monitor.kind, namespace).await {
                    Ok(all) => all,
                    // A kind that is going.
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

    /// Releases every dependent, then the owner goes. They are looked for live: one that the cache does not know of yet would
    /// be taken for garbage once its owner is gone.
    async fn release_dependents(&self, item: &Item, meta: &ObjectMeta) -> kube::Result<Then> {
        let dependents = self.live_dependents(item).await?;
        futures::stream::iter(dependents)
            .map(|(kind, meta)| async move {
                let others: Vec<_> =
                    references(&meta).iter().filter(|owner| owner.uid != *item.uid).cloned().collect();
                let key =
                    self.key_of(&kind, meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
                self.rename(&kind, &key, &meta, &others).await
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<_>>()
            .await?;
        self.finish(item, meta, ORPHAN).await
    }

    /// Takes a finalizer of ours away: what it waited for is done.
    async fn finish(&self, item: &Item, meta: &ObjectMeta, finalizer: &str) -> kube::Result<Then> {
        let left: Vec<&String> = meta.finalizers.iter().flatten().filter(|name| *name != finalizer).collect();
        let patch = json!({ "metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": left,
        } });
        unless_gone(metadata_client::merge(&self.client, &item.kind, &item.key, MANAGER, &patch).await)
    }
}

/// What is gone already needs nothing.
fn unless_gone(done: kube::Result<()>) -> kube::Result<Then> {
    match done {
        Err(error) if metadata_client::code(&error) == Some(404) => Ok(Then::Done),
        done => done.map(|()| Then::Done),
    }
}
