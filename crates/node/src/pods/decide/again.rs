//! Whether anything of a pod is started again, or at all.

use super::super::known::Run;
use super::super::policy::{Restarts, is_sidecar};
use super::Turn;
use k8s_openapi::api::core::v1::Container;

impl Turn<'_> {
    /// Whether all main containers have ended, and none is started again.
    pub(super) fn main_are_over(&self) -> bool {
        self.spec.containers.iter().all(|container| {
            let run = self.known.runs.get(&container.name);
            let code = run.and_then(Run::exit_code);
            code.is_some_and(|code| !Restarts::of(self.spec, container).again(code))
        }) && !self.begins_anew()
    }

    /// Whether a container was stopped to be started again, whatever the policy says.
    pub(super) fn begins_anew(&self) -> bool {
        self.known.runs.values().any(|run| run.stop.as_ref().is_some_and(|stop| stop.again))
    }

    /// Whether a container that ended is started again.
    pub(super) fn any_comes_back(&self) -> bool {
        let comes_back = |container: &Container, restarts: Restarts<'_>| {
            self.run(&container.name).exit_code().is_some_and(|code| restarts.again(code))
        };
        let init =
            |container: &Container| comes_back(container, Restarts::initializing(self.spec, container));
        let main = |container: &Container| comes_back(container, Restarts::of(self.spec, container));
        // A failed initialization is final, whatever main containers would do.
        let failed = |container: &Container| {
            let code = self.run(&container.name).exit_code();
            !is_sidecar(container) && code.is_some_and(|code| code != 0) && !init(container)
        };
        !self.init().any(failed) && (self.init().any(init) || self.spec.containers.iter().any(main))
    }

    /// Whether any container is still to be started.
    pub(super) fn wants_to_run(&self) -> bool {
        let again = |restarts: Restarts<'_>, container: &Container| {
            self.run(&container.name).exit_code().is_none_or(|code| restarts.again(code))
        };
        let failed = self.init().any(|container| {
            let restarts = Restarts::initializing(self.spec, container);
            self.run(&container.name).exit_code().is_some_and(|code| code != 0 && !restarts.again(code))
        });
        !failed
            && self
                .spec
                .containers
                .iter()
                .any(|container| again(Restarts::of(self.spec, container), container))
    }
}
