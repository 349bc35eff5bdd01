//! The results of tasks beside a pod's worker: probes and lifecycle hooks.

use super::super::pod_state::Hook;
use super::PodWorker;
use crate::probes::tracker::{Kind, Verdict};
use crate::probes::{self, ProbeResult};
use windlass::Reason;

/// The result of a probe or a hook.
#[derive(Debug)]
pub(in crate::pods) enum TaskResult {
    Probe { container: String, attempt: u32, result: probes::ProbeResult },
    PostStart { container: String, attempt: u32, failed: Option<String> },
    PreStop { container: String, attempt: u32, failed: Option<String> },
}

impl PodWorker {
    pub(super) fn handle(&mut self, result: TaskResult) {
        let Some(pod) = self.last_pod.clone() else { return };
        let (container, attempt) = match &result {
            TaskResult::Probe { container, attempt, .. }
            | TaskResult::PostStart { container, attempt, .. }
            | TaskResult::PreStop { container, attempt, .. } => (container.clone(), *attempt),
        };
        let recorder = self.context.recorder.clone();
        let warn =
            |reason: &'static str, message: String| recorder.tell(&*pod, true, Reason::new(reason, message));
        let Some(record) = self.state.containers.get_mut(&container) else { return };
        // Results of earlier attempts are ignored.
        if record.last().is_none_or(|last| last.attempt != attempt) {
            return;
        }
        match result {
            TaskResult::Probe { result: ProbeResult::Failure(kind, why), .. } => {
                warn("Unhealthy", format!("{} probe failed: {why}", kind.text()));
            }
            TaskResult::Probe { result: ProbeResult::Verdict(kind, verdict), .. } => {
                let success = verdict == Verdict::Success;
                match kind {
                    Kind::Startup => record.started = Some(success),
                    Kind::Readiness => record.ready = success,
                    Kind::Liveness => record.liveness_failed = !success,
                }
                if kind == Kind::Startup && success {
                    self.probes.started(&container);
                }
            }
            TaskResult::PostStart { failed, .. } => {
                record.post_start = match &failed {
                    Some(why) => {
                        warn("FailedPostStartHook", format!("PostStartHook failed: {why}"));
                        Hook::Failed
                    }
                    None => Hook::Done,
                };
            }
            TaskResult::PreStop { failed, .. } => {
                if let Some(stop) = &mut record.stop {
                    stop.hook = Some(match &failed {
                        Some(why) => {
                            warn("FailedPreStopHook", format!("PreStopHook failed: {why}"));
                            Hook::Failed
                        }
                        None => Hook::Done,
                    });
                }
            }
        }
    }
}
