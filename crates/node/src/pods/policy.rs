//! When a container that ended is started again.

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// When a container that ended is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restarts {
    Always,
    OnFailure,
    Never,
}

impl Restarts {
    fn named(policy: &str) -> Self {
        match policy {
            "Never" => Self::Never,
            "OnFailure" => Self::OnFailure,
            _ => Self::Always,
        }
    }

    /// What the pod says.
    pub(crate) fn of_pod(spec: &PodSpec) -> Self {
        Self::named(spec.restart_policy.as_deref().unwrap_or_default())
    }

    /// What holds for one that initializes: it is to succeed once, unless it goes on beside the others.
    pub(crate) fn initializing(spec: &PodSpec, container: &Container) -> Self {
        match (container.restart_policy.as_deref(), Self::of_pod(spec)) {
            (Some(own), _) => Self::named(own),
            (None, Self::Never) => Self::Never,
            (None, _) => Self::OnFailure,
        }
    }

    /// What holds for a main container.
    pub(crate) fn of(spec: &PodSpec, container: &Container) -> Self {
        container.restart_policy.as_deref().map_or_else(|| Self::of_pod(spec), Self::named)
    }

    pub(crate) fn again(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// Whether one that initializes goes on beside the others.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
