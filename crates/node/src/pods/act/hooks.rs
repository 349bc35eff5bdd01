//! Hooks of containers, which run beside everything else.

use super::super::pod_state::Hook;
use super::super::pod_worker::{PodWorker, TaskResult, container};
use super::MAX_HOOK;
use crate::probes::handler::{Handler, ProbeTarget};
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};
use std::borrow::Cow;
use std::time::Duration;

impl PodWorker {
    pub(super) fn run_pre_stop_hook(&mut self, pod: &Pod, name: &str) {
        let Some(container) = container(pod, name).map(Cow::into_owned) else { return };
        let Some(attempt) = self.container_mut(name).last().map(|last| last.attempt) else { return };
        let Some(stop) = &mut self.container_mut(name).stop else { return };
        stop.hook = Some(Hook::Running);
        let limit = Duration::try_from(stop.grace).unwrap_or_default().min(MAX_HOOK);
        if let Some(hook) = container.lifecycle.as_ref().and_then(|hooks| hooks.pre_stop.clone()) {
            self.run_hook(pod, &container, attempt, &hook, limit, |container, attempt, failed| {
                TaskResult::PreStop { container, attempt, failed }
            });
        }
    }

    /// Runs a hook in a task of its own.
    pub(super) fn run_hook(
        &mut self,
        pod: &Pod,
        container: &Container,
        attempt: u32,
        hook: &LifecycleHandler,
        limit: Duration,
        result: impl Fn(String, u32, Option<String>) -> TaskResult + Send + 'static,
    ) {
        let Some(shim) = self.shim.clone() else { return };
        let target = ProbeTarget {
            shim,
            network: if self.context.uses_host_network(pod) { None } else { self.context.network.clone() },
            address: self.state.pod_ip.clone().unwrap_or_else(|| self.context.host_ip.clone()),
            container: container.clone(),
            clock: self.context.clock.clone(),
        };
        let (handler, results, limit) = (Handler::of_hook(hook), self.results.clone(), limit.min(MAX_HOOK));
        self.tasks.spawn(async move {
            let failed = target.run(&handler, limit).await.err();
            let _ = results.send(result(target.container.name.clone(), attempt, failed)).await;
        });
    }
}
