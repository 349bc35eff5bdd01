//! Runs actions: beside the reconciles by workers of their own, under their guards and in their time.

use super::actions::{Do, End, Id, Lane};
use super::actions_and_facts::Context;
use super::running::{Running, panic_text};
use crate::action::{Action, Guard};
use crate::cache::AnyObject;
use crate::error_chain::chain;
use crate::key::Key;
use crate::kind::Kind;
use crate::queue::Priority;
use futures::FutureExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

impl Running {
    /// Runs one action whenever it was asked for, until stopped; then whatever runs is dropped where it is.
    pub(super) async fn work_on_action(self: Arc<Self>, name: String) {
        let Some(Lane { what, queue }) = self.actions.lane(&name) else { return };
        while let Some(taken) = queue.next().await {
            let id: Id = Id::clone(&taken);
            let Some(open) = self.actions.begin(&id, self.clock.now()) else { continue };
            let ended = tokio::select! {
                biased;
                () = self.actions.stopped.cancelled() => return,
                ended = Box::pin(self.run_action(what, &id.0, &open.uid, &open.action)) => ended,
            };
            if let End::Failed(why) = &ended {
                tracing::warn!(controller = %self.name, object = %id.0, action = open.action.name(), key = open.action.key(), "an action failed: {why}");
            }
            open.end(ended, self.clock.now());
            if self.primary.get(&id.0).is_none() {
                self.actions.forget(&id.0);
            }
            // Given back before the reconcile that may ask for it again.
            drop(taken);
            self.queue.add(id.0, Priority::NORMAL);
        }
    }

    async fn run_action(&self, what: &Do, key: &Key, uid: &str, action: &Action) -> End {
        let object = match self.live_for(key, uid, action).await {
            Ok(object) => object,
            Err(ended) => return ended,
        };
        let context =
            Context { client: self.writer.client().clone(), clock: self.clock.clone(), key: key.clone() };
        let run =
            AssertUnwindSafe(async { what(object, action.args().clone(), context).await }).catch_unwind();
        match self.clock.timeout(action.limit(), run).await {
            Ok(Ok(Ok(said))) => End::Done(said),
            Ok(Ok(Err(failure))) => End::Failed(failure.chain()),
            Ok(Err(panic)) => End::Failed(format!("it panicked: {}", panic_text(&*panic))),
            Err(_) => End::TimedOut,
        }
    }

    /// The object as it is at this moment, if the action may still be done for it.
    async fn live_for(&self, key: &Key, uid: &str, action: &Action) -> Result<Arc<dyn AnyObject>, End> {
        let live = self.writer.read(&self.kind, key).await.map_err(|error| End::Failed(chain(&error)))?;
        let Some(live) = live else { return Err(End::Overtaken("the object is gone".to_owned())) };
        let object = (self.read)(live.clone())
            .map_err(|error| End::Failed(format!("the object does not fit its type: {error}")))?;
        let meta = object.meta();
        if meta.uid.as_deref() != Some(uid) {
            return Err(End::Overtaken("another object has the name now".to_owned()));
        }
        if let Some(why) = action.guards().iter().find_map(|guard| guard.broken(meta, &live)) {
            return Err(End::Overtaken(why));
        }
        for (kind, name, holds) in action.guards().iter().filter_map(Guard::other) {
            self.holds_of(key, kind, name, holds).await?;
        }
        // Last, since it holds for so short a time.
        if self.leadership.as_ref().is_some_and(|leadership| !leadership.leads()) {
            return Err(End::Overtaken("another replica may be leading by now".to_owned()));
        }
        Ok(object)
    }

    /// Looks at another object that a guard is about.
    async fn holds_of(&self, key: &Key, kind: &Kind, name: &str, guard: &Guard) -> Result<(), End> {
        let place = key.beside(key.namespace().filter(|_| kind.namespaced), name);
        let live = self.writer.read(kind, &place).await.map_err(|error| End::Failed(chain(&error)))?;
        let overtaken = |why: &str| Err(End::Overtaken(format!("{} {name}: {why}", kind.kind)));
        let Some(live) = live else { return overtaken("it is not there") };
        let meta = live.get("metadata").cloned().unwrap_or_default();
        let meta: ObjectMeta = serde_json::from_value(meta).unwrap_or_default();
        match guard.broken(&meta, &live) {
            Some(why) => overtaken(&why),
            // A guard of a guard's object is about the same namespace, and no more.
            None if guard.other().is_some() => overtaken("a guard is about one other object"),
            None => Ok(()),
        }
    }
}
