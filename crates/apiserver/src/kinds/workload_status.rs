//! What the status of a workload may say: numbers of pods that agree with each other, and what a Job does not take back.

use super::text;
use serde_json::Value;
use windlass_schema::field::{ErrorKind, FieldError, Path};

const REPLICAS: &str = "cannot be greater than status.replicas";
const READY: &str = "cannot be greater than readyReplicas";

/// What a status counts.
pub(super) struct Counts {
    /// Numbers that are not below zero.
    numbers: &'static [&'static str],
    /// Numbers that are no larger than another, with the words for it.
    bounds: &'static [(&'static str, &'static str, &'static str)],
}

pub(super) const CONTROLLER: Counts = Counts {
    numbers: &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
    ],
    bounds: &[
        ("fullyLabeledReplicas", "replicas", REPLICAS),
        ("readyReplicas", "replicas", REPLICAS),
        ("availableReplicas", "replicas", REPLICAS),
        ("availableReplicas", "readyReplicas", READY),
    ],
};

pub(super) const DEPLOYMENT: Counts = Counts {
    numbers: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    bounds: &[
        ("updatedReplicas", "replicas", REPLICAS),
        ("readyReplicas", "replicas", REPLICAS),
        ("availableReplicas", "replicas", REPLICAS),
        ("availableReplicas", "readyReplicas", READY),
    ],
};

pub(super) const STATEFUL_SET: Counts = Counts {
    numbers: &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ],
    bounds: &[
        ("readyReplicas", "replicas", REPLICAS),
        ("currentReplicas", "replicas", REPLICAS),
        ("updatedReplicas", "replicas", REPLICAS),
        ("availableReplicas", "replicas", REPLICAS),
        ("availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"),
    ],
};

pub(super) const DAEMON_SET: Counts = Counts {
    numbers: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    bounds: &[],
};

const JOB: Counts =
    Counts { numbers: &["active", "succeeded", "failed", "ready", "terminating"], bounds: &[] };

fn number(object: &Value, field: &str) -> Option<i64> {
    object.get("status")?.get(field)?.as_i64()
}

impl Counts {
    /// What is wrong with the numbers of a status.
    pub(super) fn check(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let path = Path::new("status");
        let mut errors = Vec::new();
        for field in self.numbers {
            if let Some(number) = number(new, field).filter(|number| *number < 0) {
                let why = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(&path.child(field), number, why));
            }
        }
        let count = |field: &str| number(new, field).unwrap_or_default();
        for (field, bound, why) in self.bounds {
            if count(field) > count(bound) {
                errors.push(FieldError::invalid(&path.child(field), count(field), *why));
            }
        }
        let collisions = "collisionCount";
        if number(old, collisions).is_some_and(|before| count(collisions) < before)
            && self.numbers.contains(&collisions)
        {
            let path = path.child(collisions);
            errors.push(FieldError::invalid(&path, count(collisions), "cannot be decremented"));
        }
        errors
    }
}

/// A job as its status tells of it.
struct Progress<'a>(&'a Value);

impl<'a> Progress<'a> {
    fn is(&self, condition: &str) -> bool {
        let conditions = self.0.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|one| text(one, &["type"]) == condition && text(one, &["status"]) == "True")
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn field(&self, name: &str) -> Option<&'a Value> {
        self.0.get("status")?.get(name).filter(|value| !value.is_null())
    }

    fn spec(&self, name: &str) -> Option<&'a Value> {
        self.0.get("spec")?.get(name).filter(|value| !value.is_null())
    }

    fn number(&self, name: &str) -> i64 {
        number(self.0, name).unwrap_or_default()
    }
}

/// The status of a Job keeps to its own history. What was wrong before and did not change is not told again.
pub(super) fn job(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = JOB.check(new, old);
    let (now, before) = (Progress(new), Progress(old));
    let changed = |fields: &[&str]| fields.iter().any(|field| now.field(field) != before.field(field));
    let turned = |conditions: &[&str]| conditions.iter().any(|one| now.is(one) != before.is(one));
    let ended = now.is_finished() != before.is_finished();
    let (path, finished) = (Path::new("status"), now.is_finished());
    uncounted(&now, &path, &mut errors);
    let (complete, failed, failing, met) =
        (now.is("Complete"), now.is("Failed"), now.is("FailureTarget"), now.is("SuccessCriteriaMet"));
    let conditions = path.child("conditions");
    let contradictions = [
        (
            complete && failed && turned(&["Complete", "Failed"]),
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            complete && failing && turned(&["Complete", "FailureTarget"]),
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
        (
            failed && !failing && (turned(&["Failed"]) || changed(&["failedIndexes"])),
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            complete && !met && turned(&["Complete", "SuccessCriteriaMet"]),
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        (met && failing, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
        (
            now.spec("successPolicy").is_some() && !met && complete,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        ),
        (before.is("Failed") && !failed, "cannot disable the terminal Failed=True condition"),
        (before.is("Complete") && !complete, "cannot disable the terminal Complete=True condition"),
        (before.is("FailureTarget") && !failing, "cannot disable the terminal FailureTarget=True condition"),
        (before.is("SuccessCriteriaMet") && !met, "cannot disable the SuccessCriteriaMet=True condition"),
        (
            before.is("Complete") && !before.is("SuccessCriteriaMet") && met,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        ),
    ];
    let shown = contradictions.into_iter().filter(|(is_so, _)| *is_so);
    errors.extend(shown.map(|(_, why)| FieldError::new(ErrorKind::Invalid, &conditions, None, why)));
    let mut refuse = |is_so: bool, field: &str, why: &str| {
        if is_so {
            let value = now.field(field).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&path.child(field), value, why));
        }
    };
    let (start, end) = (now.field("startTime"), now.field("completionTime"));
    let times = turned(&["Complete"]) || changed(&["completionTime"]);
    refuse(
        times && end.is_some() && !complete,
        "completionTime",
        "cannot set completionTime when there is no Complete=True condition",
    );
    let backwards = end.zip(start).is_some_and(|(end, start)| end.as_str() < start.as_str());
    let moved = changed(&["startTime", "completionTime"]);
    refuse(backwards && moved, "completionTime", "must be equal to or after `startTime`");
    let kept = before.field("completionTime").is_none_or(|before| Some(before) == end);
    refuse(end.is_some() && !kept, "completionTime", "field is immutable");
    refuse(
        finished && now.number("active") > 0 && (ended || changed(&["active"])),
        "active",
        "active>0 is invalid for finished job",
    );
    refuse(
        finished && now.number("terminating") > 0 && (ended || changed(&["terminating"])),
        "terminating",
        "terminating>0 is invalid for finished job",
    );
    refuse(
        now.number("ready") > now.number("active") && changed(&["ready", "active"]),
        "ready",
        "cannot set more ready pods than active",
    );
    let indexed = now.spec("completionMode").is_some_and(|mode| mode == "Indexed");
    refuse(
        !indexed && changed(&["completedIndexes"]) && now.field("completedIndexes").is_some(),
        "completedIndexes",
        "cannot set non-empty completedIndexes when non-indexed completion mode",
    );
    refuse(
        now.spec("backoffLimitPerIndex").is_none()
            && changed(&["failedIndexes"])
            && now.field("failedIndexes").is_some(),
        "failedIndexes",
        "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
    );
    let suspended = now.spec("suspend").is_some_and(|suspend| suspend == &Value::Bool(true));
    let resumed = before.is("Suspended") && !now.is("Suspended");
    refuse(
        before.field("startTime").is_some() && changed(&["startTime"]) && !suspended && !resumed,
        "startTime",
        "field is immutable for unsuspended job once set",
    );
    let elastic = indexed && now.spec("completions") == now.spec("parallelism");
    for (field, counts) in [("failed", true), ("succeeded", !elastic)] {
        if counts && now.number(field) < before.number(field) {
            let why = format!("cannot decrease the {field} counter");
            errors.push(FieldError::invalid(&path.child(field), now.number(field), why));
        }
    }
    if complete && end.is_none() && times {
        let why = "completionTime is required for Complete jobs";
        errors.push(FieldError::required(&path.child("completionTime"), why));
    }
    let none = suspended && now.spec("completions").and_then(Value::as_i64) == Some(0);
    if finished && start.is_none() && (ended || changed(&["startTime"])) && !none {
        errors.push(FieldError::required(&path.child("startTime"), "startTime is required for finished job"));
    }
    let waiting = now.field("uncountedTerminatedPods").is_some_and(|pods| {
        ["succeeded", "failed"]
            .iter()
            .any(|list| pods.get(list).and_then(Value::as_array).is_some_and(|list| !list.is_empty()))
    });
    if finished && waiting && (ended || changed(&["uncountedTerminatedPods"])) {
        let value = now.field("uncountedTerminatedPods").cloned().unwrap_or_default();
        let path = path.child("uncountedTerminatedPods");
        errors.push(FieldError::invalid(&path, value, "must be empty for finished job"));
    }
    errors
}

/// Pods that ended and are not counted yet are named once.
fn uncounted(now: &Progress<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = Vec::new();
    for list in ["succeeded", "failed"] {
        let pods = now.field("uncountedTerminatedPods").and_then(|pods| pods.get(list)?.as_array());
        for (index, pod) in pods.into_iter().flatten().enumerate() {
            let path = path.child("uncountedTerminatedPods").child(list).index(index);
            let uid = pod.as_str().unwrap_or_default();
            if uid.is_empty() {
                errors.push(FieldError::invalid(&path, uid, "must not be empty"));
            } else if seen.contains(&uid) {
                errors.push(FieldError::duplicate(&path, uid));
            } else {
                seen.push(uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_agree_with_each_other() {
        let status = |ready: i64, collisions: i64| json!({"status": {"replicas": 1, "readyReplicas": ready, "collisionCount": collisions}});
        assert!(DEPLOYMENT.check(&status(1, 1), &status(1, 1)).is_empty());
        let wrong: Vec<_> =
            DEPLOYMENT.check(&status(2, 0), &status(1, 1)).iter().map(ToString::to_string).collect();
        let expected = [
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.collisionCount: Invalid value: 0: cannot be decremented",
        ];
        assert_eq!(wrong, expected);
    }

    #[test]
    fn a_finished_job_does_not_begin_again() {
        let status = |is: &str| {
            json!({"spec": {}, "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": [
                {"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": is}
            ]}})
        };
        assert!(job(&status("True"), &status("False")).is_empty());
        let wrong = job(&status("False"), &status("True"));
        assert_eq!(wrong.len(), 1);
        let expected = "status.conditions: Invalid value: cannot disable the terminal Failed=True condition";
        assert_eq!(wrong[0].to_string(), expected);
    }
}
