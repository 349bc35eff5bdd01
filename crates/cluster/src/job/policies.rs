//! `podFailurePolicy` and `successPolicy` of a Job.

use super::completion_indexes::Indexes;
use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicy,
};
use k8s_openapi::api::core::v1::Pod;

/// What a failed pod counts as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FailureAction {
    /// It counts towards the back-off limit.
    Count,
    /// It is ignored.
    Ignore,
    /// Its index fails.
    FailIndex,
    /// The Job fails, with this message.
    FailJob(String),
}

/// The action of a policy for a failed pod: the first matching rule decides.
pub(super) fn failure_action(policy: Option<&PodFailurePolicy>, pod: &Pod) -> FailureAction {
    let rules = policy.iter().flat_map(|policy| &policy.rules).enumerate();
    for (place, rule) in rules {
        let Some(what) = fits(rule, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => FailureAction::Ignore,
            "FailIndex" => FailureAction::FailIndex,
            "FailJob" => {
                FailureAction::FailJob(format!("{what} matching {} rule at index {place}", rule.action))
            }
            _ => FailureAction::Count,
        };
    }
    FailureAction::Count
}

/// How the pod matches a rule, in words.
fn fits(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let name = |field: &Option<String>| field.clone().unwrap_or_default();
    let pod_name = format!("{}/{}", name(&pod.metadata.namespace), name(&pod.metadata.name));
    if let Some(codes) = &rule.on_exit_codes {
        let containers = status.container_statuses.iter().flatten();
        let mut all = containers.chain(status.init_container_statuses.iter().flatten());
        return all.find_map(|container| {
            let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
            let asked = codes.container_name.as_ref().is_none_or(|asked| *asked == container.name);
            let fits = asked && code != 0 && has_code(codes, code);
            fits.then(|| {
                format!("Container {} for pod {pod_name} failed with exit code {code}", container.name)
            })
        });
    }
    let patterns = rule.on_pod_conditions.as_ref()?;
    let fits = status.conditions.iter().flatten().find(|condition| {
        patterns.iter().any(|pattern| {
            let wanted = pattern.status.as_deref().unwrap_or("True");
            pattern.type_ == condition.type_ && wanted == condition.status
        })
    });
    fits.map(|condition| format!("Pod {pod_name} has condition {}", condition.type_))
}

fn has_code(codes: &PodFailurePolicyOnExitCodesRequirement, code: i32) -> bool {
    match codes.operator.as_str() {
        "In" => codes.values.contains(&code),
        "NotIn" => !codes.values.contains(&code),
        _ => false,
    }
}

/// The message of the success policy, if a rule is met.
pub(super) fn success(policy: &SuccessPolicy, completions: u32, succeeded: &Indexes) -> Option<String> {
    if succeeded.total() == 0 {
        return None;
    }
    let enough = |count: Option<i32>, of: u32| {
        count.is_some_and(|count| u32::try_from(count).is_ok_and(|count| of >= count))
    };
    let met = policy.rules.iter().position(|rule| match &rule.succeeded_indexes {
        Some(text) => {
            let required = Indexes::read(text, completions);
            let common = required.common(succeeded);
            required.total() > 0 && (common == required.total() || enough(rule.succeeded_count, common))
        }
        None => enough(rule.succeeded_count, succeeded.total()),
    });
    met.map(|place| format!("Matched rules at index {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(code: i32, condition: &str) -> Pod {
        let container = json!({
            "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "terminated": { "exitCode": code } },
        });
        let status = json!({
            "containerStatuses": [container],
            "conditions": [{ "type": condition, "status": "True" }],
        });
        let metadata = json!({ "name": "p", "namespace": "n" });
        serde_json::from_value(json!({ "metadata": metadata, "status": status })).unwrap()
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy: PodFailurePolicy = serde_json::from_value(json!({ "rules": [
            { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
            { "action": "FailJob", "onExitCodes": { "containerName": "main", "operator": "In", "values": [42] } },
            { "action": "FailIndex", "onExitCodes": { "operator": "NotIn", "values": [1, 42] } },
        ] }))
        .unwrap();
        let of = |code, condition| failure_action(Some(&policy), &pod(code, condition));
        assert_eq!(of(42, "DisruptionTarget"), FailureAction::Ignore);
        let why = "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1";
        assert_eq!(of(42, "Ready"), FailureAction::FailJob(why.into()));
        assert_eq!(of(7, "Ready"), FailureAction::FailIndex);
        assert_eq!(of(1, "Ready"), FailureAction::Count);
        assert_eq!(of(0, "Ready"), FailureAction::Count, "what ended well is no exit code");
        assert_eq!(failure_action(None, &pod(42, "DisruptionTarget")), FailureAction::Count);
    }

    #[test]
    fn enough_indexes_are_a_success() {
        let policy = |rules: serde_json::Value| -> SuccessPolicy {
            serde_json::from_value(json!({ "rules": rules })).unwrap()
        };
        let done = |indexes: &[u32]| Indexes::default().with(indexes.iter().copied());
        let leader = policy(json!([{ "succeededIndexes": "0" }]));
        assert_eq!(success(&leader, 5, &done(&[0])).as_deref(), Some("Matched rules at index 0"));
        assert_eq!(success(&leader, 5, &done(&[1, 2])), None);
        let some =
            policy(json!([{ "succeededIndexes": "0-2", "succeededCount": 2 }, { "succeededCount": 4 }]));
        assert_eq!(success(&some, 9, &done(&[0, 5])), None);
        assert_eq!(success(&some, 9, &done(&[0, 2])).as_deref(), Some("Matched rules at index 0"));
        assert_eq!(success(&some, 9, &done(&[5, 6, 7, 8])).as_deref(), Some("Matched rules at index 1"));
        assert_eq!(success(&some, 9, &done(&[])), None);
    }
}
