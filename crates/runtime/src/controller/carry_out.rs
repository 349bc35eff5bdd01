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
use crate::plan::{Effect, Plan, Step};
use crate::reason::Reason;
use crate::write::{Done, Subresource, WriteError, keep_initial, version_of};
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
                Some(kind) => format!("{} {kind} {}", effect.verb(), parent.key_of(effect)),
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
            | Effect::Delete { kind, .. } => kind,
        };
        let store = self.owned.get(kind).ok_or_else(|| WriteError::Undeclared(kind.kind.to_string()))?;
        self.check_declared(effect, kind)?;
        if effect.name().is_empty() {
            return Err(WriteError::NoName(kind.kind.to_string()));
        }
        let key = parent.key_of(effect);
        if kind.namespaced && key.namespace().is_none() {
            return Err(WriteError::NoNamespace { kind: kind.kind.to_string(), key });
        }
        if !parent.can_own(&key) && !self.anywhere.contains(kind) {
            return Err(WriteError::OtherNamespace { kind: kind.kind.to_string(), key });
        }
        let mut live = store.get(&key);
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
            (Effect::Apply { object, initially, .. }, live) if initially.is_empty() => {
                // The marks follow from whose it is.
                let made = ((object, &parent.uid), || Cow::Owned(parent.mark(&key, object)));
                self.writer.apply_made(kind, &key, Subresource::None, made, live.as_ref(), reconciled).await
            }
            (Effect::Apply { object, initially, .. }, live) => {
                let mut intent = parent.mark(&key, object);
                if let Some(live) = live {
                    intent = keep_initial(&intent, initially, &live.to_json(), self.writer.manager());
                }
                self.writer.apply(kind, &key, Subresource::None, &intent, live.as_ref(), reconciled).await
            }
            (Effect::Claim { object, .. }, live) => {
                let whole = parent.mark_whole(&key, object);
                self.writer.claim(kind, &key, &whole, live.as_ref(), reconciled).await
            }
            (Effect::CreateOnce { object, generate, .. }, None) => {
                self.writer.create(kind, &key, &parent.mark(&key, object), generate, reconciled).await
            }
            (Effect::Delete { .. }, Some(live)) => match version_of(live.meta()) {
                Some(object_version) => {
                    self.confirm(confirmed, parent, &**object).await?;
                    self.writer.delete(kind, &key, &object_version, reconciled).await
                }
                None => Ok(Done::Unchanged),
            },
            (Effect::CreateOnce { .. }, Some(_)) | (Effect::Delete { .. }, None) | (Effect::Act(_), _) => {
                Ok(Done::Unchanged)
            }
        }?;
        let made = done == Done::Changed && live.is_none();
        if made && !parent.can_own(&key) && store.get(&key).is_none() {
            // The next reconcile would not see it either, and make it again.
            return Err(WriteError::NotWatched { kind: kind.kind.to_string(), key });
        }
        Ok(done)
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
        if parent.may_write(live.meta(), self.adoption) {
            return Ok(());
        }
        let owner = live.meta().owner_references.iter().flatten().next();
        let owner = owner.map(|owner| format!("{} {}", owner.kind, owner.name));
        Err(WriteError::NotOurs { kind: kind.kind.to_string(), key: key.clone(), owner })
    }
}
