//! What must be on the parent before its first child is made, and after the last one is undone.

use super::owning::Parent;
use super::running::Running;
use super::turn::either;
use crate::act::{ActError, Done, Door};
use crate::cache::AnyObject;
use crate::kind::Kind;
use crate::plan::{Effect, Plan};
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
    ) -> Result<Done, ActError> {
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
    ) -> Result<Done, ActError> {
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
        self.hand.apply(&self.kind, &parent.key, Door::Main, &intent, live.as_ref(), &parent.key).await
    }

    /// Whether objects are to be held by a finalizer until all is undone: the API server does not collect children elsewhere.
    pub(super) fn holds(&self) -> bool {
        self.undo.is_some() || !self.anywhere.is_empty()
    }

    /// Deletes the children elsewhere, and says whether none is left. They are looked for live, since one that a stale cache
    /// does not show would be left behind for ever.
    pub(super) async fn collect(&self, parent: &Parent) -> Result<(Done, bool), ActError> {
        let (mut all, mut none_left) = (Done::Unchanged, true);
        for kind in &self.anywhere {
            for child in self.hand.list_made_for(kind, &parent.uid, &parent.key).await? {
                let meta = child.get("metadata").cloned().unwrap_or_default();
                let Ok(meta) = serde_json::from_value::<ObjectMeta>(meta) else { continue };
                if !parent.made_elsewhere(&meta) {
                    continue;
                }
                none_left = false;
                if meta.deletion_timestamp.is_none() {
                    all = either(all, self.prune_one(parent, kind, &meta).await?);
                }
            }
        }
        Ok((all, none_left))
    }

    /// Takes the finalizer off, so that the object can go.
    pub(super) async fn let_go(&self, parent: &Parent, object: &Arc<dyn AnyObject>) -> Result<(), ActError> {
        // The newest that is known: the undo may have reported a status.
        let newest = self.primary.get(&parent.key).unwrap_or_else(|| object.clone());
        let meta = newest.meta();
        let others: Vec<String> =
            meta.finalizers.iter().flatten().filter(|held| **held != self.finalizer).cloned().collect();
        if Some(&others) == meta.finalizers.as_ref() {
            return Ok(());
        }
        self.hand.set_finalizers(&self.kind, &parent.key, meta, &others).await
    }
}

fn makes_something(plan: &Plan) -> bool {
    plan.steps().iter().any(|step| !matches!(step.effect, Effect::Delete { .. } | Effect::Act(_)))
}
