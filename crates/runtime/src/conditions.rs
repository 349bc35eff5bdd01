//! The conditions that the library keeps on every object whose status type has a `conditions` field.
//!
//! `Ready` says that the world is as declared; `Progressing` that something is awaited; `Degraded` that a person should
//! look. All three are always there, each with the generation it was observed at. A transition time moves only when the
//! status of its condition does.

use crate::kind::Kind;
use crate::reason::Reason;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;
use windlass_clock::Timestamp;

/// The world is as declared.
pub const READY: &str = "Ready";
/// Something is awaited or being done.
pub const PROGRESSING: &str = "Progressing";
/// Something is wrong that time alone does not mend.
pub const DEGRADED: &str = "Degraded";

/// What the object refers to is there; kept for objects of controllers that say what theirs refer to.
pub const REFERENCES_RESOLVED: &str = "ReferencesResolved";
/// The object is paused; there only while it is.
pub const PAUSED: &str = "Paused";

/// Names of the reasons that the library gives itself.
pub mod reasons {
    /// Everything that was declared is there.
    pub const AS_DECLARED: &str = "AsDeclared";
    /// Nothing is awaited.
    pub const NOTHING_AWAITED: &str = "NothingAwaited";
    /// Nothing is wrong.
    pub const NOTHING_WRONG: &str = "NothingWrong";
    /// What the object refers to is there.
    pub const ALL_THERE: &str = "AllThere";
    /// Something that the object refers to is not there.
    pub const REFERENCE_MISSING: &str = "ReferenceMissing";
    /// The object is being deleted, and its children elsewhere are not gone yet.
    pub const CHILDREN_LEFT: &str = "ChildrenLeft";
    /// An annotation pauses the object.
    pub const PAUSED_BY_ANNOTATION: &str = "PausedByAnnotation";
}

/// A condition that the plan sets, beside those that the library keeps.
///
/// ```
/// # use windlass::{Plan, Reason};
/// let plan = Plan::new().condition("BackedUp", false, Reason::new("Never", "there is no backup"));
/// assert_eq!((plan.stated()[0].of.as_str(), plan.stated()[0].holds), ("BackedUp", Some(false)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stated {
    /// The condition's type.
    pub of: String,
    /// Whether it holds; `None` is unknown.
    pub holds: Option<bool>,
    /// Why.
    pub reason: Reason,
}

/// How an object stands at the end of a reconcile.
#[derive(Debug, Clone, Copy)]
pub enum Standing<'a> {
    /// The plan was complete and is carried out.
    Complete,
    /// The plan waits, first of all for this.
    Waiting(&'a Reason),
    /// The decision was no, or the server's.
    Refused(&'a Reason),
}

/// The conditions for how an object stands, with the transition times of those it had.
///
/// ```
/// # use windlass::conditions::{Standing, conditions};
/// # use windlass::Reason;
/// let waits = Reason::new("WaitsForPods", "two pods are not ready");
/// let now = "2026-01-01T00:00:00Z".parse().unwrap();
/// let told = conditions(Standing::Waiting(&waits), &[], &[], Some(3), now);
/// let ready = told.iter().find(|condition| condition.type_ == "Ready").unwrap();
/// assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "WaitsForPods"));
/// ```
pub fn conditions(
    standing: Standing<'_>,
    stated: &[Stated],
    before: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let as_declared = Reason::new(reasons::AS_DECLARED, "everything is as declared");
    let none_awaited = Reason::new(reasons::NOTHING_AWAITED, "nothing is awaited");
    let none_wrong = Reason::new(reasons::NOTHING_WRONG, "nothing is known to be wrong");
    let (ready, progressing, degraded) = match standing {
        Standing::Complete => ((true, &as_declared), (false, &none_awaited), (false, &none_wrong)),
        Standing::Waiting(reason) => ((false, reason), (true, reason), (false, &none_wrong)),
        Standing::Refused(reason) => ((false, reason), (false, reason), (true, reason)),
    };
    let kept = [(READY, ready), (PROGRESSING, progressing), (DEGRADED, degraded)];
    let mut conditions: Vec<Condition> = kept
        .into_iter()
        .filter(|(of, _)| stated.iter().all(|stated| stated.of != *of))
        .map(|(of, (holds, reason))| condition(of, Some(holds), reason, before, generation, now))
        .collect();
    conditions.extend(
        stated
            .iter()
            .map(|stated| condition(&stated.of, stated.holds, &stated.reason, before, generation, now)),
    );
    conditions
}

/// The conditions of a controller that is concerned with one of its own. The general three are another's: what a plan states of
/// them is not said.
pub(crate) fn concern_alone(
    concern: &str,
    standing: Standing<'_>,
    stated: &[Stated],
    before: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let others = |of: &str| [READY, PROGRESSING, DEGRADED].contains(&of) && of != concern;
    let mut stated: Vec<Stated> = stated.iter().filter(|one| !others(&one.of)).cloned().collect();
    if stated.iter().all(|one| one.of != concern) {
        let (holds, reason) = match standing {
            Standing::Complete => (true, Reason::new(reasons::AS_DECLARED, "everything is as declared")),
            Standing::Waiting(reason) | Standing::Refused(reason) => (false, reason.clone()),
        };
        stated.insert(0, Stated { of: concern.to_owned(), holds: Some(holds), reason });
    }
    stated.iter().map(|one| condition(&one.of, one.holds, &one.reason, before, generation, now)).collect()
}

/// What a controller says about its objects' references, by kind and name.
pub(crate) fn references(missing: &[(Kind, String)]) -> Stated {
    let reason = match missing {
        [] => Reason::new(reasons::ALL_THERE, "everything that it refers to is there"),
        missing => {
            let missing: Vec<String> = missing.iter().map(|(kind, name)| format!("{kind} {name}")).collect();
            Reason::new(reasons::REFERENCE_MISSING, format!("not there: {}", missing.join(", ")))
        }
    };
    Stated { of: REFERENCES_RESOLVED.to_owned(), holds: Some(missing.is_empty()), reason }
}

/// The conditions of an object that is paused: those it had, and that it is. The one that people look at first, `main`,
/// stays as true or false as it was, and gives the pause as its reason.
pub(crate) fn paused(
    main: &str,
    before: &[Condition],
    why: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let reason = Reason::new(reasons::PAUSED_BY_ANNOTATION, why);
    let others = |condition: &&Condition| ![PAUSED, main].contains(&condition.type_.as_str());
    let mut conditions: Vec<Condition> = before.iter().filter(others).cloned().collect();
    let said = format!("{why}: nothing will be done");
    let mut first = match before.iter().find(|condition| condition.type_ == main) {
        Some(had) => had.clone(),
        None => condition(main, None, &reason, before, generation, now),
    };
    if first.reason != reasons::PAUSED_BY_ANNOTATION || !first.message.starts_with(&said) {
        let had = match first.reason.as_str() {
            reasons::PAUSED_BY_ANNOTATION => String::new(),
            had => format!(" (before: {had}: {})", first.message),
        };
        first.message = format!("{said}{had}").chars().take(MESSAGE_LIMIT).collect();
        first.reason = reasons::PAUSED_BY_ANNOTATION.to_owned();
    }
    conditions.push(first);
    conditions.push(condition(PAUSED, Some(true), &reason, before, generation, now));
    conditions
}

fn condition(
    of: &str,
    holds: Option<bool>,
    reason: &Reason,
    before: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let status = match holds {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let since = before.iter().find(|condition| condition.type_ == of && condition.status == status);
    let whole_second = Timestamp::from_second(now.as_second()).unwrap_or(now);
    Condition {
        type_: of.to_owned(),
        status: status.to_owned(),
        reason: fit_reason(reason.name()),
        message: reason.message().chars().take(MESSAGE_LIMIT).collect(),
        observed_generation: generation,
        last_transition_time: since
            .map_or(Time(whole_second), |condition| condition.last_transition_time.clone()),
    }
}

/// The server takes 32,768 bytes; nobody reads so many.
const MESSAGE_LIMIT: usize = 4096;

/// What the API's pattern for reasons accepts.
fn fit_reason(name: &str) -> String {
    let fit: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(1024).collect();
    match fit.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => fit,
        _ => format!("Reason{fit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn find<'a>(conditions: &'a [Condition], of: &str) -> &'a Condition {
        conditions.iter().find(|condition| condition.type_ == of).unwrap()
    }

    #[test]
    fn a_transition_time_moves_only_with_the_status() {
        let reason = Reason::new("Starts", "it starts");
        let first = conditions(Standing::Waiting(&reason), &[], &[], Some(1), at(10));
        let still =
            conditions(Standing::Waiting(&reason.clone().saying("still")), &[], &first, Some(2), at(20));
        assert_eq!(find(&still, READY).last_transition_time.0, at(10));
        assert_eq!(find(&still, READY).message, "still");
        assert_eq!(find(&still, READY).observed_generation, Some(2));
        let done = conditions(Standing::Complete, &[], &still, Some(2), at(30));
        assert_eq!(find(&done, READY).last_transition_time.0, at(30));
        assert_eq!(find(&done, DEGRADED).last_transition_time.0, at(10), "it was never degraded");
    }

    #[test]
    fn a_refusal_degrades_and_is_not_progress() {
        let reason = Reason::new("TooSmall", "one replica cannot vote");
        let refused = conditions(Standing::Refused(&reason), &[], &[], None, at(1));
        let statuses: Vec<_> = refused.iter().map(|condition| condition.status.as_str()).collect();
        assert_eq!(statuses, ["False", "False", "True"]);
    }

    #[test]
    fn a_plan_may_say_better() {
        let stated = Stated { of: READY.into(), holds: None, reason: Reason::new("Blind", "cannot tell") };
        let conditions = conditions(Standing::Complete, &[stated], &[], None, at(1));
        assert_eq!(conditions.len(), 3);
        assert_eq!(find(&conditions, READY).status, "Unknown");
    }

    #[test]
    fn a_concern_of_its_own_leaves_the_general_conditions_to_others() {
        let reason = Reason::new("NoEndpoints", "nobody answers yet");
        let stated = Stated { of: DEGRADED.into(), holds: Some(true), reason: reason.clone() };
        let told = concern_alone("Reachable", Standing::Waiting(&reason), &[stated], &[], Some(1), at(1));
        let told: Vec<_> = told.iter().map(|one| (one.type_.as_str(), one.status.as_str())).collect();
        assert_eq!(told, [("Reachable", "False")]);
        let told = concern_alone("Reachable", Standing::Complete, &[], &[], Some(1), at(1));
        assert_eq!(told[0].status, "True");
    }

    #[test]
    fn what_is_missing_is_named() {
        use k8s_openapi::api::core::v1::Secret;
        assert_eq!(references(&[]).holds, Some(true));
        let missing = references(&[(Kind::of::<Secret>(), "a".into()), (Kind::of::<Secret>(), "b".into())]);
        assert_eq!((missing.holds, missing.reason.message()), (Some(false), "not there: Secret a, Secret b"));
    }

    #[test]
    fn a_pause_leaves_the_other_conditions_as_they_were() {
        let before = conditions(Standing::Complete, &[], &[], Some(1), at(10));
        let first = paused(READY, &before, "why", Some(2), at(20));
        assert_eq!(first[..2], before[1..]);
        assert_eq!((first[2].status.as_str(), first[2].reason.as_str()), ("True", "PausedByAnnotation"));
        let says = "why: nothing will be done (before: AsDeclared: everything is as declared)";
        assert_eq!(first[2].message, says);
        let again = paused(READY, &first, "why", Some(2), at(30));
        assert_eq!(again, first, "said once, it is not said anew");
        let never = paused(READY, &[], "why", Some(1), at(1));
        assert_eq!((never[0].type_.as_str(), never[0].status.as_str()), (READY, "Unknown"));
        assert!(conditions(Standing::Complete, &[], &again, Some(2), at(40)).len() == 3, "over, it is gone");
    }

    #[test]
    fn any_reason_is_made_to_fit() {
        assert_eq!(fit_reason("Fine"), "Fine");
        assert_eq!(fit_reason("9 lives!"), "Reason9lives");
        assert_eq!(fit_reason(""), "Reason");
    }
}
