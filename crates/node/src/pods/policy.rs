//! When a container that ended is started again.

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, PodSpec};

/// When a container that ended is started again: by the first of its own rules that its exit code meets, or else by a policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Restarts<'a> {
    policy: Policy,
    rules: &'a [ContainerRestartRule],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Always,
    OnFailure,
    Never,
}

impl Policy {
    fn named(policy: &str) -> Self {
        match policy {
            "Never" => Self::Never,
            "OnFailure" => Self::OnFailure,
            _ => Self::Always,
        }
    }

    fn of_pod(spec: &PodSpec) -> Self {
        Self::named(spec.restart_policy.as_deref().unwrap_or_default())
    }
}

impl<'a> Restarts<'a> {
    /// Whatever happens.
    pub(crate) const NEVER: Self = Self { policy: Policy::Never, rules: &[] };

    /// Rules are a container's own, and count only beside a policy of its own.
    fn own(container: &'a Container, otherwise: Policy) -> Self {
        match container.restart_policy.as_deref() {
            Some(own) => Self {
                policy: Policy::named(own),
                rules: container.restart_policy_rules.as_deref().unwrap_or_default(),
            },
            None => Self { policy: otherwise, rules: &[] },
        }
    }

    /// What holds for one that initializes: it is to succeed once, unless it goes on beside the others.
    pub(crate) fn initializing(spec: &PodSpec, container: &'a Container) -> Self {
        let otherwise = match Policy::of_pod(spec) {
            Policy::Never => Policy::Never,
            Policy::Always | Policy::OnFailure => Policy::OnFailure,
        };
        Self::own(container, otherwise)
    }

    /// What holds for a main container.
    pub(crate) fn of(spec: &PodSpec, container: &'a Container) -> Self {
        Self::own(container, Policy::of_pod(spec))
    }

    pub(crate) fn again(self, code: i32) -> bool {
        if self.rules.iter().find(|rule| meets(rule, code)).is_some_and(|rule| rule.action == "Restart") {
            return true;
        }
        match self.policy {
            Policy::Always => true,
            Policy::OnFailure => code != 0,
            Policy::Never => false,
        }
    }
}

fn meets(rule: &ContainerRestartRule, code: i32) -> bool {
    let Some(codes) = &rule.exit_codes else { return false };
    let named = codes.values.as_deref().unwrap_or_default().contains(&code);
    match codes.operator.as_str() {
        "In" => named,
        "NotIn" => !named,
        _ => false,
    }
}

/// Whether one that initializes goes on beside the others.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
