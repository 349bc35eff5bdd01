//! Actions that plans asked for: what is under way, what came of the others, and never two of one key at once.
//!
//! A reconcile writes nothing outside the cluster: an action runs on workers of its own, with a queue like that of the
//! reconciles, so that one key runs once at a time. Each action has its own queue and workers: however long those of one name
//! wait, the others go on. Its outcome is observed by the next reconcile and is safe to lose.

use super::actions_and_facts::{Context, Failure};
use crate::action::{Action, Outcome};
use crate::cache::AnyObject;
use crate::key::Key;
use crate::queue::{Backoff, Priority, Queue};
use crate::write::WriteError;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_clock::{Clock, Timestamp};

/// What an action does.
pub(super) type Do = Arc<
    dyn Fn(Arc<dyn AnyObject>, Value, Context) -> BoxFuture<'static, Result<Value, Failure>> + Send + Sync,
>;

/// Actions of one object whose outcome is remembered; more, and the oldest that ended are forgotten.
const REMEMBERED: usize = 32;
/// Actions of one object that may be under way; a plan that asks for more must wait.
const UNDER_WAY: usize = 32;

/// The actions of one controller.
pub(super) struct Actions {
    lanes: BTreeMap<String, Lane>,
    /// Of each action.
    pub(super) concurrency: usize,
    asked: Mutex<HashMap<Key, BTreeMap<Run, Asked>>>,
    pub(super) stopped: CancellationToken,
}

/// One action: what it does, and who waits for it.
pub(super) struct Lane {
    pub(super) what: Do,
    pub(super) queue: Queue<Id>,
}

/// One run of an action for one object.
pub(super) type Id = (Key, Run);
/// Its name and its key.
pub(super) type Run = (String, String);

struct Asked {
    /// Of the object that it was asked for: one of the same name is another.
    uid: String,
    action: Action,
    /// Whether it is in the queue, or with a worker.
    queued: bool,
    failures: u32,
    outcome: Outcome,
}

/// What asking for an action came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It will be run.
    Queued,
    /// It is under way, or done.
    Known,
}

impl Actions {
    pub(super) fn new(
        known: BTreeMap<String, Do>,
        concurrency: usize,
        clock: Clock,
        backoff: Backoff,
    ) -> Self {
        let lane = |what| Lane { what, queue: Queue::new(clock.clone(), backoff) };
        let lanes = known.into_iter().map(|(name, what)| (name, lane(what))).collect();
        Self { lanes, concurrency, asked: Mutex::default(), stopped: CancellationToken::new() }
    }

    /// Stops: what runs is cut off.
    pub(super) fn stop(&self) {
        self.lanes.values().for_each(|lane| lane.queue.shutdown());
        self.stopped.cancel();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The names that plans can ask for.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.lanes.keys()
    }

    /// The action of that name.
    pub(super) fn lane(&self, name: &str) -> Option<&Lane> {
        self.lanes.get(name)
    }

    /// Has a run no longer counted as one that failed.
    fn forget_failures(&self, id: &Id) {
        if let Some(lane) = self.lanes.get(&id.1.0) {
            lane.queue.forget(id);
        }
    }

    /// What became of the actions of one object.
    pub(super) fn outcomes(&self, key: &Key, uid: &str) -> BTreeMap<Run, Outcome> {
        let asked = self.asked.lock();
        let of_object = asked.get(key).into_iter().flatten().filter(|(_, asked)| asked.uid == uid);
        of_object.map(|(run, asked)| (run.clone(), asked.outcome.clone())).collect()
    }

    /// Those under way or not yet forgotten, `most` at most.
    pub(super) fn show(&self, most: usize) -> Vec<Value> {
        let asked = self.asked.lock();
        let runs = asked.iter().flat_map(|(key, runs)| runs.iter().map(move |(run, one)| (key, run, one)));
        runs.take(most)
            .map(|(key, (name, run), one)| {
                let mut outcome = json!(one.outcome);
                // What an action brought back is for the decision alone.
                if let Some(Value::Object(done)) = outcome.get_mut("done") {
                    done.remove("said");
                }
                json!({ "object": key.to_string(), "action": name, "key": run, "outcome": outcome })
            })
            .collect()
    }

    /// Asks for an action, once however often it is asked.
    pub(super) fn ask(&self, key: &Key, uid: &str, action: &Action) -> Result<Answer, WriteError> {
        let Some(Lane { queue, .. }) = self.lanes.get(action.name()) else {
            return Err(WriteError::UnknownAction(action.name().to_owned()));
        };
        let run = (action.name().to_owned(), action.key().to_owned());
        let mut asked = self.asked.lock();
        let of_object = asked.entry(key.clone()).or_default();
        if of_object.get(&run).is_some_and(|one| one.uid != uid && !one.queued) {
            of_object.remove(&run);
        }
        match of_object.get_mut(&run) {
            Some(one) if one.queued || one.outcome.is_done() => return Ok(Answer::Known),
            Some(one) => {
                one.queued = true;
                one.action = action.clone();
                queue.retry((key.clone(), run));
            }
            None => {
                if of_object.values().filter(|one| one.queued).count() >= UNDER_WAY {
                    return Err(WriteError::TooManyActions(UNDER_WAY));
                }
                if let Some(oldest) = forget_oldest(of_object) {
                    self.forget_failures(&(key.clone(), oldest));
                }
                let (uid, action) = (uid.to_owned(), action.clone());
                let one = Asked { uid, action, queued: true, failures: 0, outcome: Outcome::Waiting };
                of_object.insert(run.clone(), one);
                queue.add((key.clone(), run), Priority::NORMAL);
            }
        }
        Ok(Answer::Queued)
    }

    /// The object is gone, and what was done for it is of no interest.
    pub(super) fn forget(&self, key: &Key) {
        let mut asked = self.asked.lock();
        if let Some(of_object) = asked.get_mut(key) {
            // What is queued is found gone when it would start.
            of_object.retain(|run, one| {
                if !one.queued {
                    self.forget_failures(&(key.clone(), run.clone()));
                }
                one.queued
            });
            if of_object.is_empty() {
                asked.remove(key);
            }
        }
    }

    pub(super) fn begin<'a>(&'a self, id: &Id, now: Timestamp) -> Option<Open<'a>> {
        let (key, run) = id;
        let mut asked = self.asked.lock();
        let one = asked.get_mut(key)?.get_mut(run)?;
        one.outcome = Outcome::Running { since: now };
        Some(Open { actions: self, id: id.clone(), uid: one.uid.clone(), action: one.action.clone() })
    }

    /// It was dropped where it was, and nothing is known of it: whoever asks again has it run again.
    fn cut_off(&self, (key, run): &Id) {
        let mut asked = self.asked.lock();
        if let Some(of_object) = asked.get_mut(key) {
            of_object.remove(run);
        }
    }

    fn runs(&self, (key, run): &Id) -> bool {
        let asked = self.asked.lock();
        let one = asked.get(key).and_then(|of_object| of_object.get(run));
        one.is_some_and(|one| matches!(one.outcome, Outcome::Running { .. }))
    }

    fn end(&self, id: &Id, ended: End, now: Timestamp) {
        let (key, run) = id;
        let mut asked = self.asked.lock();
        let Some(one) = asked.get_mut(key).and_then(|runs| runs.get_mut(run)) else { return };
        one.queued = false;
        one.failures = if ended.is_failure() { one.failures + 1 } else { 0 };
        if !ended.is_failure() && !matches!(ended, End::Overtaken(_)) {
            self.forget_failures(id);
        }
        one.outcome = ended.outcome(now, one.failures);
    }
}

/// A run that has begun. Dropped before its end, because leadership was lost, it counts as not asked for.
pub(super) struct Open<'a> {
    actions: &'a Actions,
    id: Id,
    pub(super) uid: String,
    pub(super) action: Action,
}

impl Open<'_> {
    pub(super) fn end(self, ended: End, now: Timestamp) {
        self.actions.end(&self.id, ended, now);
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.actions.runs(&self.id) {
            self.actions.cut_off(&self.id);
        }
    }
}

/// Makes room for one more.
fn forget_oldest(runs: &mut BTreeMap<Run, Asked>) -> Option<Run> {
    if runs.len() < REMEMBERED {
        return None;
    }
    let ended = runs.iter().filter(|(_, one)| !one.queued);
    let oldest = ended.min_by_key(|(_, one)| ended_at(&one.outcome)).map(|(run, _)| run.clone());
    runs.remove(oldest.as_ref()?);
    oldest
}

fn ended_at(outcome: &Outcome) -> Timestamp {
    match outcome {
        Outcome::Done { at, .. }
        | Outcome::Failed { at, .. }
        | Outcome::TimedOut { at, .. }
        | Outcome::Overtaken { at, .. } => *at,
        _ => Timestamp::MAX,
    }
}

/// How a run ended.
pub(super) enum End {
    Done(Value),
    Failed(String),
    TimedOut,
    Overtaken(String),
}

impl End {
    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::TimedOut)
    }

    fn outcome(self, at: Timestamp, times: u32) -> Outcome {
        match self {
            Self::Done(said) => Outcome::Done { at, said },
            Self::Failed(why) => Outcome::Failed { at, why, times },
            Self::TimedOut => Outcome::TimedOut { at, times },
            Self::Overtaken(why) => Outcome::Overtaken { at, why },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions() -> Actions {
        let nothing: Do = Arc::new(|_, _, _| Box::pin(async { Ok(Value::Null) }));
        Actions::new([("a".to_owned(), nothing)].into(), 1, Clock::real(), Backoff::default())
    }

    fn key() -> Key {
        Key::new("c".into(), Some("ns"), "n")
    }

    fn id(run: &str) -> Id {
        (key(), ("a".to_owned(), run.to_owned()))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn asked_again_it_is_the_same_until_it_fails() {
        let actions = actions();
        let ask = || actions.ask(&key(), "u", &Action::new("a", "1")).unwrap();
        assert_eq!([ask(), ask()], [Answer::Queued, Answer::Known]);
        let open = actions.begin(&id("1"), at(1)).unwrap();
        assert_eq!(ask(), Answer::Known);
        open.end(End::Failed("no".into()), at(2));
        assert_eq!([ask(), ask()], [Answer::Queued, Answer::Known]);
        actions.end(&id("1"), End::TimedOut, at(3));
        assert_eq!(actions.outcomes(&key(), "u")[&id("1").1].failures(), 2);
        ask();
        actions.end(&id("1"), End::Done("well".into()), at(4));
        assert_eq!(ask(), Answer::Known, "done is done");
        assert!(matches!(
            actions.ask(&key(), "u", &Action::new("b", "1")),
            Err(WriteError::UnknownAction(_))
        ));
    }

    #[test]
    fn one_that_was_cut_off_is_run_again_when_it_is_asked_for() {
        let actions = actions();
        let ask = || actions.ask(&key(), "u", &Action::new("a", "1")).unwrap();
        ask();
        drop(actions.begin(&id("1"), at(1)).unwrap());
        assert!(actions.outcomes(&key(), "u").is_empty(), "nothing is known of it");
        assert_eq!(ask(), Answer::Queued);
    }

    #[test]
    fn an_object_of_the_same_name_has_actions_of_its_own() {
        let actions = actions();
        actions.ask(&key(), "u", &Action::new("a", "1")).unwrap();
        actions.end(&id("1"), End::Done(Value::Null), at(1));
        assert!(actions.outcomes(&key(), "v").is_empty());
        assert_eq!(actions.ask(&key(), "v", &Action::new("a", "1")).unwrap(), Answer::Queued);
    }

    #[test]
    fn what_ended_long_ago_is_forgotten_and_what_is_under_way_is_bounded() {
        let actions = actions();
        for run in 0..REMEMBERED + 5 {
            let run = format!("{run:03}");
            actions.ask(&key(), "u", &Action::new("a", &run)).unwrap();
            actions.end(&id(&run), End::Done(Value::Null), at(1));
        }
        assert_eq!(actions.outcomes(&key(), "u").len(), REMEMBERED);
        for run in 0..UNDER_WAY {
            actions.ask(&key(), "u", &Action::new("a", format!("more-{run}"))).unwrap();
        }
        let more = actions.ask(&key(), "u", &Action::new("a", "one too many"));
        assert!(matches!(more, Err(WriteError::TooManyActions(_))));
        actions.forget(&key());
        assert_eq!(actions.outcomes(&key(), "u").len(), UNDER_WAY, "those under way are not lost sight of");
    }
}
