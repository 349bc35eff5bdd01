//! Objects of one's children: the pods of a StatefulSet, the claims of its templates. They are not the controller's own, and a
//! plan may patch or delete those to which its object is related.

use super::Controller;
use super::confirm::Confirmed;
use super::owning::Parent;
use super::running::Running;
use crate::cache::AnyObject;
use crate::key::Key;
use crate::kind::{Cached, Kind, Object};
use crate::plan::Propagation;
use crate::write::{Basis, Deletion, Done, WriteError, version_of};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_schema::patch;

impl<K: Cached> Controller<K> {
    /// Its plans also patch objects of this kind, which it watches and others own ([`Plan::patch`](crate::Plan::patch)): those
    /// to which the object is related, and no others.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::StatefulSet;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// # use windlass::{Controller, Plan, Reason, Relation};
    /// // The pods of a StatefulSet: one of them is labelled, and others are deleted, in an order of the operator's own.
    /// let controller = Controller::deciding(|_: &ConfigMap, _| {
    ///         let labels = serde_json::json!({"metadata": {"labels": {"role": "primary"}}});
    ///         Ok(Plan::new()
    ///             .patch::<Pod>("db-0", labels, Reason::new("Elected", "it leads"))
    ///             .delete::<Pod>("db-1", Reason::new("Restarts", "its settings need it")))
    ///     })
    ///     .owns::<StatefulSet>()
    ///     .watches::<Pod>(|_| Relation::labelled([("app", "db")]))
    ///     .patches::<Pod>()
    ///     .deletes::<Pod>();
    /// ```
    pub fn patches<C: Object>(mut self) -> Self {
        self.parts.patches.insert(Kind::of::<C>());
        self
    }
}

impl Running {
    /// An object that is no child, to which the object is related; none if it is not there.
    fn dependent(
        &self,
        object: &dyn AnyObject,
        kind: &Kind,
        key: &Key,
    ) -> Result<Option<Arc<dyn AnyObject>>, WriteError> {
        let mut there = None;
        for related in self.related.iter().filter(|related| related.kind == *kind) {
            let Some(found) = related.store.get(key) else { continue };
            if related.of(object).matches((&*found).into()) {
                return Ok(Some(found));
            }
            there = Some(found);
        }
        match there {
            None => Ok(None),
            Some(_) => Err(WriteError::NotRelated { kind: kind.kind.to_string(), key: key.clone() }),
        }
    }

    /// Whether a kind is deleted by its relation, being watched and not owned.
    pub(super) fn deletes_dependents(&self, kind: &Kind) -> bool {
        !self.owned.contains_key(kind) && self.related.iter().any(|related| related.kind == *kind)
    }

    /// Changes fields of a dependent; nothing is sent when they are so already.
    pub(super) async fn patch_dependent(
        &self,
        parent: &Parent,
        object: &dyn AnyObject,
        kind: &Kind,
        key: &Key,
        fields: &Value,
    ) -> Result<Done, WriteError> {
        let Some(found) = self.dependent(object, kind, key)? else { return Ok(Done::Unchanged) };
        if found.meta().deletion_timestamp.is_some() {
            return Ok(Done::Unchanged);
        }
        let Some(whole) = self.writer.whole(kind, key, found).await? else { return Ok(Done::Unchanged) };
        let before = whole.to_json();
        let mut after = before.clone();
        patch::merge(&mut after, fields);
        if after == before {
            return Ok(Done::Unchanged);
        }
        // Of this object, and of none that has its name later.
        let mut fields = fields.clone();
        patch::merge(&mut fields, &json!({ "metadata": { "uid": whole.meta().uid } }));
        self.writer.merge(kind, key, "", &fields, &parent.key).await
    }

    /// Deletes a dependent, after everything was looked at live.
    pub(super) async fn delete_dependent(
        &self,
        parent: &Parent,
        object: &dyn AnyObject,
        kind: &Kind,
        key: &Key,
        propagation: Propagation,
        confirmed: &Confirmed,
    ) -> Result<Done, WriteError> {
        let found = self.dependent(object, kind, key)?;
        let Some(found) = found.filter(|found| found.meta().deletion_timestamp.is_none()) else {
            return Ok(Done::Unchanged);
        };
        let Some(version) = version_of(found.meta()) else { return Ok(Done::Unchanged) };
        self.confirm(confirmed, parent, object).await?;
        let how = Deletion::new(Basis::Absent).propagation(propagation);
        self.writer.remove(kind, key, &version, &how, &parent.key).await
    }
}
