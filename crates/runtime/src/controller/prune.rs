//! Deleting the children that a complete plan no longer wants: by the controller's mark and the owner's UID, one by one.

use super::confirm::Confirmed;
use super::owning::Parent;
use super::reconcile::either;
use super::running::Running;
use crate::cache::AnyObject;
use crate::key::Key;
use crate::kind::Kind;
use crate::plan::Plan;
use crate::reason::Reason;
use crate::write::{Done, WriteError, version_of};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::sync::Arc;

/// The reason of the events about children that are no longer wanted.
const PRUNED: &str = "Pruned";

impl Running {
    pub(super) async fn prune(
        &self,
        parent: &Parent,
        object: &Arc<dyn AnyObject>,
        plan: &Plan,
        confirmed: &Confirmed,
    ) -> Result<Done, WriteError> {
        let meta = object.meta();
        let mut all = Done::Unchanged;
        if !plan.is_complete() {
            return Ok(all);
        }
        for kind in &self.prunes {
            let Some(store) = self.owned.get(kind) else { continue };
            for child in parent.unwanted(kind, store.owned_by(&parent.uid), plan) {
                self.confirm(confirmed, parent, &**object).await?;
                all = either(all, self.prune_one(parent, kind, child.meta()).await?);
            }
        }
        let remembered = parent.remembered(meta);
        let unknown: Vec<&Kind> = remembered.iter().filter(|kind| !self.prunes.contains(kind)).collect();
        if !unknown.is_empty() {
            self.confirm(confirmed, parent, &**object).await?;
            for kind in &unknown {
                all = either(all, self.prune_unknown(parent, kind).await?);
            }
            // None of them is left: they need not be remembered any more.
            let known = remembered.iter().filter(|kind| self.prunes.contains(kind)).cloned().collect();
            all = either(all, self.mark_parent(parent, meta, &known).await?);
        }
        Ok(all)
    }

    /// Children of a kind that this version of the controller does not know; it is not cached, so it is read live.
    async fn prune_unknown(&self, parent: &Parent, kind: &Kind) -> Result<Done, WriteError> {
        // Those that were made elsewhere are found only where all are looked for.
        let namespace = parent.key.namespace().filter(|_| self.anywhere.is_empty());
        let children = self.writer.list_labelled(kind, namespace, &parent.key).await?;
        let mut all = Done::Unchanged;
        for child in children {
            let meta = child.get("metadata").cloned().unwrap_or_default();
            let Ok(meta) = serde_json::from_value::<ObjectMeta>(meta) else { continue };
            if parent.made(&meta) && meta.deletion_timestamp.is_none() {
                all = either(all, self.prune_one(parent, kind, &meta).await?);
            }
        }
        Ok(all)
    }

    pub(super) async fn prune_one(
        &self,
        parent: &Parent,
        kind: &Kind,
        meta: &ObjectMeta,
    ) -> Result<Done, WriteError> {
        let key = Key::of(parent.key.cluster().clone(), meta);
        let Some(stamp) = version_of(meta) else { return Ok(Done::Unchanged) };
        let done = self.writer.delete(kind, &key, &stamp, &parent.key).await?;
        self.record_event_if(
            done,
            parent,
            false,
            Reason::new(PRUNED, format!("delete {kind} {key}: no longer wanted")),
        );
        Ok(done)
    }
}
