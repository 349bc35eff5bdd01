//! What a Job's policies say: of a pod that failed, and of the indexes that succeeded.

use super::completion_indexes::Indexes;
use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicy,
};
use k8s_openapi::api::core::v1::Pod;

/// What becomes of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It counts.
    Count,
    /// It does not.
    Ignore,
    /// Its index has failed.
    FailIndex,
    /// The whole Job has, and says why.
    FailJob(String),
}

/// What a policy says of a pod that failed: the first rule that fits decides.
pub(super) fn verdict(policy: Option<&PodFailurePolicy>, pod: &Pod) -> Verdict {
    let rules = policy.iter().flat_map(|policy| &policy.rules).enumerate();
    for (place, rule) in rules {
        let Some(what) = fits(rule, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => Verdict::Ignore,
            "FailIndex" => Verdict::FailIndex,
            "FailJob" => Verdict::FailJob(format!("{what} matching {} rule at index {place}", rule.action)),
            _ => Verdict::Count,
        };
    }
    Verdict::Count
}

/// What about the pod fits a rule, in words.
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

/// Why enough indexes succeeded, if a rule says so.
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
        let of = |code, condition| verdict(Some(&policy), &pod(code, condition));
        assert_eq!(of(42, "DisruptionTarget"), Verdict::Ignore);
        let why = "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1";
        assert_eq!(of(42, "Ready"), Verdict::FailJob(why.into()));
        assert_eq!(of(7, "Ready"), Verdict::FailIndex);
        assert_eq!(of(1, "Ready"), Verdict::Count);
        assert_eq!(of(0, "Ready"), Verdict::Count, "what ended well is no exit code");
        assert_eq!(verdict(None, &pod(42, "DisruptionTarget")), Verdict::Count);
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
