//! What a kubelet says of a pod as a whole: its phase and its conditions. Pure: from its containers' states.

use super::containers::Restarts;
use super::script::is_sidecar;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The conditions that a node writes, in a kubelet's order.
pub const OURS: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// How a pod fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not all of it was started.
    Pending,
    /// It runs, or will again.
    Running,
    /// It ended well, for good.
    Succeeded,
    /// It ended, for good, and not all of it well.
    Failed,
}

impl Phase {
    /// A phase by its name; what has none is pending.
    pub fn named(phase: Option<&str>) -> Self {
        match phase {
            Some("Running") => Self::Running,
            Some("Succeeded") => Self::Succeeded,
            Some("Failed") => Self::Failed,
            _ => Self::Pending,
        }
    }

    /// Its name.
    pub fn text(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Whether it is over for good.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The code that a container ended with, if it did.
pub fn exit_code(status: &ContainerStatus) -> Option<i32> {
    status.state.as_ref()?.terminated.as_ref().map(|ended| ended.exit_code)
}

fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Whether a container that initializes has done its part: it ended well, or it goes on and has started.
pub fn is_initialized(container: &Container, status: Option<&ContainerStatus>) -> bool {
    let Some(status) = status else { return false };
    if is_sidecar(container) { status.started == Some(true) } else { exit_code(status) == Some(0) }
}

/// The phase of a pod; `over` if nothing of it will be started again.
pub fn phase(spec: &PodSpec, init: &[ContainerStatus], main: &[ContainerStatus], over: bool) -> Phase {
    let restarts = Restarts::of(spec.restart_policy.as_deref());
    let find = |container: &Container| init.iter().find(|status| status.name == container.name);
    for container in spec.init_containers.iter().flatten() {
        let status = find(container);
        if is_initialized(container, status) || (over && is_sidecar(container)) {
            continue;
        }
        let failed = status.and_then(exit_code).is_some_and(|code| code != 0);
        return if over || (failed && restarts == Restarts::Never && !is_sidecar(container)) {
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
        return if over { Phase::Failed } else { Phase::Pending };
    }
    match (running, stopped) {
        (1.., _) => Phase::Running,
        _ if over || restarts == Restarts::Never => ended(stopped == succeeded),
        _ if restarts == Restarts::OnFailure && stopped == succeeded => Phase::Succeeded,
        _ => Phase::Running,
    }
}

fn ended(well: bool) -> Phase {
    if well { Phase::Succeeded } else { Phase::Failed }
}

/// A condition as it is to be: its status, and why if it is not true.
struct Said {
    of: &'static str,
    holds: bool,
    why: Option<(&'static str, Option<String>)>,
}

/// Writes our conditions into the status, beside those of others.
pub fn write(pod: &Pod, status: &mut PodStatus, phase: Phase, sandbox: bool, now: Timestamp) {
    let Some(spec) = &pod.spec else { return };
    let none = Vec::new();
    let init = status.init_container_statuses.as_ref().unwrap_or(&none);
    let main = status.container_statuses.as_ref().unwrap_or(&none);
    let initialized = initialized(spec, init, phase);
    let containers = containers_ready(spec, init, main, phase);
    let ready = ready(spec, status, &containers);
    let scheduled = Said { of: "PodScheduled", holds: true, why: None };
    let sandbox = Said { of: "PodReadyToStartContainers", holds: sandbox, why: None };
    let generation = pod.metadata.generation;
    let conditions = status.conditions.get_or_insert_default();
    for said in [sandbox, initialized, ready, containers, scheduled] {
        put(conditions, said, generation, now);
    }
}

fn initialized(spec: &PodSpec, init: &[ContainerStatus], phase: Phase) -> Said {
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
        Phase::Succeeded => Said { of, holds: true, why: Some(("PodCompleted", None)) },
        _ if rest.is_empty() => Said { of, holds: true, why: None },
        _ => {
            let message = format!("containers with incomplete status: [{}]", rest.join(" "));
            Said { of, holds: false, why: Some(("ContainersNotInitialized", Some(message))) }
        }
    }
}

fn containers_ready(
    spec: &PodSpec,
    init: &[ContainerStatus],
    main: &[ContainerStatus],
    phase: Phase,
) -> Said {
    let of = "ContainersReady";
    match phase {
        Phase::Succeeded => return Said { of, holds: false, why: Some(("PodCompleted", None)) },
        Phase::Failed => return Said { of, holds: false, why: Some(("PodFailed", None)) },
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
        return Said { of, holds: true, why: None };
    }
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    Said { of, holds: false, why: Some(("ContainersNotReady", Some(message))) }
}

/// A pod is ready if its containers are, and everybody whom it waits for says so.
fn ready(spec: &PodSpec, status: &PodStatus, containers: &Said) -> Said {
    let of = "Ready";
    if !containers.holds {
        return Said { of, holds: false, why: containers.why.clone() };
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
        return Said { of, holds: true, why: None };
    }
    Said { of, holds: false, why: Some(("ReadinessGatesNotReady", Some(lacking.join(", ")))) }
}

/// Why a pod is disrupted that its node has go.
pub const BY_NODE: &str = "TerminationByKubelet";

/// Says that a pod is ended for no fault of its own.
pub fn disrupted(status: &mut PodStatus, message: &str, generation: Option<i64>, now: Timestamp) {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let why = Some((BY_NODE, Some(message.to_owned())));
    let said = Said { of: "DisruptionTarget", holds: true, why };
    put(status.conditions.get_or_insert_default(), said, generation, now);
}

fn put(conditions: &mut Vec<PodCondition>, said: Said, generation: Option<i64>, now: Timestamp) {
    let status = if said.holds { "True" } else { "False" };
    let (reason, message) =
        said.why.map_or((None, None), |(reason, message)| (Some(reason.to_owned()), message));
    let found = conditions.iter_mut().find(|condition| condition.type_ == said.of);
    let same = found.as_ref().filter(|condition| condition.status == status);
    let since = same.and_then(|condition| condition.last_transition_time.clone());
    let condition = PodCondition {
        type_: said.of.to_owned(),
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
