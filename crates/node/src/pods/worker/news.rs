//! What tasks beside a pod's worker tell it: what probes found, and how hooks ended.

use super::super::known::Hook;
use super::Worker;
use crate::probes;
use crate::probes::tracker::{Kind, Verdict};
use windlass::Reason;

/// What tasks beside the worker tell it.
#[derive(Debug)]
pub(in crate::pods) enum News {
    Probe { container: String, attempt: u32, found: probes::Found },
    PostStart { container: String, attempt: u32, failed: Option<String> },
    PreStop { container: String, attempt: u32, failed: Option<String> },
}

impl Worker {
    pub(super) fn hear(&mut self, news: News) {
        let Some(pod) = self.last_pod.clone() else { return };
        let (container, attempt) = match &news {
            News::Probe { container, attempt, .. }
            | News::PostStart { container, attempt, .. }
            | News::PreStop { container, attempt, .. } => (container.clone(), *attempt),
        };
        let recorder = self.site.recorder.clone();
        let warn =
            |reason: &'static str, message: String| recorder.tell(&*pod, true, Reason::new(reason, message));
        let Some(run) = self.known.runs.get_mut(&container) else { return };
        // What was found out about an earlier run is no news.
        if run.last().is_none_or(|last| last.attempt != attempt) {
            return;
        }
        match news {
            News::Probe { found: probes::Found::Unhealthy(kind, why), .. } => {
                warn("Unhealthy", format!("{} probe failed: {why}", kind.text()));
            }
            News::Probe { found: probes::Found::Verdict(kind, verdict), .. } => {
                let good = verdict == Verdict::Good;
                match kind {
                    Kind::Startup => run.started = Some(good),
                    Kind::Readiness => run.ready = good,
                    Kind::Liveness => run.dead = !good,
                }
                if kind == Kind::Startup && good {
                    self.probing.started(&container);
                }
            }
            News::PostStart { failed, .. } => {
                run.post_start = match &failed {
                    Some(why) => {
                        warn("FailedPostStartHook", format!("PostStartHook failed: {why}"));
                        Hook::Failed
                    }
                    None => Hook::Done,
                };
            }
            News::PreStop { failed, .. } => {
                if let Some(stop) = &mut run.stop {
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
