//! The imperative writes of a reconciler, in its reconcile: typed, and known to the cache at once.

use super::reconcile::Reconcile;
use super::reconcile_error::ReconcileError;
use crate::cache::Cache;
use crate::events::About;
use crate::key::Key;
use crate::kind::{Cached, Kind, Object};
use crate::reason::Reason;
use crate::write::{Basis, Deletion, Done, WriteError, version_of};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::sync::atomic::Ordering;
use windlass_clock::Clock;

/// Imperative writes. A reconcile that wrote has another pass, which sees what was written; a reconciler must
/// come to rest.
///
/// ```
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use windlass::{Controller, Requeue, Reconcile};
/// let controller = Controller::reconciling(|map: Arc<ConfigMap>, ctx: Reconcile<ConfigMap>| async move {
///     if ctx.observed().list::<Secret>().unwrap_or_default().is_empty() {
///         let mut secret = Secret::default();
///         secret.metadata.generate_name = Some(format!("{}-", ctx.key().name()));
///         secret.metadata.namespace = map.metadata.namespace.clone();
///         secret.metadata.owner_references = Some(vec![ctx.owner_reference()]);
///         ctx.create(&secret).await?;
///     }
///     Ok(Requeue::on_change())
/// })
/// .owns::<Secret>();
/// ```
impl<K: Cached> Reconcile<K> {
    /// What is watched, by every controller of the manager: for what no relation tells.
    pub fn cache(&self) -> &Cache {
        self.running.writer.cache()
    }

    /// The time of the manager.
    pub fn clock(&self) -> &Clock {
        &self.running.clock
    }

    /// Names the reconcile's object as the owner and controller of what it makes.
    pub fn owner_reference(&self) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
        let kind = &self.parent.kind;
        k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            api_version: kind.api_version(),
            kind: kind.kind.to_string(),
            name: self.parent.key.name().to_owned(),
            uid: self.parent.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// Creates an object, with a generated name if it has a `generateName` and no name, and answers it as it was stored.
    ///
    /// # Errors
    /// [`ReconcileError`] when it was not made; a conflict if there is one of that name.
    pub async fn create<C: Object>(&self, object: &C) -> Result<C, ReconcileError> {
        let kind = Kind::of::<C>();
        let made = self.running.writer.make(&kind, json(object)?, self.key()).await?;
        self.wrote.store(true, Ordering::Relaxed);
        serde_json::from_slice(&made.text).map_err(ReconcileError::custom)
    }

    /// Replaces an object (but its status), if it is still at the version in it.
    ///
    /// # Errors
    /// [`ReconcileError`] when it was not written; a conflict if it is at another version.
    pub async fn replace<C: Object>(&self, object: &C) -> Result<Done, ReconcileError> {
        self.put(object, "").await
    }

    /// Replaces the status of an object, if it is still at the version in it.
    ///
    /// # Errors
    /// [`ReconcileError`] when it was not written; a conflict if it is at another version.
    pub async fn replace_status<C: Object>(&self, object: &C) -> Result<Done, ReconcileError> {
        self.put(object, "status").await
    }

    /// Replaces what a subresource such as `approval` holds of an object, if it is still at the version in it.
    ///
    /// # Errors
    /// [`ReconcileError`] when it was not written; a conflict if it is at another version.
    pub async fn replace_subresource<C: Object>(
        &self,
        object: &C,
        subresource: &str,
    ) -> Result<Done, ReconcileError> {
        self.put(object, subresource).await
    }

    /// Merges a patch into an object, or with a subresource such as `status` into that part, if the UID is still the same.
    ///
    /// # Errors
    /// [`ReconcileError`] when it was not written.
    pub async fn merge<C: Object>(
        &self,
        object: &C,
        subresource: &str,
        mut patch: Value,
    ) -> Result<Done, ReconcileError> {
        if let Some(kept) = patch.pointer("/metadata/finalizers") {
            let kept = kept.as_array().map(Vec::as_slice).unwrap_or_default();
            keeps_finalizers(object.meta(), |held| kept.iter().any(|one| one == held))?;
        }
        patch["metadata"]["uid"] = Value::from(object.meta().uid.clone());
        let writer = &self.running.writer;
        let done =
            writer.merge(&Kind::of::<C>(), &self.key_of(object), subresource, &patch, self.key()).await?;
        Ok(self.note(done))
    }

    /// Removes a finalizer from an object, if it is still at the version that was observed. One that is not on it, or an object
    /// that is gone, is nothing to do. It is the only way: what merges or replaces an object refuses to take a finalizer off.
    ///
    /// # Errors
    /// [`ReconcileError`] when it was not removed; a conflict if the object is at another version. With [`Basis::Absent`] also before
    /// the caches are confirmed by live lists: then the reconcile is to end with it, and starts again on what is there.
    pub async fn remove_finalizer<C: Object>(
        &self,
        object: &C,
        finalizer: &str,
        basis: Basis,
    ) -> Result<Done, ReconcileError> {
        let held = object.meta().finalizers.iter().flatten();
        let kept: Vec<String> = held.filter(|one| *one != finalizer).cloned().collect();
        if object.meta().finalizers.as_ref().is_none_or(|held| held.len() == kept.len()) {
            return Ok(Done::Unchanged);
        }
        self.confirm(basis).await?;
        let writer = &self.running.writer;
        let (kind, key) = (Kind::of::<C>(), self.key_of(object));
        writer.set_finalizers(&kind, &key, object.meta(), &kept, self.key()).await?;
        Ok(self.note(Done::Changed))
    }

    async fn confirm(&self, basis: Basis) -> Result<(), ReconcileError> {
        if basis == Basis::Absent {
            self.running.confirm(&self.confirmed, &self.parent, &*self.object).await?;
        }
        Ok(())
    }

    /// Deletes just this object; if it is gone already, it is deleted.
    ///
    /// # Errors
    /// [`ReconcileError`] when it was not deleted; a conflict if an object of another UID has its name.
    pub async fn delete<C: Object>(&self, object: &C, how: &Deletion) -> Result<Done, ReconcileError> {
        let last =
            version_of(object.meta()).ok_or_else(|| WriteError::NoName(self.parent.kind.kind.to_string()))?;
        self.confirm(how.basis).await?;
        let writer = &self.running.writer;
        let done = writer.remove(&Kind::of::<C>(), &self.key_of(object), &last, how, self.key()).await?;
        Ok(self.note(done))
    }

    /// Records an event about the reconcile's object.
    pub fn event(&self, reason: impl Into<Reason>) {
        self.record_event(false, reason.into());
    }

    /// Records a warning about the reconcile's object.
    pub fn warning(&self, reason: impl Into<Reason>) {
        self.record_event(true, reason.into());
    }

    fn record_event(&self, warning: bool, reason: Reason) {
        self.running.record_event_if(Done::Changed, &self.parent, warning, reason);
    }

    /// Records an event about another object.
    pub fn event_about<C: Object>(&self, object: &C, warning: bool, reason: impl Into<Reason>) {
        let uid = object.meta().uid.clone().unwrap_or_default();
        let about = About { kind: Kind::of::<C>(), key: self.key_of(object), uid };
        self.running.recorder.record(about, warning, reason.into());
    }

    async fn put<C: Object>(&self, object: &C, subresource: &str) -> Result<Done, ReconcileError> {
        let writer = &self.running.writer;
        let (kind, key) = (Kind::of::<C>(), self.key_of(object));
        if let Some(before) = self.cache().any_object(&kind, &key) {
            keeps_finalizers(before.meta(), |held| {
                object.meta().finalizers.iter().flatten().any(|one| one == held)
            })?;
        }
        let done = writer.replace(&kind, &key, subresource, json(object)?, self.key()).await?;
        Ok(self.note(done))
    }

    fn key_of<C: Object>(&self, object: &C) -> Key {
        Key::of(self.cache().cluster().clone(), object.meta())
    }

    fn note(&self, done: Done) -> Done {
        if done == Done::Changed {
            self.wrote.store(true, Ordering::Relaxed);
        }
        done
    }
}

/// A finalizer is taken off by [`Reconcile::remove_finalizer`] alone, which confirms what it relies on.
fn keeps_finalizers(before: &ObjectMeta, kept: impl Fn(&str) -> bool) -> Result<(), ReconcileError> {
    match before.finalizers.iter().flatten().find(|held| !kept(held)) {
        None => Ok(()),
        Some(lost) => Err(ReconcileError::terminal(format!(
            "the write would remove the finalizer {lost}: use remove_finalizer, which says what that relies on"
        ))),
    }
}

fn json<C: Object>(object: &C) -> Result<Value, ReconcileError> {
    serde_json::to_value(object).map_err(ReconcileError::terminal)
}
