//! The observed state of a pod on this node: what its shim reports, what was prepared, and what is in progress. It is all that a
//! decision sees besides the pod itself, and safe to lose: a kubelet that restarts observes it again.

use super::backoff::Backoff;
use super::container_stop::Stop;
use crate::eviction::Eviction;
use crate::shim::{ContainerState, Phase};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The observed state of a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PodState {
    pub(crate) sandbox: Sandbox,
    /// The node's IP.
    pub(crate) host_ip: String,
    /// The pod's IP, once one was allocated.
    pub(crate) pod_ip: Option<String>,
    pub(crate) volumes: Volumes,
    /// By the container's name.
    pub(crate) containers: BTreeMap<String, ContainerRecord>,
    /// Set when the pod is evicted or was rejected.
    pub(crate) eviction: Option<Eviction>,
    /// Whether its disk space was reclaimed since then.
    pub(crate) reclaimed: bool,
}

/// The pod's sandbox: its namespaces, held by a shim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// It was not created, or was killed.
    #[default]
    Absent,
    /// It is running.
    Alive,
    /// It could not be created.
    Failed {
        message: String,
        /// When to retry.
        retry_at: Timestamp,
    },
}

/// The pod's volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Volumes {
    /// They were not set up yet.
    #[default]
    Unknown,
    /// All are set up.
    Ready,
    /// One failed.
    Failed {
        /// When to retry.
        retry_at: Timestamp,
    },
}

/// A container's image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Image {
    /// It was not looked for yet.
    #[default]
    Unknown,
    /// It is present.
    Found {
        /// Its ID.
        id: String,
    },
    /// It is not present.
    Missing {
        message: String,
        /// The last attempt.
        tried: Timestamp,
        /// The next attempt.
        retry_at: Timestamp,
    },
}

/// The progress of a lifecycle hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Hook {
    /// There is none, or it was not started.
    #[default]
    None,
    Running,
    Done,
    Failed,
}

/// Why a container could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartError {
    /// Such as `CreateContainerConfigError`.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// When to retry.
    pub(crate) retry_at: Timestamp,
}

/// The observed state of a container.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ContainerRecord {
    /// The attempts that the shim remembers, the latest last.
    pub(crate) states: Vec<ContainerState>,
    /// Attempts before this one ran in a sandbox that is gone: init containers have to run again.
    pub(crate) first_attempt: u32,
    pub(crate) image: Image,
    pub(crate) start_error: Option<StartError>,
    /// The result of the startup probe; `None` without a result, or without a probe.
    pub(crate) started: Option<bool>,
    /// The result of the readiness probe.
    pub(crate) ready: bool,
    /// Whether the liveness probe failed.
    pub(crate) liveness_failed: bool,
    pub(crate) post_start: Hook,
    pub(crate) stop: Option<Stop>,
    pub(crate) backoff: Option<Backoff>,
    /// Termination messages, by attempt.
    pub(crate) termination_messages: BTreeMap<u32, String>,
}

impl ContainerRecord {
    /// The latest attempt.
    pub(crate) fn last(&self) -> Option<&ContainerState> {
        self.states.last()
    }

    /// The latest attempt in the current sandbox.
    pub(crate) fn current(&self) -> Option<&ContainerState> {
        self.last().filter(|state| state.attempt >= self.first_attempt)
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.last(), Some(ContainerState { phase: Phase::Running { .. }, .. }))
    }

    /// The exit code of the latest attempt.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        exit_code(&self.last()?.phase)
    }

    /// The number of the next attempt.
    pub(crate) fn next_attempt(&self) -> u32 {
        self.last().map_or(0, |last| last.attempt.saturating_add(1))
    }
}

/// The exit code of a terminated container.
pub(crate) fn exit_code(phase: &Phase) -> Option<i32> {
    match phase {
        Phase::Running { .. } => None,
        Phase::Exited { code, .. } | Phase::Failed { code, .. } => Some(*code),
    }
}

/// When a container terminated.
pub(crate) fn finished(phase: &Phase) -> Option<Timestamp> {
    match phase {
        Phase::Running { .. } => None,
        Phase::Exited { finished, .. } => Some(time(*finished)),
        Phase::Failed { at, .. } => Some(time(*at)),
    }
}

/// A shim's time, in the whole seconds of the API.
pub(crate) fn time(milliseconds: i64) -> Timestamp {
    Timestamp::from_second(milliseconds.div_euclid(1000)).unwrap_or_default()
}
