//! One reconcile for one object: observe, decide, write, report; and again, on what was written, until nothing is.

use super::confirm::Confirmed;
use super::owning::Parent;
use super::parts::{Decide, Mode};
use super::preview::is_paused;
use super::reconcile_error::ReconcileError;
use super::running::Running;
use crate::cache::AnyObject;
use crate::conditions::{Standing, reasons};
use crate::events::{About, Events};
use crate::key::Key;
use crate::kind::{Cached, Kind};
use crate::observed::Observed;
use crate::plan::Plan;
use crate::reason::{Reason, Refusal};
use crate::write::{Done, WriteError, Writer};
use parking_lot::Mutex;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The number of times that a reconcile decides again on what it wrote itself. A decision that writes every time is at war with itself or
/// with another: it goes back to the queue, with back-off.
pub(super) const PASSES: usize = 8;

/// What comes after a reconcile that went well.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::{Controller, Requeue};
/// let controller = Controller::reconciling(|map: Arc<ConfigMap>, _reconcile| async move {
///     match &map.data {
///         Some(_) => Ok(Requeue::on_change()),
///         None => Ok(Requeue::after(Duration::from_secs(60))),
///     }
/// });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requeue(Option<Duration>);

impl Requeue {
    /// Nothing until something changes.
    pub fn on_change() -> Self {
        Self(None)
    }

    /// Another reconcile after this time, or when something changes.
    pub fn after(duration: Duration) -> Self {
        Self(Some(duration))
    }

    pub(crate) fn delay(self) -> Option<Duration> {
        self.0
    }
}

/// The parts of a reconcile, for a reconciler that writes by itself.
///
/// ```
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use windlass::{Controller, Requeue, Plan, Reason, Reconcile};
/// let controller = Controller::reconciling(|_: Arc<ConfigMap>, ctx: Reconcile<ConfigMap>| async move {
///     // Anything may be awaited here; what follows is as if a decision had returned the plan.
///     let mut secret = Secret::default();
///     secret.metadata.name = Some(ctx.key().name().to_owned());
///     ctx.carry_out(&Plan::new().apply(secret, Reason::new("Mirrors", "mirrors the map"))).await?;
///     Ok(Requeue::on_change())
/// })
/// .owns::<Secret>();
/// ```
#[derive(Clone)]
pub struct Reconcile<K> {
    pub(super) running: Arc<Running>,
    pub(super) object: Arc<dyn AnyObject>,
    pub(super) parent: Parent,
    /// Whether something was written: then there is another pass, on what was written.
    pub(super) wrote: Arc<AtomicBool>,
    pub(super) confirmed: Arc<Confirmed>,
    /// When a certificate of a plan that was carried out is due.
    renewal: Arc<Mutex<Option<Duration>>>,
    of: PhantomData<fn(K)>,
}

impl Reconcile<()> {
    /// The same, for who knows the type.
    pub(super) fn of_type<K>(self) -> Reconcile<K> {
        let Self { running, object, parent, wrote, confirmed, renewal, of: _ } = self;
        Reconcile { running, object, parent, wrote, confirmed, renewal, of: PhantomData }
    }
}

impl<K: Cached> Reconcile<K> {
    /// Whose reconcile it is.
    pub fn key(&self) -> &Key {
        &self.parent.key
    }

    /// What is there now, for this object.
    pub fn observed(&self) -> Observed {
        self.running.observe(&*self.object)
    }

    /// Carries a plan out and reports it, as for a controller that decides.
    ///
    /// # Errors
    /// [`ReconcileError`] when something could not be written.
    pub async fn carry_out(&self, plan: &Plan) -> Result<Done, ReconcileError> {
        let (parent, object) = (&self.parent, &self.object);
        let done =
            self.running.act_and_report(parent, object, Ok(plan), false, &self.confirmed).await?.done();
        if done == Done::Changed {
            self.wrote.store(true, Ordering::Relaxed);
        }
        let mut renewal = self.renewal.lock();
        *renewal = renewal.into_iter().chain(self.running.next_renewal(parent, plan)).min();
        drop(renewal);
        Ok(done)
    }

    /// What writes: only what would change, and the cache knows at once. What it writes in this reconcile's key does not
    /// start another reconcile.
    pub fn writer(&self) -> &Writer {
        &self.running.writer
    }
}

impl<K> std::fmt::Debug for Reconcile<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconcile").field("key", &self.parent.key).finish_non_exhaustive()
    }
}

impl Running {
    /// One reconcile for the object under a key.
    pub(super) async fn reconcile(self: &Arc<Self>, key: &Key) -> Result<Requeue, ReconcileError> {
        let mut lost = None;
        let mut confirmed = Arc::<Confirmed>::default();
        for _ in 0..PASSES {
            self.writer.settle_doubts(key).await?;
            self.writer.ledgers().look(key);
            let concerns =
                |object: &Arc<dyn AnyObject>| self.filter.as_ref().is_none_or(|filter| filter(&**object));
            let Some(object) = self.primary.get(key).filter(concerns) else {
                self.waiting.forget(key);
                return Ok(Requeue::on_change());
            };
            let passed = self.pass(key, object, &confirmed).await;
            confirmed = Arc::new(confirmed.next());
            match passed {
                Ok((Done::Unchanged, next)) => return Ok(next),
                Ok((Done::Changed, _)) => {}
                // Somebody was faster, or a cache may be behind: what is there now is read, and decided on.
                Err(error) if error.decides_again() => lost = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(lost.unwrap_or(ReconcileError::Unsettled))
    }

    async fn pass(
        self: &Arc<Self>,
        key: &Key,
        object: Arc<dyn AnyObject>,
        confirmed: &Arc<Confirmed>,
    ) -> Result<(Done, Requeue), ReconcileError> {
        let parent = Parent {
            kind: self.kind.clone(),
            key: key.clone(),
            uid: object.meta().uid.clone().unwrap_or_default(),
            controller: self.name.clone(),
            retains: self.retains.clone(),
        };
        if is_paused(object.meta(), &self.pause) {
            let says = format!("annotation {} pauses it: nothing will be done", self.pause);
            let reason = Reason::new(reasons::PAUSED_BY_ANNOTATION, says);
            self.waiting.stands(&parent.key, Standing::Waiting(&reason), None);
            return Ok((self.report_pause(&parent).await?, Requeue::on_change()));
        }
        let deleting = object.meta().deletion_timestamp.is_some();
        let decide = match &self.mode {
            Mode::Reconciling(reconcile) if !deleting || !self.holds() => {
                let wrote = Arc::new(AtomicBool::new(false));
                let renewal = Arc::<Mutex<Option<Duration>>>::default();
                // It reads what it likes, when it likes.
                self.want_facts(&parent, self.facts.names().cloned().collect());
                let reconciled = Reconcile {
                    running: self.clone(),
                    object: object.clone(),
                    parent,
                    wrote: wrote.clone(),
                    confirmed: confirmed.clone(),
                    renewal: renewal.clone(),
                    of: PhantomData,
                };
                let Requeue(next) = reconcile(object, reconciled).await?;
                let next = Requeue(next.into_iter().chain(*renewal.lock()).min());
                let done = if wrote.load(Ordering::Relaxed) { Done::Changed } else { Done::Unchanged };
                return Ok((done, next));
            }
            Mode::Deciding(decide) if !deleting => decide,
            _ => return self.cleanup_pass(&parent, &object, confirmed).await,
        };
        let observed = self.observe(&*object);
        let decision = decide(&*object, &observed);
        self.want_facts(&parent, observed.facts_read());
        if let Ok(plan) = &decision {
            tracing::debug!("{plan}");
        }
        let did = self.act_and_report(&parent, &object, decision.as_ref(), false, confirmed).await?;
        if did == Did::Reported
            && let Ok(plan) = &decision
            && let Some(next) = self.settled(&parent, decide, plan)
        {
            return Ok((Done::Unchanged, next));
        }
        Ok((did.done(), self.next_of(&parent, &decision, &observed)))
    }

    /// What comes next, if the same is decided on what was just reported: to carry that out once more would change nothing.
    /// What others did since the pass looked may have come with the answer, and what is told of it later is no news then: an
    /// object that is to be deleted or is paused since is not settled.
    fn settled(&self, parent: &Parent, decide: &Decide, plan: &Plan) -> Option<Requeue> {
        let object = self.primary.get(&parent.key)?;
        if object.meta().deletion_timestamp.is_some() || is_paused(object.meta(), &self.pause) {
            return None;
        }
        let observed = self.observe(&*object);
        let again = decide(&*object, &observed);
        (again.as_ref().ok() == Some(plan)).then(|| self.next_of(parent, &again, &observed))
    }

    /// When to look again: when a wait ends, or a certificate is due.
    fn next_of(&self, parent: &Parent, decision: &Result<Plan, Refusal>, observed: &Observed) -> Requeue {
        let Ok(plan) = decision else { return Requeue::on_change() };
        Requeue(plan.due(observed.now()).into_iter().chain(self.next_renewal(parent, plan)).min())
    }

    /// The object is being deleted: undo, then let it go.
    async fn cleanup_pass(
        self: &Arc<Self>,
        parent: &Parent,
        object: &Arc<dyn AnyObject>,
        confirmed: &Confirmed,
    ) -> Result<(Done, Requeue), ReconcileError> {
        let held = object.meta().finalizers.iter().flatten().any(|finalizer| *finalizer == self.finalizer);
        if !held {
            return Ok((Done::Unchanged, Requeue::on_change()));
        }
        let Some(cleanup) = &self.cleanup else {
            // Nothing but the children elsewhere; or an earlier version of this controller could undo.
            return self.collect_and_remove_finalizer(parent, object).await;
        };
        let observed = self.observe(&**object);
        let decision = cleanup(&**object, &observed);
        self.want_facts(parent, observed.facts_read());
        let done = self.act_and_report(parent, object, decision.as_ref(), true, confirmed).await?.done();
        let undone = decision.as_ref().is_ok_and(Plan::is_complete) && done == Done::Unchanged;
        if undone {
            // That nothing is left to clean up was decided on caches, and what they missed would be left behind for ever.
            self.confirm(confirmed, parent, &**object).await?;
            return self.collect_and_remove_finalizer(parent, object).await;
        }
        Ok((done, self.next_of(parent, &decision, &observed)))
    }

    async fn collect_and_remove_finalizer(
        &self,
        parent: &Parent,
        object: &Arc<dyn AnyObject>,
    ) -> Result<(Done, Requeue), ReconcileError> {
        let (done, waits_for) = self.collect(parent).await?;
        let Some(reason) = waits_for else {
            self.remove_finalizer(parent, object).await?;
            return Ok((done, Requeue::on_change()));
        };
        // The last of them rings when it is gone. Most go at once: only what is still there at the second look is told.
        let standing = Standing::Waiting(&reason);
        self.waiting.stands(&parent.key, standing, None);
        let reported = match done {
            Done::Changed => done,
            Done::Unchanged => self.report(parent, None, standing).await?,
        };
        Ok((reported, Requeue::on_change()))
    }

    /// Everything that the decision may look at.
    pub(super) fn observe(&self, object: &dyn AnyObject) -> Observed {
        let mut observed = Observed::at(self.clock.now());
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        let cluster = self.primary.cluster();
        let declare = |observed: &mut Observed, kind: &Kind, found: Vec<Arc<dyn AnyObject>>| {
            if let Some(ages) = self.last_changes.ages(kind, &found, cluster) {
                observed.track(kind, &found, &ages);
            }
            observed.declare(kind, found);
        };
        for (kind, store) in &self.owned {
            declare(&mut observed, kind, store.owned_by(uid));
        }
        for related in self.related.iter() {
            let relation = related.of(object);
            let found = related.store.select(&relation);
            if related.by_name {
                observed.refer(&related.kind, relation.names(), &found);
            }
            declare(&mut observed, &related.kind, found);
        }
        let key = Key::of(self.primary.cluster().clone(), object.meta());
        if !self.actions.is_empty() {
            observed.actions_were(self.actions.names().cloned(), self.actions.outcomes(&key, uid));
        }
        if !self.facts.is_empty() {
            observed.facts_are(self.facts.about(&key, uid));
        }
        observed
    }

    /// Carries a decision out and reports how the object stands.
    pub(super) async fn act_and_report(
        &self,
        parent: &Parent,
        object: &Arc<dyn AnyObject>,
        decision: Result<&Plan, &Refusal>,
        deleting: bool,
        confirmed: &Confirmed,
    ) -> Result<Did, ReconcileError> {
        let plan = match decision {
            Ok(plan) => plan,
            Err(refusal) => {
                let reason = refusal.reason();
                let news = self.waiting.is_news(&parent.key, reason.name(), reason.message());
                self.waiting.stands(&parent.key, Standing::Refused(reason), None);
                let done = self.report(parent, None, Standing::Refused(reason)).await?;
                self.record_event_if(self.worth_an_event(done, news), parent, true, reason.clone());
                return Ok(Did::of(Done::Unchanged, done));
            }
        };
        match self.act(parent, object, plan, deleting, confirmed).await {
            Ok(acted) => {
                let standing = match plan.waits().first() {
                    Some(wait) => Standing::Waiting(&wait.reason),
                    None => Standing::Complete,
                };
                self.waiting.stands(&parent.key, standing, plan.due(self.clock.now()));
                // What was just changed is decided on again at once, and that decision knows better what to report. And
                // nobody reads the status of an object that is about to go.
                let reported = match acted == Done::Changed || (deleting && plan.is_complete()) {
                    true => Done::Unchanged,
                    false => self.report(parent, Some(plan), standing).await?,
                };
                let done = either(acted, reported);
                for note in plan.notes() {
                    self.record_event_if(done, parent, note.warning, note.reason.clone());
                }
                Ok(Did::of(acted, reported))
            }
            Err(error) => {
                if error.is_reported() {
                    let reason = Reason::new(error.label(), crate::error_chain::chain(&error));
                    // The first error is the one to tell; if reporting fails too, the retry reports again.
                    let news = self.waiting.is_news(&parent.key, reason.name(), reason.message());
                    let reported = self.report(parent, None, Standing::Refused(&reason)).await;
                    self.record_event_if(
                        self.worth_an_event(reported.unwrap_or(Done::Unchanged), news),
                        parent,
                        true,
                        reason,
                    );
                }
                Err(error.into())
            }
        }
    }

    async fn act(
        &self,
        parent: &Parent,
        object: &Arc<dyn AnyObject>,
        plan: &Plan,
        deleting: bool,
        confirmed: &Confirmed,
    ) -> Result<Done, WriteError> {
        self.declared.check(plan)?;
        if deleting {
            return self.carry_out(parent, object, plan, confirmed).await;
        }
        let prepared = self.prepare(parent, object.meta(), plan).await?;
        let carried_out = self.carry_out(parent, object, plan, confirmed).await?;
        let pruned = self.prune(parent, object, plan, confirmed).await?;
        Ok(either(prepared, either(carried_out, pruned)))
    }

    /// Whether there is something to tell: what was written into the conditions, or news where there is no room for any.
    fn worth_an_event(&self, written: Done, news: bool) -> Done {
        let nowhere_else = news && self.no_conditions.load(Ordering::Relaxed);
        if nowhere_else { Done::Changed } else { written }
    }

    /// Records an event about the parent, if something was done: an object at rest says nothing.
    pub(super) fn record_event_if(&self, done: Done, parent: &Parent, warning: bool, reason: Reason) {
        if done == Done::Changed {
            tracing::info!(reason = reason.name(), "{}", reason.message());
            if self.events == Events::All || (self.events == Events::Warnings && warning) {
                let (kind, key) = (parent.kind.clone(), parent.key.clone());
                self.recorder.record(About { kind, key, uid: parent.uid.clone() }, warning, reason);
            }
        }
    }
}

/// What of a decision was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Did {
    /// Nothing.
    Nothing,
    /// How the object stands, and nothing else.
    Reported,
    /// What the decision is about.
    Acted,
}

impl Did {
    fn of(acted: Done, reported: Done) -> Self {
        match (acted, reported) {
            (Done::Changed, _) => Self::Acted,
            (Done::Unchanged, Done::Changed) => Self::Reported,
            (Done::Unchanged, Done::Unchanged) => Self::Nothing,
        }
    }

    fn done(self) -> Done {
        if self == Self::Nothing { Done::Unchanged } else { Done::Changed }
    }
}

pub(super) fn either(one: Done, other: Done) -> Done {
    if one == Done::Changed { one } else { other }
}
