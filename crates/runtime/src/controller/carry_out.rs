//! The steps of a plan, carried out one after the other; the first that fails ends the reconcile.

use super::actions::Answer;
use super::confirm::Confirmed;
use super::owning::Parent;
use super::reconcile::either;
use super::running::Running;
use crate::action::Action;
use crate::cache::AnyObject;
use crate::key::Key;
use crate::kind::Kind;
use crate::labels::CONTROLLER_LABEL;
use crate::plan::{Effect, Plan, Propagation, Step};
use crate::reason::Reason;
use crate::write::{Basis, Deletion, Done, Subresource, WriteError, keep_initial, version_of};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

impl Running {
    pub(super) async fn carry_out(
        &self,
        parent: &Parent,
        object: &Arc<dyn AnyObject>,
        plan: &Plan,
        confirmed: &Confirmed,
    ) -> Result<Done, WriteError> {
        let mut all = Done::Unchanged;
        for step in plan.steps() {
            let done = self.step(parent, object, step, confirmed).await?;
            let effect = &step.effect;
            all = either(all, done);
            if done == Done::Unchanged {
                continue;
            }
            let what = match effect.kind() {
                Some(kind) => {
                    let key = parent.key_of(effect);
                    format!("{} {kind} {key}", self.verb(effect, kind, &key))
                }
                None => effect.to_string(),
            };
            let what = format!("{what}: {}", step.reason.message());
            self.record_event_if(done, parent, false, step.reason.clone().saying(what));
            if matches!(effect, Effect::Claim { .. }) {
                // What follows was decided before the claim was made.
                break;
            }
        }
        Ok(all)
    }

    async fn step(
        &self,
        parent: &Parent,
        object: &Arc<dyn AnyObject>,
        step: &Step,
        confirmed: &Confirmed,
    ) -> Result<Done, WriteError> {
        let effect = &step.effect;
        let kind = match effect {
            Effect::Act(action) => return self.ask_for(parent, action, &step.reason),
            Effect::Apply { kind, .. }
            | Effect::CreateOnce { kind, .. }
            | Effect::Claim { kind, .. }
            | Effect::Patch { kind, .. }
            | Effect::Delete { kind, .. } => kind,
        };
        match effect {
            Effect::Patch { patch, .. } => {
                return self.patch_dependent(parent, &**object, kind, &parent.key_of(effect), patch).await;
            }
            Effect::Delete { propagation, .. } if self.deletes_dependents(kind) => {
                let (key, how) = (parent.key_of(effect), *propagation);
                return self.delete_dependent(parent, &**object, kind, &key, how, confirmed).await;
            }
            _ => {}
        }
        let store = self.owned.get(kind).ok_or_else(|| WriteError::Undeclared(kind.kind.to_string()))?;
        let key = parent.key_of(effect);
        if kind.namespaced && key.namespace().is_none() {
            return Err(WriteError::NoNamespace { kind: kind.kind.to_string(), key });
        }
        if !parent.is_beside(&key) && !self.anywhere.contains(kind) {
            return Err(WriteError::OtherNamespace { kind: kind.kind.to_string(), key });
        }
        let mut live = store.get(&key);
        if live.is_none() && self.labelled.contains(kind) && !matches!(effect, Effect::Delete { .. }) {
            // The cache holds what plans made, and the name may be another's.
            live = self.writer.read_object(kind, &key).await?;
            if let Some(child) = live.as_ref().filter(|live| parent.owns(live.meta())) {
                self.label(parent, kind, &key, child.meta()).await?;
            }
        }
        if let Some(live) = &live {
            self.check_ours(parent, kind, &key, live)?;
            if live.meta().deletion_timestamp.is_some() {
                // It is on its way out. What is wanted in its place is made when it is gone, and that is a change.
                return Ok(Done::Unchanged);
            }
        }
        if let Some(known) = live.take_if(|_| effect.needs_contents()) {
            live = self.writer.whole(kind, &key, known).await?;
        }
        let reconciled = &parent.key;
        let done = match (effect, &live) {
            (Effect::Apply { object, initially, recreate, .. }, live) => {
                match (self.apply(parent, kind, &key, object, initially, live.as_ref()).await, recreate, live)
                {
                    (Err(refused), Some(dependents), Some(live)) if refused.is_invalid() => {
                        let done = self.recreate(parent, kind, &key, object, live, *dependents).await?;
                        done.ok_or(refused)
                    }
                    (done, _, _) => done,
                }
            }
            (Effect::Claim { object, .. }, live) => {
                let whole = parent.mark_whole(kind, &key, object);
                self.writer.claim(kind, &key, &whole, live.as_ref(), reconciled).await
            }
            (Effect::CreateOnce { object, generate, .. }, None) => {
                self.create_once(parent, kind, &key, object, generate).await
            }
            (Effect::CreateOnce { generate, .. }, Some(live)) => {
                self.renew(parent, kind, &key, generate, live).await
            }
            (Effect::Delete { propagation, .. }, Some(live)) => match version_of(live.meta()) {
                Some(object_version) => {
                    self.confirm(confirmed, parent, &**object).await?;
                    let how = Deletion::new(Basis::Absent).propagation(*propagation);
                    self.writer.remove(kind, &key, &object_version, &how, reconciled).await
                }
                None => Ok(Done::Unchanged),
            },
            (Effect::Delete { .. }, None) | (Effect::Act(_) | Effect::Patch { .. }, _) => Ok(Done::Unchanged),
        }?;
        let made = done == Done::Changed && live.is_none();
        if made && !parent.is_beside(&key) && store.get(&key).is_none() {
            // The next reconcile would not see it either, and make it again.
            return Err(WriteError::NotWatched { kind: kind.kind.to_string(), key });
        }
        Ok(done)
    }

    /// Labels a child that is the parent's and was not observed, since somebody made it without the label; then it is decided
    /// again, on what it is like. One that has the label came a moment ago, and is told of soon.
    async fn label(
        &self,
        parent: &Parent,
        kind: &Kind,
        key: &Key,
        meta: &ObjectMeta,
    ) -> Result<(), WriteError> {
        if meta.labels.as_ref().is_some_and(|labels| labels.contains_key(CONTROLLER_LABEL)) {
            return Ok(());
        }
        let label =
            json!({ "metadata": { "uid": meta.uid, "labels": { CONTROLLER_LABEL: &*parent.controller } } });
        self.writer.merge(kind, key, "", &label, &parent.key).await?;
        Err(WriteError::Unconfirmed)
    }

    /// What was done, in a word. An object that was to be applied and is not there now was deleted, to be created anew.
    fn verb(&self, effect: &Effect, kind: &Kind, key: &Key) -> &'static str {
        let there = || self.owned.get(kind).and_then(|store| store.get(key));
        let stays = || there().is_some_and(|object| object.meta().deletion_timestamp.is_none());
        match effect {
            Effect::Apply { recreate: Some(_), .. } if !stays() => "recreate",
            _ => effect.verb(),
        }
    }

    async fn apply(
        &self,
        parent: &Parent,
        kind: &Kind,
        key: &Key,
        object: &Value,
        initially: &[String],
        live: Option<&Arc<dyn AnyObject>>,
    ) -> Result<Done, WriteError> {
        if initially.is_empty() {
            // The marks follow from whose it is.
            let made = ((object, &parent.uid), || Cow::Owned(parent.mark(kind, key, object)));
            return self.writer.apply_made(kind, key, Subresource::None, made, live, &parent.key).await;
        }
        let mut intent = parent.mark(kind, key, object);
        if let Some(live) = live {
            intent = keep_initial(&intent, initially, &live.to_json(), self.writer.manager());
        }
        self.writer.apply(kind, key, Subresource::None, &intent, live, &parent.key).await
    }

    /// Deletes an object that cannot be changed into what is wanted; `None` if that could not be created either. Once it is
    /// gone, which is a change, there is another reconcile.
    async fn recreate(
        &self,
        parent: &Parent,
        kind: &Kind,
        key: &Key,
        wanted: &Value,
        live: &Arc<dyn AnyObject>,
        dependents: Propagation,
    ) -> Result<Option<Done>, WriteError> {
        let Some(last) = version_of(live.meta()) else { return Ok(None) };
        if !self.writer.would_create(kind, key, &parent.mark(kind, key, wanted)).await? {
            return Ok(None);
        }
        // What was observed is deleted, and nothing that came since.
        let how = Deletion::new(Basis::Observed).propagation(dependents).if_unchanged();
        self.writer.remove(kind, key, &last, &how, &parent.key).await.map(Some)
    }

    /// Asks for an action. Nothing is written yet, so the reconcile goes on; when it has ended there is another.
    fn ask_for(&self, parent: &Parent, action: &Action, reason: &Reason) -> Result<Done, WriteError> {
        if self.actions.ask(&parent.key, &parent.uid, action)? == Answer::Queued {
            let what = format!("act {} {}: {}", action.name(), action.key(), reason.message());
            self.record_event_if(Done::Changed, parent, false, reason.clone().saying(what));
        }
        Ok(Done::Unchanged)
    }

    fn check_ours(
        &self,
        parent: &Parent,
        kind: &Kind,
        key: &Key,
        live: &Arc<dyn AnyObject>,
    ) -> Result<(), WriteError> {
        let adoption = self.adoption.get(kind).copied().unwrap_or_default();
        if parent.may_write(live.meta(), adoption) {
            return Ok(());
        }
        let owner = live.meta().owner_references.iter().flatten().next();
        let owner = owner.map(|owner| format!("{} {}", owner.kind, owner.name));
        Err(WriteError::NotOurs { kind: kind.kind.to_string(), key: key.clone(), owner })
    }
}
