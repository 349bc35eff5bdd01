//! Cells of pods: their status in a word, as `kubectl get pods` shows it.

use super::cells::{condition, has, items, number, text};
use super::human;
use jiff::Timestamp;
use serde_json::{Value, json};

/// What a pod's containers come to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

/// How often something was restarted, and when last.
#[derive(Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += number(container, "/restartCount");
        self.last = self.last.max(text(container, "/lastState/terminated/finishedAt").parse().ok());
    }
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "/restartPolicy") == "Always"
}

fn is_true(value: &Value, path: &str) -> bool {
    value.pointer(path) == Some(&Value::Bool(true))
}

/// Why a container that ended did: its reason, signal or code.
fn ended(container: &Value) -> String {
    let terminated = container.pointer("/state/terminated").unwrap_or(&Value::Null);
    match (text(terminated, "/reason"), number(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn summary(pod: &Value) -> Summary {
    let phase = text(pod, "/status/phase");
    let mut reason = match text(pod, "/status/reason") {
        "" => phase.to_owned(),
        reason => reason.to_owned(),
    };
    let gated = |condition: &Value| {
        text(condition, "/type") == "PodScheduled" && text(condition, "/reason") == "SchedulingGated"
    };
    if items(pod, "/status/conditions").iter().any(gated) {
        reason = "SchedulingGated".to_owned();
    }
    let first = items(pod, "/spec/initContainers");
    let sidecars = first.iter().filter(|container| is_sidecar(container)).count();
    let total = items(pod, "/spec/containers").len() + sidecars;
    let (mut of_all, mut of_sidecars, mut ready) = (Restarts::default(), Restarts::default(), 0);
    let mut initializing = false;
    for (at, container) in items(pod, "/status/initContainerStatuses").iter().enumerate() {
        let name = text(container, "/name");
        let sidecar = first.iter().any(|known| text(known, "/name") == name && is_sidecar(known));
        of_all.add(container);
        if sidecar {
            of_sidecars.add(container);
        }
        let terminated = has(container, "/state/terminated");
        let waits = text(container, "/state/waiting/reason");
        if terminated && number(container, "/state/terminated/exitCode") == 0 {
            continue;
        }
        if sidecar && is_true(container, "/started") {
            ready += usize::from(is_true(container, "/ready"));
            continue;
        }
        reason = match () {
            () if terminated => format!("Init:{}", ended(container)),
            () if !waits.is_empty() && waits != "PodInitializing" => format!("Init:{waits}"),
            () => format!("Init:{at}/{}", first.len()),
        };
        initializing = true;
        break;
    }
    let mut restarts = of_all;
    if !initializing || condition(pod, "Initialized") == "True" {
        restarts = of_sidecars;
        let (mut running, mut error) = (false, String::new());
        for container in items(pod, "/status/containerStatuses").iter().rev() {
            restarts.add(container);
            let waits = text(container, "/state/waiting/reason");
            if !waits.is_empty() {
                reason = waits.to_owned();
            } else if has(container, "/state/terminated") {
                reason = ended(container);
                if number(container, "/state/terminated/exitCode") != 0 {
                    error.clone_from(&reason);
                }
            } else if is_true(container, "/ready") && has(container, "/state/running") {
                running = true;
                ready += 1;
            }
        }
        if reason == "Completed" {
            if running && condition(pod, "Ready") == "True" {
                reason = "Running".to_owned();
            } else if !error.is_empty() {
                reason = error;
            } else if running {
                reason = "NotReady".to_owned();
            }
        }
    }
    if has(pod, "/metadata/deletionTimestamp") {
        if text(pod, "/status/reason") == "NodeLost" {
            reason = "Unknown".to_owned();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            reason = "Terminating".to_owned();
        }
    }
    Summary { reason, ready, total, restarts: restarts.count, last_restart: restarts.last }
}

pub(super) fn ready(pod: &Value, _: Timestamp) -> Value {
    let Summary { ready, total, .. } = summary(pod);
    format!("{ready}/{total}").into()
}

pub(super) fn status(pod: &Value, _: Timestamp) -> Value {
    summary(pod).reason.into()
}

pub(super) fn restarts(pod: &Value, now: Timestamp) -> Value {
    let Summary { restarts, last_restart, .. } = summary(pod);
    match last_restart {
        Some(last) if restarts != 0 => {
            let ago = human::seconds(now.as_second().saturating_sub(last.as_second()));
            format!("{restarts} ({ago} ago)").into()
        }
        _ => restarts.to_string().into(),
    }
}

pub(super) fn readiness_gates(pod: &Value, _: Timestamp) -> Value {
    let gates = items(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let open = gates.iter().filter(|gate| condition(pod, text(gate, "/conditionType")) == "True").count();
    format!("{open}/{}", gates.len()).into()
}

/// What a row says of a pod that is done.
pub(super) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: &Value) -> Value {
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "status": status})
    }

    fn seen(status: &Value) -> String {
        let Summary { reason, ready, total, restarts, .. } = summary(&pod(status));
        format!("{ready}/{total} {reason} {restarts}")
    }

    #[test]
    fn a_pod_is_as_well_as_its_containers() {
        let running = json!({"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}}});
        let crashed =
            json!({"name": "b", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
        let done = json!({"name": "b", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
        let killed = json!({"name": "b", "state": {"terminated": {"exitCode": 137, "signal": 9}}});
        assert_eq!(seen(&json!({"phase": "Pending"})), "0/2 Pending 0");
        let of = |list: Value| seen(&json!({"phase": "Running", "containerStatuses": list}));
        assert_eq!(of(json!([running, running])), "2/2 Running 4");
        assert_eq!(of(json!([running, crashed])), "1/2 CrashLoopBackOff 5");
        assert_eq!(of(json!([running, done])), "1/2 NotReady 2");
        assert_eq!(of(json!([running, killed])), "1/2 Signal:9 2");
    }

    #[test]
    fn a_pod_that_is_not_begun_says_how_far_it_is() {
        let mut pod = pod(&json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": {"terminated": {"exitCode": 0}}}, {"name": "j", "state": {"waiting": {"reason": "PodInitializing"}}},
        ]}));
        pod["spec"]["initContainers"] = json!([{"name": "i"}, {"name": "j"}]);
        assert_eq!(summary(&pod).reason, "Init:1/2");
        pod["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(summary(&pod).reason, "Terminating");
    }
}
