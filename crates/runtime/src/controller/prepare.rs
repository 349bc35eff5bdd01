//! What must be on the parent before its first child is made, and after the last one is cleaned up.

use super::owning::Parent;
use super::reconcile::either;
use super::running::Running;
use crate::cache::AnyObject;
use crate::conditions::reasons;
use crate::kind::Kind;
use crate::plan::Plan;
use crate::reason::Reason;
use crate::write::{Done, Subresource, WriteError};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Running {
    /// Puts the finalizer and the kinds to remember on the parent, before anything is made that they are for.
    pub(super) async fn prepare(
        &self,
        parent: &Parent,
        meta: &ObjectMeta,
        plan: &Plan,
    ) -> Result<Done, WriteError> {
        let mut kinds = parent.remembered(meta);
        if self.holds() || makes_something(plan) {
            // All at once, whether this plan makes them or a later one: one write, and before the first child.
            kinds.extend(self.prunes.iter().cloned());
        }
        self.mark_parent(parent, meta, &kinds).await
    }

    /// Makes the parent remember exactly these kinds.
    pub(super) async fn mark_parent(
        &self,
        parent: &Parent,
        meta: &ObjectMeta,
        kinds: &BTreeSet<Kind>,
    ) -> Result<Done, WriteError> {
        let finalizer = self.holds().then_some(self.finalizer.as_str());
        let marked = !parent.remembered(meta).is_empty()
            || meta.finalizers.iter().flatten().any(|finalizer| *finalizer == self.finalizer);
        if finalizer.is_none() && kinds.is_empty() && !marked {
            return Ok(Done::Unchanged);
        }
        let intent = parent.intent(finalizer, kinds);
        let live = self.primary.get(&parent.key);
        if live.is_none() {
            // Gone meanwhile: the change that says so is on its way.
            return Ok(Done::Unchanged);
        }
        self.writer
            .apply(&self.kind, &parent.key, Subresource::None, &intent, live.as_ref(), &parent.key)
            .await
    }

    /// Whether objects are to be held by a finalizer until all is cleaned up: the API server does not collect children elsewhere.
    pub(super) fn holds(&self) -> bool {
        self.cleanup.is_some() || !self.collected.is_empty()
    }

    /// Deletes the children elsewhere, and says what the object waits for if any is left. They are looked for live, since one
    /// that a stale cache does not show would be left behind for ever.
    pub(super) async fn collect(&self, parent: &Parent) -> Result<(Done, Option<Reason>), WriteError> {
        let (mut all, mut left) = (Done::Unchanged, Vec::new());
        for kind in &self.collected {
            for child in self.writer.list_made_for(kind, &parent.uid, &parent.key).await? {
                let meta = child.get("metadata").cloned().unwrap_or_default();
                let Ok(meta) = serde_json::from_value::<ObjectMeta>(meta) else { continue };
                if !parent.made_elsewhere(&meta) {
                    continue;
                }
                if meta.deletion_timestamp.is_none() {
                    all = either(all, self.prune_one(parent, kind, &meta).await?);
                }
                left.push((kind, meta));
            }
        }
        Ok((all, waits_for(&left)))
    }

    /// Takes the finalizer off, so that the object can go.
    pub(super) async fn remove_finalizer(
        &self,
        parent: &Parent,
        object: &Arc<dyn AnyObject>,
    ) -> Result<(), WriteError> {
        // The newest that is known: the cleanup may have reported a status.
        let newest = self.primary.get(&parent.key).unwrap_or_else(|| object.clone());
        let meta = newest.meta();
        let others: Vec<String> =
            meta.finalizers.iter().flatten().filter(|held| **held != self.finalizer).cloned().collect();
        if Some(&others) == meta.finalizers.as_ref() {
            return Ok(());
        }
        self.writer.set_finalizers(&self.kind, &parent.key, meta, &others, &parent.key).await
    }
}

/// What an object waits for whose children elsewhere go: the one that shows best why that takes so long.
fn waits_for(left: &[(&Kind, ObjectMeta)]) -> Option<Reason> {
    let held = |meta: &ObjectMeta| meta.finalizers.as_ref().is_some_and(|all| !all.is_empty());
    let (kind, meta) = left.iter().find(|(_, meta)| held(meta)).or_else(|| left.first())?;
    let name = meta.name.as_deref().unwrap_or_default();
    let mut message = match &meta.namespace {
        Some(namespace) => format!("waits until {} {namespace}/{name} is gone", kind.kind),
        None => format!("waits until {} {name} is gone", kind.kind),
    };
    if held(meta) {
        let by = meta.finalizers.as_deref().unwrap_or_default().join(", ");
        message += &format!(", which is held by {by}");
    }
    Some(Reason::new(reasons::CHILDREN_LEFT, message))
}

fn makes_something(plan: &Plan) -> bool {
    plan.steps().iter().any(|step| step.effect.makes())
}
