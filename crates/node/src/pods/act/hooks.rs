//! Hooks of containers, which run beside everything else.

use super::super::known::Hook;
use super::super::worker::{News, Worker, container};
use super::LONGEST_HOOK;
use crate::probes::handler::{Handler, Reach};
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};
use std::borrow::Cow;
use std::time::Duration;

impl Worker {
    pub(super) fn pre_stop(&mut self, pod: &Pod, name: &str) {
        let Some(container) = container(pod, name).map(Cow::into_owned) else { return };
        let Some(attempt) = self.run_of(name).last().map(|last| last.attempt) else { return };
        let Some(stop) = &mut self.run_of(name).stop else { return };
        stop.hook = Some(Hook::Running);
        let limit = Duration::try_from(stop.grace).unwrap_or_default().min(LONGEST_HOOK);
        if let Some(hook) = container.lifecycle.as_ref().and_then(|hooks| hooks.pre_stop.clone()) {
            self.hook(pod, &container, attempt, &hook, limit, |container, attempt, failed| News::PreStop {
                container,
                attempt,
                failed,
            });
        }
    }

    /// Runs a hook beside everything else.
    pub(super) fn hook(
        &mut self,
        pod: &Pod,
        container: &Container,
        attempt: u32,
        hook: &LifecycleHandler,
        limit: Duration,
        news: impl Fn(String, u32, Option<String>) -> News + Send + 'static,
    ) {
        let Some(shim) = self.shim.clone() else { return };
        let reach = Reach {
            shim,
            network: if self.site.on_host_network(pod) { None } else { self.site.network.clone() },
            address: self.known.pod_ip.clone().unwrap_or_else(|| self.site.host_ip.clone()),
            container: container.clone(),
            clock: self.site.clock.clone(),
        };
        let (handler, tell, limit) = (Handler::of_hook(hook), self.tell.clone(), limit.min(LONGEST_HOOK));
        self.tasks.spawn(async move {
            let failed = reach.once(&handler, limit).await.err();
            let _ = tell.send(news(reach.container.name.clone(), attempt, failed)).await;
        });
    }
}
