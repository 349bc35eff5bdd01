//! A pod's phase and the conditions that a kubelet sets, from its containers' statuses. Pure.

use crate::restart_policy::{RestartPolicy, is_sidecar};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The conditions that a kubelet owns, in its order.
pub const KUBELET_CONDITIONS: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// A pod's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not all containers have been started.
    Pending,
    /// At least one container is running, or is about to be restarted.
    Running,
    /// All containers have terminated with exit code 0 and will not be restarted.
    Succeeded,
    /// All containers have terminated and will not be restarted; at least one of them failed.
    Failed,
}

impl Phase {
    /// The phase of this name; anything else is `Pending`.
    pub fn parse(phase: Option<&str>) -> Self {
        match phase {
            Some("Running") => Self::Running,
            Some("Succeeded") => Self::Succeeded,
            Some("Failed") => Self::Failed,
            _ => Self::Pending,
        }
    }

    /// Its name in `status.phase`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Whether it is terminal: `Succeeded` or `Failed`.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The exit code of a terminated container.
pub fn exit_code(status: &ContainerStatus) -> Option<i32> {
    status.state.as_ref()?.terminated.as_ref().map(|ended| ended.exit_code)
}

fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Whether an init container has completed: it exited with code 0, or it is a sidecar and has started.
pub fn is_initialized(container: &Container, status: Option<&ContainerStatus>) -> bool {
    let Some(status) = status else { return false };
    if is_sidecar(container) { status.started == Some(true) } else { exit_code(status) == Some(0) }
}

/// The phase of a pod; `terminal` if no container will be started or restarted.
pub fn phase(spec: &PodSpec, init: &[ContainerStatus], main: &[ContainerStatus], terminal: bool) -> Phase {
    let policy = RestartPolicy::of_pod(spec);
    let find = |container: &Container| init.iter().find(|status| status.name == container.name);
    for container in spec.init_containers.iter().flatten() {
        let status = find(container);
        if is_initialized(container, status) || (terminal && is_sidecar(container)) {
            continue;
        }
        let failed = status.and_then(exit_code).is_some_and(|code| code != 0);
        return if terminal || (failed && policy == RestartPolicy::Never && !is_sidecar(container)) {
            Phase::Failed
        } else {
            Phase::Pending
        };
    }
    let (mut waiting, mut running, mut stopped, mut succeeded) = (0, 0, 0, 0);
    for status in main {
        let was = status.last_state.as_ref().is_some_and(|last| last.terminated.is_some());
        match exit_code(status) {
            Some(code) => {
                stopped += 1;
                succeeded += usize::from(code == 0);
            }
            None if is_running(status) => running += 1,
            None if was => stopped += 1,
            None => waiting += 1,
        }
    }
    if waiting > 0 || main.is_empty() {
        return if terminal { Phase::Failed } else { Phase::Pending };
    }
    match (running, stopped) {
        (1.., _) => Phase::Running,
        _ if terminal || policy == RestartPolicy::Never => finished(stopped == succeeded),
        _ if policy == RestartPolicy::OnFailure && stopped == succeeded => Phase::Succeeded,
        _ => Phase::Running,
    }
}

fn finished(succeeded: bool) -> Phase {
    if succeeded { Phase::Succeeded } else { Phase::Failed }
}

/// A condition to be set: its type, its status, and the reason and message.
struct Condition {
    of: &'static str,
    holds: bool,
    why: Option<(&'static str, Option<String>)>,
}

/// Sets the kubelet's conditions in the status, and keeps those of others.
pub fn set_conditions(pod: &Pod, status: &mut PodStatus, phase: Phase, sandbox: bool, now: Timestamp) {
    let Some(spec) = &pod.spec else { return };
    let none = Vec::new();
    let init = status.init_container_statuses.as_ref().unwrap_or(&none);
    let main = status.container_statuses.as_ref().unwrap_or(&none);
    let initialized = initialized(spec, init, phase);
    let containers = containers_ready(spec, init, main, phase);
    let ready = ready(spec, status, &containers);
    let scheduled = Condition { of: "PodScheduled", holds: true, why: None };
    let sandbox = Condition { of: "PodReadyToStartContainers", holds: sandbox, why: None };
    let generation = pod.metadata.generation;
    let conditions = status.conditions.get_or_insert_default();
    for wanted in [sandbox, initialized, ready, containers, scheduled] {
        set(conditions, wanted, generation, now);
    }
}

fn initialized(spec: &PodSpec, init: &[ContainerStatus], phase: Phase) -> Condition {
    let of = "Initialized";
    let find = |container: &Container| init.iter().find(|status| status.name == container.name);
    let rest: Vec<&str> = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|container| !is_initialized(container, find(container)))
        .map(|container| container.name.as_str())
        .collect();
    match phase {
        Phase::Succeeded => Condition { of, holds: true, why: Some(("PodCompleted", None)) },
        _ if rest.is_empty() => Condition { of, holds: true, why: None },
        _ => {
            let message = format!("containers with incomplete status: [{}]", rest.join(" "));
            Condition { of, holds: false, why: Some(("ContainersNotInitialized", Some(message))) }
        }
    }
}

fn containers_ready(
    spec: &PodSpec,
    init: &[ContainerStatus],
    main: &[ContainerStatus],
    phase: Phase,
) -> Condition {
    let of = "ContainersReady";
    match phase {
        Phase::Succeeded => return Condition { of, holds: false, why: Some(("PodCompleted", None)) },
        Phase::Failed => return Condition { of, holds: false, why: Some(("PodFailed", None)) },
        _ => {}
    }
    let sidecars = spec.init_containers.iter().flatten().filter(|container| is_sidecar(container));
    let sidecars = sidecars.map(|container| (container, init));
    let all = sidecars.chain(spec.containers.iter().map(|container| (container, main)));
    let unready: Vec<&str> = all
        .filter(|(container, among)| {
            !among.iter().any(|status| status.name == container.name && status.ready)
        })
        .map(|(container, _)| container.name.as_str())
        .collect();
    if unready.is_empty() {
        return Condition { of, holds: true, why: None };
    }
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    Condition { of, holds: false, why: Some(("ContainersNotReady", Some(message))) }
}

/// A pod is ready if its containers are, and all its readiness gates are true.
fn ready(spec: &PodSpec, status: &PodStatus, containers: &Condition) -> Condition {
    let of = "Ready";
    if !containers.holds {
        return Condition { of, holds: false, why: containers.why.clone() };
    }
    let lacking: Vec<String> = spec
        .readiness_gates
        .iter()
        .flatten()
        .filter_map(|gate| {
            let name = &gate.condition_type;
            let found = status.conditions.iter().flatten().find(|condition| condition.type_ == *name);
            match found {
                None => {
                    Some(format!("corresponding condition of pod readiness gate {name:?} does not exist."))
                }
                Some(condition) if condition.status == "True" => None,
                Some(condition) => Some(format!(
                    "the status of pod readiness gate {name:?} is not \"True\", but {}",
                    condition.status
                )),
            }
        })
        .collect();
    if lacking.is_empty() {
        return Condition { of, holds: true, why: None };
    }
    Condition { of, holds: false, why: Some(("ReadinessGatesNotReady", Some(lacking.join(", ")))) }
}

/// The reason of `DisruptionTarget` on a pod that its kubelet terminates.
pub const TERMINATION_BY_KUBELET: &str = "TerminationByKubelet";

/// Sets `DisruptionTarget`: the pod is terminated through no fault of its own.
pub fn set_disruption_target(status: &mut PodStatus, message: &str, generation: Option<i64>, now: Timestamp) {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let why = Some((TERMINATION_BY_KUBELET, Some(message.to_owned())));
    let wanted = Condition { of: "DisruptionTarget", holds: true, why };
    set(status.conditions.get_or_insert_default(), wanted, generation, now);
}

fn set(conditions: &mut Vec<PodCondition>, wanted: Condition, generation: Option<i64>, now: Timestamp) {
    let status = if wanted.holds { "True" } else { "False" };
    let (reason, message) =
        wanted.why.map_or((None, None), |(reason, message)| (Some(reason.to_owned()), message));
    let found = conditions.iter_mut().find(|condition| condition.type_ == wanted.of);
    let same = found.as_ref().filter(|condition| condition.status == status);
    let since = same.and_then(|condition| condition.last_transition_time.clone());
    let condition = PodCondition {
        type_: wanted.of.to_owned(),
        status: status.to_owned(),
        reason,
        message,
        observed_generation: generation,
        last_transition_time: since.or(Some(Time(now))),
        last_probe_time: None,
    };
    match found {
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
}
