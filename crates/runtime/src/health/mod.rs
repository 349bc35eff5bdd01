//! How an object of any kind fares, judged from itself alone, by the rules that kstatus set: pure, and the time is given.
//!
//! First what every kind has in common (deletion, the generation that was observed, `Reconciling` and `Stalled`), then the
//! rules of the built-in kinds in [`kinds`], and for all others the `Ready` condition; what says nothing is current.

mod finished;
mod kinds;
mod pods;

pub use finished::{Finished, finished};
pub use pods::is_ready;

use crate::cache::AnyObject;
use crate::kind::Object;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use windlass_clock::Timestamp;

/// How an object fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// In one word.
    pub state: State,
    /// Why, as a CamelCase name.
    pub reason: Cow<'static, str>,
    /// Why, as a sentence.
    pub message: String,
}

/// How an object fares, in one word; the worse the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It is as it declares.
    Current,
    /// It cannot be told.
    Unknown,
    /// It is on its way there.
    InProgress,
    /// It is on its way out.
    Terminating,
    /// It is not there.
    NotFound,
    /// It will not get there by itself.
    Failed,
}

impl Health {
    fn new(state: State, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { state, reason: reason.into(), message: message.into() }
    }

    fn current(message: impl Into<String>) -> Self {
        Self::new(State::Current, "Current", message)
    }

    fn in_progress(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(State::InProgress, reason, message)
    }

    fn failed(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(State::Failed, reason, message)
    }

    /// That of an object that is not there.
    pub fn not_found() -> Self {
        Self::new(State::NotFound, "NotFound", "it is not there")
    }

    /// That of an object that cannot be judged.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(State::Unknown, "Unknown", why)
    }

    /// Whether it is as it declares.
    pub fn is_current(&self) -> bool {
        self.state == State::Current
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.state, self.message)
    }
}

/// How an object fares at `now`.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass::health::{self, State};
/// let shop: Deployment = serde_json::from_value(serde_json::json!({
///     "metadata": {"generation": 2},
///     "spec": {"replicas": 3, "selector": {}, "template": {}},
///     "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 1, "availableReplicas": 1},
/// })).unwrap();
/// let health = health::of(&shop, "2026-01-01T00:00:00Z".parse().unwrap());
/// assert_eq!(health.to_string(), "InProgress: 1 of 3 available");
/// ```
pub fn of<K: Object>(object: &K, now: Timestamp) -> Health {
    of_json(&AnyObject::to_json(object), now)
}

/// As [`of`], for an object as JSON, with its `apiVersion` and `kind`.
pub fn of_json(object: &Value, now: Timestamp) -> Health {
    if text(object, "/metadata/deletionTimestamp").is_some() {
        return Health::new(State::Terminating, "Terminating", "it is being deleted");
    }
    if let (Some(declared), Some(observed)) =
        (number(object, "/metadata/generation"), number(object, "/status/observedGeneration"))
        && declared != observed
    {
        let message = format!("generation {declared} is declared, {observed} was observed");
        return Health::in_progress("LatestGenerationNotObserved", message);
    }
    for condition in conditions(object).filter(|condition| condition.is("True")) {
        match condition.of {
            "Reconciling" => return Health::in_progress(condition.reason(), condition.message),
            "Stalled" => return Health::failed(condition.reason(), condition.message),
            _ => {}
        }
    }
    let group = text(object, "/apiVersion").and_then(|version| version.split_once('/'));
    let group = group.map_or("", |(group, _)| group);
    match kinds::rule(group, text(object, "/kind").unwrap_or_default()) {
        Some(rule) => rule(object, now),
        None => by_ready(object),
    }
}

/// How several fare together: as the worst of them, which is named.
pub fn roll_up<'a>(all: impl IntoIterator<Item = (&'a str, Health)>) -> Health {
    let worst = all.into_iter().max_by_key(|(_, health)| health.state);
    match worst {
        Some((name, health)) if !health.is_current() => {
            Health { message: format!("{name}: {}", health.message), ..health }
        }
        _ => Health::current("all are as declared"),
    }
}

fn by_ready(object: &Value) -> Health {
    match conditions(object).find(|condition| condition.of == "Ready") {
        Some(ready) if !ready.is("True") => Health::in_progress(ready.reason(), ready.message),
        Some(_) => Health::current("it is ready"),
        None => Health::current("it is as declared, as far as it tells"),
    }
}

/// A condition in an object's status.
struct Said<'a> {
    of: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl Said<'_> {
    fn is(&self, status: &str) -> bool {
        self.status == status
    }

    fn reason(&self) -> Cow<'static, str> {
        if self.reason.is_empty() { Cow::Borrowed("Unexplained") } else { Cow::Owned(self.reason.to_owned()) }
    }
}

fn conditions(object: &Value) -> impl Iterator<Item = Said<'_>> {
    let all = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    all.map(|condition| {
        let field = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
        Said {
            of: field("type"),
            status: field("status"),
            reason: field("reason"),
            message: field("message"),
        }
    })
}

fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn health(object: Value) -> (State, String) {
        let health = of_json(&object, "2026-01-01T00:00:00Z".parse().unwrap());
        (health.state, health.message)
    }

    fn custom(status: Value) -> Value {
        json!({"apiVersion": "g/v1", "kind": "Custom", "metadata": {"generation": 2}, "status": status})
    }

    fn condition(of: &str, status: &str) -> Value {
        json!([{"type": of, "status": status, "reason": "Why", "message": "because"}])
    }

    #[test]
    fn what_says_nothing_is_current() {
        assert_eq!(health(json!({})).0, State::Current);
        assert_eq!(health(custom(json!({}))).0, State::Current);
    }

    #[test]
    fn a_status_about_an_older_generation_tells_nothing_yet() {
        let ready = json!({"observedGeneration": 1, "conditions": condition("Ready", "True")});
        assert_eq!(
            health(custom(ready)),
            (State::InProgress, "generation 2 is declared, 1 was observed".to_owned())
        );
        let ready = json!({"observedGeneration": 2, "conditions": condition("Ready", "True")});
        assert_eq!(health(custom(ready)).0, State::Current);
    }

    #[test]
    fn the_usual_conditions_are_understood_on_any_kind() {
        let with = |of: &str, status: &str| health(custom(json!({"conditions": condition(of, status)})));
        assert_eq!(with("Ready", "False"), (State::InProgress, "because".to_owned()));
        assert_eq!(with("Ready", "Unknown").0, State::InProgress);
        assert_eq!(with("Reconciling", "True").0, State::InProgress);
        assert_eq!(with("Stalled", "True"), (State::Failed, "because".to_owned()));
        assert_eq!(with("Stalled", "False").0, State::Current);
    }

    #[test]
    fn what_is_being_deleted_is_nothing_else() {
        let mut object = custom(json!({"conditions": condition("Stalled", "True")}));
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(health(object).0, State::Terminating);
    }

    #[test]
    fn several_fare_as_the_worst_of_them() {
        let fine = || Health::current("fine");
        assert!(roll_up([]).is_current() && roll_up([("a", fine())]).is_current());
        let worst = roll_up([
            ("a", Health::in_progress("W", "slow")),
            ("b", Health::failed("W", "broken")),
            ("c", fine()),
        ]);
        assert_eq!((worst.state, worst.message.as_str()), (State::Failed, "b: broken"));
    }
}
