//! When a container that terminated is restarted: by its own restart rules, its own policy, or the pod's.

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, PodSpec};
use windlass_component_helpers::restart_policy::RestartPolicy;

/// The restart policy of a container. The first of its own rules that its exit code matches comes first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RestartRules<'a> {
    policy: RestartPolicy,
    rules: &'a [ContainerRestartRule],
}

impl<'a> RestartRules<'a> {
    /// Never, as for ephemeral containers.
    pub(crate) const NEVER: Self = Self { policy: RestartPolicy::Never, rules: &[] };

    /// Rules apply only beside a policy of the container's own.
    fn own(container: &'a Container, pod: RestartPolicy) -> Self {
        match container.restart_policy.as_deref() {
            Some(own) => Self {
                policy: RestartPolicy::parse(Some(own)),
                rules: container.restart_policy_rules.as_deref().unwrap_or_default(),
            },
            None => Self { policy: pod, rules: &[] },
        }
    }

    /// Of an init container: it has to succeed once, unless it is a sidecar.
    pub(crate) fn for_init_container(spec: &PodSpec, container: &'a Container) -> Self {
        let pod = match RestartPolicy::of_pod(spec) {
            RestartPolicy::Never => RestartPolicy::Never,
            RestartPolicy::Always | RestartPolicy::OnFailure => RestartPolicy::OnFailure,
        };
        Self::own(container, pod)
    }

    /// Of a main container.
    pub(crate) fn for_container(spec: &PodSpec, container: &'a Container) -> Self {
        Self::own(container, RestartPolicy::of_pod(spec))
    }

    /// Whether a container that exited with this code is restarted.
    pub(crate) fn restart(self, code: i32) -> bool {
        self.rules.iter().find(|rule| matches(rule, code)).is_some_and(|rule| rule.action == "Restart")
            || self.policy.restarts(code)
    }
}

fn matches(rule: &ContainerRestartRule, code: i32) -> bool {
    let Some(codes) = &rule.exit_codes else { return false };
    let named = codes.values.as_deref().unwrap_or_default().contains(&code);
    match codes.operator.as_str() {
        "In" => named,
        "NotIn" => !named,
        _ => false,
    }
}
