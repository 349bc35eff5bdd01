//! Whether containers of a pod will be started or restarted.

use super::super::pod_state::ContainerRecord;
use super::super::restart_policy::RestartRules;
use super::PodSync;
use k8s_openapi::api::core::v1::Container;
use windlass_component_helpers::restart_policy::is_sidecar;

impl PodSync<'_> {
    /// Whether all main containers have terminated, and none is restarted.
    pub(super) fn main_containers_finished(&self) -> bool {
        self.spec.containers.iter().all(|container| {
            let record = self.state.containers.get(&container.name);
            let code = record.and_then(ContainerRecord::exit_code);
            code.is_some_and(|code| !RestartRules::for_container(self.spec, container).restart(code))
        }) && !self.restart_requested()
    }

    /// Whether a container was stopped to be restarted, whatever the policy says.
    pub(super) fn restart_requested(&self) -> bool {
        self.state.containers.values().any(|record| record.stop.as_ref().is_some_and(|stop| stop.restart))
    }

    /// Whether a terminated container will be restarted.
    pub(super) fn any_will_restart(&self) -> bool {
        let will_restart = |container: &Container, restarts: RestartRules<'_>| {
            self.container(&container.name).exit_code().is_some_and(|code| restarts.restart(code))
        };
        let init = |container: &Container| {
            will_restart(container, RestartRules::for_init_container(self.spec, container))
        };
        let main = |container: &Container| {
            will_restart(container, RestartRules::for_container(self.spec, container))
        };
        // A failed init container fails the pod, whatever the policies of the main containers.
        let failed = |container: &Container| {
            let code = self.container(&container.name).exit_code();
            !is_sidecar(container) && code.is_some_and(|code| code != 0) && !init(container)
        };
        !self.init().any(failed) && (self.init().any(init) || self.spec.containers.iter().any(main))
    }

    /// Whether any main container still has to be started.
    pub(super) fn wants_to_run(&self) -> bool {
        let again = |restarts: RestartRules<'_>, container: &Container| {
            self.container(&container.name).exit_code().is_none_or(|code| restarts.restart(code))
        };
        let failed = self.init().any(|container| {
            let restarts = RestartRules::for_init_container(self.spec, container);
            self.container(&container.name)
                .exit_code()
                .is_some_and(|code| code != 0 && !restarts.restart(code))
        });
        !failed
            && self
                .spec
                .containers
                .iter()
                .any(|container| again(RestartRules::for_container(self.spec, container), container))
    }
}
