//! Faults by configuration: what a test or a torture run does to requests and watches, and the count of writes.
//!
//! The server asks before and after each request for a resource:
//!
//! ```text
//! let info = RequestInfo { verb, resource, subresource, namespace, name, user, user_agent, dry_run };
//! let decision = faults.before(&info);
//! clock.sleep(decision.delay).await;
//! match decision.verdict {
//!     Verdict::Proceed => {}
//!     Verdict::Refuse(status) => return answer(status),   // recorded already: no `after`
//!     Verdict::Lose => return Err(connection_lost()),     // likewise
//! }
//! let answer = handle(request, decision.ceiling, decision.control.clone(), decision.mutations.clone()).await;
//! let outcome = faults.after(&info, &decision, answer.code);
//! clock.sleep(outcome.delay).await;
//! match outcome.delivery {
//!     Delivery::Deliver => Ok(answer),
//!     Delivery::Lose => Err(connection_lost()),
//!     Delivery::Cut => Ok(answer.with_body_that_breaks_off_halfway()),
//! }
//! ```
//!
//! Without rules a request costs a look at a flag, a write its record, and a watch its place in a list.
//!
//! Rules refuse, delay, lose or cut requests, answer from the past, drop or hold back watches and forget history, at the
//! Nth request that matches. The cluster's own controllers, scheduler and nodes are exempt unless a rule names their user.

mod audit;
mod rules;
#[cfg(test)]
mod tests;

pub use audit::{Audit, Record};
pub use rules::{Act, Effect, Mutation, Past, Pattern, Rule, Which};

use crate::read::{Hold, WatchControl};
use crate::status::Status;
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;
use windlass_store::{Revision, Store};

/// A request, as rules see it. What does not apply is empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestInfo<'a> {
    /// As Kubernetes names it for RBAC: `get`, `list`, `watch`, `create`, `deletecollection`...
    pub verb: &'a str,
    /// As in [`Key::resource`](windlass_store::Key::resource): `configmaps`, `apps/deployments`.
    pub resource: &'a str,
    /// `status`, `scale`...
    pub subresource: &'a str,
    /// The namespace in the path.
    pub namespace: &'a str,
    /// The name in the path; after a create, the name that was given.
    pub name: &'a str,
    /// Who asks.
    pub user: &'a str,
    /// With which program.
    pub user_agent: &'a str,
    /// Whether it is asked to change nothing.
    pub dry_run: bool,
}

impl RequestInfo<'_> {
    /// Is it a part of the cluster itself that asks? Rules mean it only if they name it, and the record leaves it out: faults
    /// and records are about those who use the cluster.
    pub(crate) fn is_of_the_cluster(&self) -> bool {
        let parts = [
            "system:apiserver",
            "system:kube-controller-manager",
            "system:kube-scheduler",
            "system:kube-proxy",
        ];
        parts.contains(&self.user)
            || self.user.starts_with("system:node:")
            || self.user.starts_with("system:serviceaccount:kube-system:")
    }

    /// Does it change something?
    pub fn writes(&self) -> bool {
        matches!(self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

/// What happens to a request before it is handled.
#[derive(Debug)]
pub struct Decision {
    /// Wait this long first.
    pub delay: Duration,
    /// Then do this.
    pub verdict: Verdict,
    /// Answer gets, lists and watches as if nothing had happened after this revision.
    pub ceiling: Option<Revision>,
    /// For a watch: what may cut it or hold it back. `ended` is left to the server.
    pub control: WatchControl,
    /// For a write: what becomes of the object on its way.
    pub mutations: Vec<Mutation>,
    /// The rules that have something to say after it was handled.
    after: Vec<Arc<Armed>>,
}

/// Whether a request is handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Handle it.
    Proceed,
    /// Answer this instead.
    Refuse(Box<Status>),
    /// Answer nothing: the connection is lost before anything took effect.
    Lose,
}

/// What happens to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Wait this long first.
    pub delay: Duration,
    /// Then do this.
    pub delivery: Delivery,
}

/// Whether an answer arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It arrives.
    Deliver,
    /// It does not: the connection is lost, though the request took effect.
    Lose,
    /// It arrives in part: the body breaks off.
    Cut,
}

/// Names a rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(u64);

/// A rule at work.
#[derive(Debug)]
struct Armed {
    id: RuleId,
    rule: Rule,
    /// How many requests its pattern matched.
    seen: AtomicU64,
}

/// A watch that goes on.
struct Live {
    pattern_of_one: OwnedInfo,
    cut: CancellationToken,
    hold: Sender<Hold>,
    held_by: Option<RuleId>,
    alive: Weak<()>,
}

struct OwnedInfo {
    resource: String,
    namespace: String,
    user: String,
    user_agent: String,
}

/// The faults of one server, and its record of writes.
pub struct Faults {
    store: Arc<Store>,
    rules: RwLock<Vec<Arc<Armed>>>,
    /// As `rules`, to be looked at without a lock.
    armed: AtomicUsize,
    next_id: AtomicU64,
    watches: Mutex<Watches>,
    audit: Audit,
}

#[derive(Default)]
struct Watches {
    live: Vec<Live>,
    /// How many there may be before those that are over are looked for.
    sweep_at: usize,
}

impl Faults {
    /// No faults.
    pub fn new(store: Arc<Store>) -> Self {
        let clock = store.clock().clone();
        Self {
            store,
            rules: RwLock::default(),
            armed: AtomicUsize::new(0),
            next_id: AtomicU64::new(1),
            watches: Mutex::default(),
            audit: Audit::new(clock),
        }
    }

    /// The record of writes.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Adds a rule. It counts its matches from now on.
    pub fn add(&self, rule: Rule) -> RuleId {
        let id = RuleId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let mut rules = self.rules.write();
        rules.push(Arc::new(Armed { id, rule, seen: AtomicU64::new(0) }));
        self.armed.store(rules.len(), Ordering::Release);
        id
    }

    /// Takes a rule back, and lets go of the watches that it holds. Returns how many requests it matched.
    pub fn remove(&self, id: RuleId) -> Option<u64> {
        let seen = {
            let mut rules = self.rules.write();
            let at = rules.iter().position(|armed| armed.id == id)?;
            let armed = rules.remove(at);
            self.armed.store(rules.len(), Ordering::Release);
            armed.seen.load(Ordering::Relaxed)
        };
        self.release(|held_by| held_by == Some(id));
        Some(seen)
    }

    /// Takes all rules back and lets go of all watches.
    pub fn clear(&self) {
        let mut rules = self.rules.write();
        rules.clear();
        self.armed.store(0, Ordering::Release);
        drop(rules);
        self.release(|_| true);
    }

    /// How many requests a rule has matched.
    pub fn matched(&self, id: RuleId) -> Option<u64> {
        let rules = self.rules.read();
        Some(rules.iter().find(|armed| armed.id == id)?.seen.load(Ordering::Relaxed))
    }

    /// What to do with a request before it is handled.
    pub fn before(&self, request: &RequestInfo<'_>) -> Decision {
        let mut decision = Decision {
            delay: Duration::ZERO,
            verdict: Verdict::Proceed,
            ceiling: None,
            control: WatchControl::default(),
            mutations: Vec::new(),
            after: Vec::new(),
        };
        let mut hold = (Hold::default(), None);
        if self.armed.load(Ordering::Acquire) > 0 {
            for armed in self.due(request) {
                self.decide(&armed, request, &mut decision, &mut hold);
            }
        }
        if request.verb == "watch" && decision.verdict == Verdict::Proceed {
            decision.control = self.enter(request, hold);
        }
        match &decision.verdict {
            Verdict::Proceed => {}
            Verdict::Refuse(status) => self.audit.record(request, status.code),
            Verdict::Lose => self.audit.record(request, 0),
        }
        decision
    }

    /// What to do with the answer to a request that was handled.
    pub fn after(&self, request: &RequestInfo<'_>, decision: &Decision, code: u16) -> Outcome {
        self.audit.record(request, code);
        let mut outcome = Outcome { delay: Duration::ZERO, delivery: Delivery::Deliver };
        for armed in &decision.after {
            match &armed.rule.act {
                Act::DelayResponse(delay) => outcome.delay += *delay,
                Act::LoseResponse => outcome.delivery = Delivery::Lose,
                Act::CutResponse if request.verb == "watch" => decision.control.cut.cancel(),
                Act::CutResponse => outcome.delivery = Delivery::Cut,
                Act::After(effect) => self.carry_out(effect, request),
                _ => {}
            }
        }
        outcome
    }

    /// The rules that act on this request. Every rule that matches counts it, whether it acts or not.
    fn due(&self, request: &RequestInfo<'_>) -> Vec<Arc<Armed>> {
        let rules = self.rules.read();
        let due = rules.iter().filter(|armed| {
            armed.rule.pattern.matches(request) && {
                let number = armed.seen.fetch_add(1, Ordering::Relaxed) + 1;
                armed.rule.which.includes(number)
            }
        });
        due.cloned().collect()
    }

    fn decide(
        &self,
        armed: &Arc<Armed>,
        request: &RequestInfo<'_>,
        decision: &mut Decision,
        hold: &mut (Hold, Option<RuleId>),
    ) {
        match &armed.rule.act {
            Act::Refuse(status) if decision.verdict == Verdict::Proceed => {
                decision.verdict = Verdict::Refuse(status.clone());
            }
            Act::LoseRequest if decision.verdict == Verdict::Proceed => decision.verdict = Verdict::Lose,
            Act::Refuse(_) | Act::LoseRequest => {}
            Act::Delay(delay) => decision.delay += *delay,
            Act::ServePast(past) => {
                let ceiling = match past {
                    Past::At(revision) => *revision,
                    Past::Behind(count) => Revision(self.store.revision().0.saturating_sub(*count)),
                };
                decision.ceiling = Some(decision.ceiling.map_or(ceiling, |other| other.min(ceiling)));
                *hold = (Hold { ceiling: decision.ceiling, ..hold.0 }, Some(armed.id));
            }
            Act::HoldEvents(wanted) => *hold = (*wanted, Some(armed.id)),
            Act::Before(effect) => self.carry_out(effect, request),
            Act::Mutate(mutation) => decision.mutations.push(mutation.clone()),
            Act::DelayResponse(_) | Act::LoseResponse | Act::CutResponse | Act::After(_) => {
                decision.after.push(armed.clone());
            }
        }
    }

    fn carry_out(&self, effect: &Effect, request: &RequestInfo<'_>) {
        match effect {
            Effect::Compact => self.store.compact(self.store.revision()),
            Effect::DropWatches(pattern) => drop(self.drop_watches(pattern)),
            Effect::HoldWatches(pattern, hold) => drop(self.hold_watches(pattern, *hold)),
            Effect::Call(call) => call(request),
        }
    }

    // === the watches ===

    fn enter(&self, request: &RequestInfo<'_>, (hold, held_by): (Hold, Option<RuleId>)) -> WatchControl {
        let alive = Arc::new(());
        let cut = CancellationToken::new();
        let (hold, held) = tokio::sync::watch::channel(hold);
        let mut watches = self.watches.lock();
        if watches.live.len() >= watches.sweep_at {
            watches.live.retain(|live| live.alive.strong_count() > 0);
            watches.sweep_at = 2 * watches.live.len() + 16;
        }
        watches.live.push(Live {
            pattern_of_one: OwnedInfo {
                resource: request.resource.to_owned(),
                namespace: request.namespace.to_owned(),
                user: request.user.to_owned(),
                user_agent: request.user_agent.to_owned(),
            },
            cut: cut.clone(),
            hold,
            held_by,
            alive: Arc::downgrade(&alive),
        });
        drop(watches);
        WatchControl { cut, hold: Some(held), alive: Some(alive), ..WatchControl::default() }
    }

    /// How many watches of this pattern go on.
    pub fn watches(&self, pattern: &Pattern) -> usize {
        self.each_watch(pattern, |_| {})
    }

    /// Breaks off the watches of this pattern that go on now. Returns how many.
    pub fn drop_watches(&self, pattern: &Pattern) -> usize {
        self.each_watch(pattern, |live| live.cut.cancel())
    }

    /// Holds back, or lets go with [`Hold::default`], the watches of this pattern that go on now. Returns how many.
    pub fn hold_watches(&self, pattern: &Pattern, hold: Hold) -> usize {
        self.each_watch(pattern, |live| {
            live.hold.send_replace(hold);
            live.held_by = None;
        })
    }

    fn each_watch(&self, pattern: &Pattern, mut act: impl FnMut(&mut Live)) -> usize {
        let mut watches = self.watches.lock();
        let live = watches.live.iter_mut().filter(|live| {
            live.alive.strong_count() > 0
                && !live.cut.is_cancelled()
                && pattern.matches(&live.pattern_of_one.request())
        });
        live.map(&mut act).count()
    }

    fn release(&self, held: impl Fn(Option<RuleId>) -> bool) {
        for live in self.watches.lock().live.iter_mut().filter(|live| held(live.held_by)) {
            live.hold.send_replace(Hold::default());
            live.held_by = None;
        }
    }
}

impl OwnedInfo {
    fn request(&self) -> RequestInfo<'_> {
        RequestInfo {
            verb: "watch",
            resource: &self.resource,
            namespace: &self.namespace,
            user: &self.user,
            user_agent: &self.user_agent,
            ..RequestInfo::default()
        }
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").field("rules", &self.rules.read()).finish_non_exhaustive()
    }
}
