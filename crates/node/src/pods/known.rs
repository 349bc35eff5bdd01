//! What a node knows of a pod at one moment: what its shim says, what was prepared, and what is under way. All that a decision
//! sees besides the pod itself; safe to lose, since a node that starts again finds it out again.

use super::backoff::Backoff;
use super::stopping::Stop;
use crate::shim::{ContainerState, Phase};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What is known of a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    pub(crate) sandbox: Sandbox,
    /// The address of the node.
    pub(crate) host_ip: String,
    /// The pod's own address, once it was lent one.
    pub(crate) pod_ip: Option<String>,
    pub(crate) volumes: Volumes,
    /// By the container's name.
    pub(crate) runs: BTreeMap<String, Run>,
    /// Whether it has to go for want of something.
    pub(crate) evicted: Option<Evicted>,
    /// Whether what it had on the disk was given back since then.
    pub(crate) reclaimed: bool,
}

/// A pod has to go, since the machine is short of something or it holds more than it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Evicted {
    /// Why.
    pub(crate) message: String,
    /// Since when.
    pub(crate) at: Timestamp,
    pub(crate) cause: Cause,
}

/// What has a pod go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The machine is short of something: that is not the pod's failure.
    Shortage,
    /// It holds more than it may.
    Excess,
    /// It was never taken in, for this reason.
    Refusal(String),
}

/// The pod's namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// There are none, and were none or they were ended.
    #[default]
    Absent,
    /// They are there.
    Alive,
    /// They could not be made.
    Failed {
        message: String,
        /// When to try again.
        again: Timestamp,
    },
}

/// The pod's volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Volumes {
    /// Nobody looked after them yet.
    #[default]
    Unknown,
    /// All are there.
    Ready,
    /// One is not.
    Failed {
        /// When to try again.
        again: Timestamp,
    },
}

/// A container's image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Image {
    /// Nobody looked for it yet.
    #[default]
    Unknown,
    /// It is there.
    Found {
        /// What it is, exactly.
        id: String,
    },
    /// It is not.
    Missing {
        message: String,
        /// When it was looked for last.
        tried: Timestamp,
        /// When it is looked for again.
        again: Timestamp,
    },
}

/// How far a hook is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Hook {
    /// There is none, or it did not begin.
    #[default]
    None,
    Running,
    Done,
    Failed,
}

/// What keeps a container from being started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// As `CreateContainerConfigError`.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// When to try again.
    pub(crate) again: Timestamp,
}

/// What is known of one container.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Run {
    /// Every attempt that is remembered, the latest last.
    pub(crate) states: Vec<ContainerState>,
    /// Attempts before this one were in namespaces that are no more: what they did to initialize has to be done again.
    pub(crate) floor: u32,
    pub(crate) image: Image,
    pub(crate) fault: Option<Fault>,
    /// What the startup probe found; none where it has not, or there is none.
    pub(crate) started: Option<bool>,
    /// Whether the readiness probe found it ready.
    pub(crate) ready: bool,
    /// Whether the liveness probe found it dead.
    pub(crate) dead: bool,
    pub(crate) post_start: Hook,
    pub(crate) stop: Option<Stop>,
    pub(crate) backoff: Option<Backoff>,
    /// Last words, by attempt.
    pub(crate) words: BTreeMap<u32, String>,
}

impl Run {
    /// The latest attempt.
    pub(crate) fn last(&self) -> Option<&ContainerState> {
        self.states.last()
    }

    /// The latest attempt in the namespaces that are there now.
    pub(crate) fn current(&self) -> Option<&ContainerState> {
        self.last().filter(|state| state.attempt >= self.floor)
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.last(), Some(ContainerState { phase: Phase::Running { .. }, .. }))
    }

    /// The code that the latest attempt ended with.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        exit_code(&self.last()?.phase)
    }

    /// The number of the next attempt.
    pub(crate) fn next_attempt(&self) -> u32 {
        self.last().map_or(0, |last| last.attempt.saturating_add(1))
    }
}

/// The code that a container ended with, if it did.
pub(crate) fn exit_code(phase: &Phase) -> Option<i32> {
    match phase {
        Phase::Running { .. } => None,
        Phase::Exited { code, .. } | Phase::Failed { code, .. } => Some(*code),
    }
}

/// When a container ended, if it did.
pub(crate) fn finished(phase: &Phase) -> Option<Timestamp> {
    match phase {
        Phase::Running { .. } => None,
        Phase::Exited { finished, .. } => Some(time(*finished)),
        Phase::Failed { at, .. } => Some(time(*at)),
    }
}

/// A shim's time, in the whole seconds that objects have.
pub(crate) fn time(milliseconds: i64) -> Timestamp {
    Timestamp::from_second(milliseconds.div_euclid(1000)).unwrap_or_default()
}
