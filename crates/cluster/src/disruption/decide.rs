//! How many pods of a PodDisruptionBudget may be disrupted now.

use crate::pods;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The condition of a PodDisruptionBudget.
const CONDITION: &str = "DisruptionAllowed";
/// How long a pod may take to be deleted after its eviction was granted; then it counts again.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// Whether the expected number of pods comes from the scale of their controllers.
pub(super) fn needs_scale(budget: &PodDisruptionBudget) -> bool {
    let spec = budget.spec.as_ref();
    spec.is_some_and(|spec| {
        spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
    })
}

/// The result for a budget.
#[derive(Debug)]
pub(super) struct Evaluation {
    pub(super) status: PodDisruptionBudgetStatus,
    /// When to reconcile again though nothing changes.
    pub(super) requeue_at: Option<Timestamp>,
    /// Pods whose eviction was granted and that were not deleted.
    pub(super) not_deleted: Vec<Arc<Pod>>,
}

/// Evaluates a budget, with the pods that it selects and the scale of their controllers, if needed.
pub(super) fn evaluate(
    budget: &PodDisruptionBudget,
    selected: &[Arc<Pod>],
    wanted: i32,
    now: Timestamp,
) -> Evaluation {
    let (expected, desired) = numbers(budget, selected.len(), wanted);
    let before = budget.status.clone().unwrap_or_default();
    let (mut disrupted, mut requeue_at, mut not_deleted) = (BTreeMap::new(), None::<Timestamp>, Vec::new());
    let mut healthy = 0;
    let granted = before.disrupted_pods.unwrap_or_default();
    for pod in selected.iter().filter(|pod| !pods::is_terminating(pod)) {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match granted.get(name) {
            Some(at) if at.0.saturating_add(DELETION_TIMEOUT).is_ok_and(|until| until >= now) => {
                let until = at.0.saturating_add(DELETION_TIMEOUT).unwrap_or(Timestamp::MAX);
                requeue_at = Some(requeue_at.map_or(until, |requeue_at| requeue_at.min(until)));
                disrupted.insert(name.to_owned(), at.clone());
                continue;
            }
            Some(_) => not_deleted.push(pod.clone()),
            None => {}
        }
        healthy += i32::from(pods::is_ready(pod));
    }
    let allowed = if expected <= 0 { 0 } else { healthy.saturating_sub(desired).max(0) };
    let (state, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let generation = budget.metadata.generation;
    let conditions =
        with_condition(before.conditions.unwrap_or_default(), state, reason, "", generation, now);
    let status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: generation,
        conditions: Some(conditions),
    };
    Evaluation { status, requeue_at, not_deleted }
}

/// The status after a failure: no disruption is allowed.
pub(super) fn sync_failed_status(
    budget: &PodDisruptionBudget,
    why: &str,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let before = budget.status.clone().unwrap_or_default();
    let observed = before.observed_generation;
    let conditions = with_condition(
        before.conditions.clone().unwrap_or_default(),
        "False",
        "SyncFailed",
        why,
        observed,
        now,
    );
    PodDisruptionBudgetStatus { disruptions_allowed: Some(0), conditions: Some(conditions), ..before }
}

fn with_condition(
    mut conditions: Vec<Condition>,
    status: &str,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let known = conditions.iter().position(|condition| condition.type_ == CONDITION);
    let since = known.map(|at| &conditions[at]).filter(|old| old.status == status);
    let condition = Condition {
        type_: CONDITION.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation.filter(|number| *number != 0),
        last_transition_time: since.map_or(Time(now), |old| old.last_transition_time.clone()),
    };
    match known {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    conditions
}

/// The expected pods, and how many of them must be healthy.
fn numbers(budget: &PodDisruptionBudget, selected: usize, wanted: i32) -> (i32, i32) {
    let Some(spec) = &budget.spec else { return (0, 0) };
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => (wanted, wanted.saturating_sub(scaled(most, wanted)).max(0)),
        (None, Some(IntOrString::Int(least))) => (i32::try_from(selected).unwrap_or(i32::MAX), *least),
        (None, Some(share)) => (wanted, scaled(share, wanted)),
        (None, None) => (0, 0),
    }
}

/// A number, or a share of `all` rounded up.
fn scaled(value: &IntOrString, all: i32) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let share: i64 = text.strip_suffix('%').and_then(|number| number.parse().ok()).unwrap_or(0);
            let scaled = share.saturating_mul(all.into()).saturating_add(99).div_euclid(100);
            i32::try_from(scaled).unwrap_or(i32::MAX)
        }
    }
}

/// A selector as Go prints it in an event.
pub(super) fn format_selector(selector: &LabelSelector) -> String {
    let labels: String =
        selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}: {value},")).collect();
    let terms: String = selector
        .match_expressions
        .iter()
        .flatten()
        .map(|term| {
            let values = term.values.as_deref().unwrap_or_default().join(" ");
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
                term.key, term.operator
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn budget(spec: Value, status: Value) -> PodDisruptionBudget {
        serde_json::from_value(json!({
            "metadata": { "name": "b", "generation": 3 }, "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn pods(count: usize) -> Vec<Arc<Pod>> {
        let pod = |number: usize| {
            json!({ "metadata": { "name": format!("p{number}") },
                "status": { "conditions": [{ "type": "Ready", "status": "True" }] } })
        };
        (0..count).map(|number| Arc::new(serde_json::from_value(pod(number)).unwrap())).collect()
    }

    fn numbers_of(spec: Value, selected: usize, wanted: i32) -> [i32; 4] {
        let status =
            evaluate(&budget(spec, json!(null)), &pods(selected), wanted, Timestamp::UNIX_EPOCH).status;
        [status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed]
            .map(Option::unwrap)
    }

    #[test]
    fn numbers_and_shares_say_how_many_may_go() {
        assert_eq!(numbers_of(json!({"minAvailable": 2}), 3, 0), [3, 3, 2, 1]);
        assert_eq!(numbers_of(json!({"minAvailable": "50%"}), 3, 7), [7, 3, 4, 0], "rounded up");
        assert_eq!(numbers_of(json!({"maxUnavailable": 1}), 5, 5), [5, 5, 4, 1]);
        assert_eq!(numbers_of(json!({"maxUnavailable": "30%"}), 10, 10), [10, 10, 7, 3]);
        assert_eq!(numbers_of(json!({"maxUnavailable": 9}), 5, 5), [5, 5, 0, 5]);
        assert_eq!(numbers_of(json!({"minAvailable": 0}), 0, 0), [0, 0, 0, 0]);
        assert!(needs_scale(&budget(json!({"minAvailable": "1%"}), json!(null))));
        assert!(!needs_scale(&budget(json!({"minAvailable": 1}), json!(null))));
    }

    #[test]
    fn a_pod_whose_eviction_was_granted_counts_again_when_it_stays() {
        let granted = json!({"disruptedPods": {"p0": "2026-01-01T00:00:00Z", "gone": "2026-01-01T00:00:00Z"},
            "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3, "disruptionsAllowed": 0});
        let budget = budget(json!({"minAvailable": 2}), granted);
        let at = |text: &str| evaluate(&budget, &pods(3), 0, text.parse().unwrap());
        let soon = at("2026-01-01T00:01:00Z");
        assert_eq!((soon.status.current_healthy, soon.status.disruptions_allowed), (Some(2), Some(0)));
        assert_eq!(soon.status.disrupted_pods.unwrap().len(), 1, "what is gone is forgotten");
        assert_eq!(soon.requeue_at, Some("2026-01-01T00:02:00Z".parse().unwrap()));
        let late = at("2026-01-01T00:02:01Z");
        assert_eq!(
            (late.status.disruptions_allowed, late.not_deleted.len(), late.requeue_at),
            (Some(1), 1, None)
        );
    }

    #[test]
    fn the_condition_says_why_and_keeps_its_time() {
        let early = Timestamp::UNIX_EPOCH;
        let first = evaluate(&budget(json!({"minAvailable": 1}), json!(null)), &pods(2), 0, early).status;
        let condition = &first.conditions.as_ref().unwrap()[0];
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "SufficientPods"));
        assert_eq!((condition.observed_generation, first.observed_generation), (Some(3), Some(3)));
        let unchanged = budget(json!({"minAvailable": 1}), serde_json::to_value(&first).unwrap());
        let later = Timestamp::from_second(60).unwrap();
        assert_eq!(evaluate(&unchanged, &pods(2), 0, later).status, first);
        let failed = sync_failed_status(&unchanged, "found no controllers for pod \"p\"", later);
        assert_eq!((failed.disruptions_allowed, failed.current_healthy), (Some(0), Some(2)));
        let condition = &failed.conditions.unwrap()[0];
        assert_eq!(
            (condition.reason.as_str(), &condition.last_transition_time),
            ("SyncFailed", &Time(later))
        );
    }
}
