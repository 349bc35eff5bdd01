//! A pod's restart policy. Pure.

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// When a container that exited is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Always, which is also the default.
    Always,
    /// When its exit code is not 0.
    OnFailure,
    /// Never.
    Never,
}

impl RestartPolicy {
    /// The policy of this name; anything but `Never` and `OnFailure` is `Always`.
    pub fn parse(policy: Option<&str>) -> Self {
        match policy {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    /// The policy of a pod.
    pub fn of_pod(spec: &PodSpec) -> Self {
        Self::parse(spec.restart_policy.as_deref())
    }

    /// Whether a container that exited with this code is restarted.
    pub fn restarts(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

/// Whether an init container is a sidecar: it keeps running beside the main containers.
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
