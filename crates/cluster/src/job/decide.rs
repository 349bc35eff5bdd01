//! What to do for a Job, given its pods.
//!
//! A pod carries a finalizer from its creation until it is counted: the status first lists it as uncounted, then the
//! finalizer is removed, and only then the count goes up. So each pod is counted exactly once, whatever fails between.

use super::backoff;
use super::pod_counts::Counts;
use super::pod_template;
use super::policies::{self, FailureAction, failure_action};
use super::status;
use crate::pods;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::sync::Arc;

/// The finalizer of a pod that is not counted yet.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The most pods created or deleted in one reconcile.
const MAX_POD_CREATE_DELETE_PER_SYNC: usize = 500;

/// A Job and its pods, with frequently used values at hand.
pub(super) struct View<'a> {
    pub(super) meta: &'a ObjectMeta,
    pub(super) name: &'a str,
    pub(super) spec: &'a JobSpec,
    pub(super) status: JobStatus,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) now: Timestamp,
    pub(super) indexed: bool,
    pub(super) completions: Option<u32>,
}

/// What to do.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Pods to create, each with its index if the Job is indexed, and the failed pod that it replaces.
    pub(super) create: Vec<(Option<u32>, Option<Arc<Pod>>)>,
    pub(super) delete: Vec<Arc<Pod>>,
    /// Whether the deleted pods do not count as failed.
    pub(super) uncounted: bool,
    /// The status to write once there is nothing to create or delete.
    pub(super) status: JobStatus,
    /// Pods whose finalizer is removed once the status is written.
    pub(super) release: Vec<Arc<Pod>>,
    /// Events to record when the status is written: whether it is a warning, the reason and the message.
    pub(super) events: Vec<(bool, String, String)>,
    /// When to reconcile again.
    pub(super) wait: Option<Timestamp>,
}

/// How a Job finishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) success: bool,
    pub(super) reason: String,
    pub(super) message: String,
    /// Whether the status reports it already.
    pub(super) reported: bool,
}

impl Finish {
    fn failure(reason: &str, message: impl Into<String>) -> Self {
        Self { success: false, reason: reason.to_owned(), message: message.into(), reported: false }
    }

    fn success(reason: &str, message: impl Into<String>) -> Self {
        Self { success: true, ..Self::failure(reason, message) }
    }
}

/// A condition of a Job whose status is True.
pub(super) fn true_condition<'a>(status: &'a JobStatus, of: &str) -> Option<&'a JobCondition> {
    let conditions = status.conditions.iter().flatten();
    conditions.into_iter().find(|condition| condition.type_ == of && condition.status == "True")
}

/// The condition of a finished Job.
pub(crate) fn finished_condition(job: &Job) -> Option<&JobCondition> {
    let status = job.status.as_ref()?;
    true_condition(status, "Complete").or_else(|| true_condition(status, "Failed"))
}

pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == TRACKING)
}

impl<'a> View<'a> {
    /// None for a Job without a spec, which the API does not admit.
    pub(super) fn of(job: &'a Job, pods: &'a [Arc<Pod>], now: Timestamp) -> Option<Self> {
        let spec = job.spec.as_ref()?;
        Some(Self {
            meta: &job.metadata,
            name: job.metadata.name.as_deref()?,
            spec,
            status: job.status.clone().unwrap_or_default(),
            pods,
            now: pods::whole_seconds(now),
            indexed: spec.completion_mode.as_deref() == Some("Indexed"),
            completions: spec.completions.and_then(|completions| u32::try_from(completions).ok()),
        })
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    /// Whether a pod is replaced only once it is terminal, and not already when it is terminating.
    pub(super) fn only_replace_failed_pods(&self) -> bool {
        self.spec.pod_failure_policy.is_some()
            || self.spec.pod_replacement_policy.as_deref() == Some("Failed")
    }

    pub(super) fn has_failed(&self, pod: &Pod) -> bool {
        match pods::phase(pod) {
            "Failed" => true,
            "Succeeded" => false,
            _ => pods::is_terminating(pod) && !self.only_replace_failed_pods(),
        }
    }

    /// The index of a pod, if it is below `completions`.
    pub(super) fn index(&self, pod: &Pod) -> Option<u32> {
        pod_template::index(pod)
            .filter(|index| self.completions.is_some_and(|completions| *index < completions))
    }

    pub(super) fn failure_action(&self, pod: &Pod) -> FailureAction {
        failure_action(self.spec.pod_failure_policy.as_ref(), pod)
    }

    pub(super) fn started(&self) -> Option<Timestamp> {
        match &self.status.start_time {
            Some(time) => Some(time.0),
            None if self.is_suspended() => None,
            None => Some(self.now),
        }
    }

    /// When the active deadline passes.
    fn deadline(&self) -> Option<Timestamp> {
        let allowed = SignedDuration::from_secs(self.spec.active_deadline_seconds?);
        self.started().filter(|_| !self.is_suspended())?.checked_add(allowed).ok()
    }

    /// How the Job finishes, if it does: what was reported stays, then failures, then successes.
    fn finish(&self, counts: &Counts) -> Option<Finish> {
        let reported = |of: &str, success: bool| {
            let condition = true_condition(&self.status, of)?;
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            let (reason, message) = (text(&condition.reason), text(&condition.message));
            Some(Finish { success, reason, message, reported: true })
        };
        reported("SuccessCriteriaMet", true)
            .or_else(|| reported("FailureTarget", false))
            .or_else(|| self.failure(counts))
            .or_else(|| {
                let policy = self.spec.success_policy.as_ref().filter(|_| self.indexed)?;
                let met = policies::success(policy, self.completions?, &counts.done)?;
                Some(Finish::success("SuccessPolicy", met))
            })
    }

    fn failure(&self, counts: &Counts) -> Option<Finish> {
        if self.spec.pod_failure_policy.is_some() {
            let fatal = self.pods.iter().filter(|pod| self.has_failed(pod)).find_map(|pod| {
                match self.failure_action(pod) {
                    FailureAction::FailJob(why) => Some(why),
                    _ => None,
                }
            });
            if let Some(why) = fatal {
                return Some(Finish::failure("PodFailurePolicy", why));
            }
        }
        let limit = self.spec.backoff_limit.unwrap_or(6);
        if counts.failed > limit || self.restarts_exceed(limit) {
            let message = "Job has reached the specified backoff limit";
            return Some(Finish::failure("BackoffLimitExceeded", message));
        }
        if self.deadline().is_some_and(|deadline| deadline <= self.now) {
            let message = "Job was active longer than specified deadline";
            return Some(Finish::failure("DeadlineExceeded", message));
        }
        let failed =
            counts.failed_indexes.as_ref().map(|failed| failed.total()).filter(|count| *count > 0)?;
        let most = self.spec.max_failed_indexes.and_then(|most| u32::try_from(most).ok());
        if most.is_some_and(|most| failed > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Finish::failure("MaxFailedIndexesExceeded", message));
        }
        (failed + counts.done.total() >= self.completions?)
            .then(|| Finish::failure("FailedIndexes", "Job has failed indexes"))
    }

    /// Whether containers with `restartPolicy: OnFailure` were restarted too often.
    fn restarts_exceed(&self, limit: i32) -> bool {
        let policy = self.spec.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        if policy != Some("OnFailure") {
            return false;
        }
        let alive = self.pods.iter().filter(|pod| matches!(pods::phase(pod), "Running" | "Pending"));
        let containers = alive.filter_map(|pod| pod.status.as_ref()).flat_map(|status| {
            let inits = status.init_container_statuses.iter().flatten();
            inits.chain(status.container_statuses.iter().flatten())
        });
        let restarts: i32 = containers.map(|container| container.restart_count).sum();
        if limit == 0 { restarts > 0 } else { restarts >= limit }
    }

    /// Creates missing pods, or deletes excess ones.
    fn manage(&self, counts: &Counts, plan: &mut Plan) {
        let active = counts.active.len();
        if self.is_suspended() {
            plan.delete = counts.active.clone();
            plan.uncounted = true;
            return;
        }
        let parallelism = usize::try_from(self.spec.parallelism.unwrap_or(1)).unwrap_or_default();
        let want = match self.completions {
            // One that succeeds says that the work is done: no more are begun.
            None if counts.succeeded > 0 => active,
            None => parallelism,
            Some(completions) => (completions.saturating_sub(counts.succeeded) as usize).min(parallelism),
        };
        plan.delete = self.excess_pods(&counts.active, active.saturating_sub(want));
        plan.delete.truncate(MAX_POD_CREATE_DELETE_PER_SYNC);
        plan.uncounted = true;
        if !plan.delete.is_empty() {
            return;
        }
        let terminating = if self.only_replace_failed_pods() { counts.terminating } else { 0 };
        let missing = want.saturating_sub(terminating + active).min(MAX_POD_CREATE_DELETE_PER_SYNC);
        if missing == 0 {
            return;
        }
        if self.spec.backoff_limit_per_index.is_none() {
            let of = |phase: &'static str| self.pods.iter().filter(move |pod| pods::phase(pod) == phase);
            let failed = self.pods.iter().filter(|pod| self.has_failed(pod));
            let until = backoff::until_after(of("Succeeded").map(|pod| &**pod), failed.map(|pod| &**pod));
            if let Some(until) = until.filter(|until| *until > self.now) {
                plan.requeue_after(until);
                return;
            }
        }
        if !self.indexed {
            plan.create = vec![(None, None); missing];
            return;
        }
        for index in self.pending(counts, missing) {
            let replaces = counts.delayed.get(&index).cloned();
            let until = replaces.as_ref().and_then(|failed| {
                let (counted, ignored) = pod_template::failures_before(failed);
                backoff::until(counted + ignored + 1, backoff::finished_at(failed))
            });
            match until.filter(|until| *until > self.now) {
                Some(until) => plan.requeue_after(until),
                None => plan.create.push((Some(index), replaces)),
            }
        }
    }

    /// The first indexes without a pod that are neither completed nor failed.
    fn pending(&self, counts: &Counts, count: usize) -> Vec<u32> {
        let waits = self.only_replace_failed_pods();
        let terminating =
            self.pods.iter().filter(|pod| waits && pods::is_terminating(pod) && !pods::has_ended(pod));
        let busy = counts.active.iter().chain(terminating).filter_map(|pod| pod_template::index(pod));
        let mut taken = counts.done.with(busy);
        if let Some(failed) = &counts.failed_indexes {
            taken = taken.and(failed);
        }
        taken.gaps(self.completions.unwrap_or_default(), count)
    }

    /// At least `least` of the active pods, to be deleted: those with a duplicate or invalid index first, then those that have
    /// progressed least.
    fn excess_pods(&self, active: &[Arc<Pod>], least: usize) -> Vec<Arc<Pod>> {
        let mut by_progress: Vec<&Arc<Pod>> = active.iter().collect();
        by_progress.sort_by_cached_key(|pod| progress(pod));
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        let mut observed = std::collections::BTreeSet::new();
        // From the one that is furthest, so that it is the one that stays.
        for pod in by_progress.into_iter().rev() {
            let stays = !self.indexed || self.index(pod).is_some_and(|index| observed.insert(index));
            if stays { left.push(pod.clone()) } else { gone.push(pod.clone()) }
        }
        let more = least.saturating_sub(gone.len());
        gone.extend(left.into_iter().rev().take(more));
        gone
    }
}

/// The progress of an active pod: what sorts first is deleted first.
fn progress(pod: &Pod) -> impl Ord + use<> {
    let scheduled = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let phase = match pods::phase(pod) {
        "Pending" => 0,
        "Running" => 2,
        _ => 1,
    };
    let age = |time: Option<Timestamp>| std::cmp::Reverse(time.unwrap_or(Timestamp::MAX));
    let ready = pods::condition(pod, "Ready").and_then(|ready| ready.last_transition_time.as_ref());
    let restarts = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let restarts = restarts.map(|container| container.restart_count).max().unwrap_or_default();
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let ready_since = age(ready.filter(|_| pods::is_ready(pod)).map(|time| time.0));
    (scheduled, phase, pods::is_ready(pod), ready_since, std::cmp::Reverse(restarts), age(created))
}

impl Plan {
    fn requeue_after(&mut self, at: Timestamp) {
        self.wait = Some(self.wait.map_or(at, |wait| wait.min(at)));
    }
}

/// What to do for a Job that is not finished.
pub(super) fn decide(job: &View) -> Plan {
    let counts = Counts::of(job);
    let mut plan = Plan::default();
    let mut finish = job.finish(&counts);
    if let Some(reported) = finish.as_ref().map(|finish| finish.reported) {
        // The reason is reported before pods are deleted: deleted pods look like failures.
        if reported {
            plan.delete = counts.active.clone();
        }
    } else if job.meta.deletion_timestamp.is_none() {
        if let Some(deadline) = job.deadline() {
            plan.requeue_after(deadline);
        }
        job.manage(&counts, &mut plan);
        let rests = counts.active.is_empty() && plan.create.is_empty();
        let enough = match job.completions {
            None => counts.succeeded > 0,
            Some(completions) => counts.succeeded >= completions,
        };
        if enough && rests {
            let message = "Reached expected number of succeeded pods";
            finish = Some(Finish::success("CompletionsReached", message));
        }
    }
    status::track(job, &counts, finish, &mut plan);
    plan
}
