//! The pod counts of a Job: counted, finished but uncounted, and active.

use super::backoff::finished_at;
use super::completion_indexes::Indexes;
use super::decide::{View, is_tracked};
use super::pod_template;
use super::policies::FailureAction;
use crate::pods;
use k8s_openapi::api::core::v1::Pod;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The numbers of a Job.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) active: Vec<Arc<Pod>>,
    pub(super) ready: usize,
    /// Being deleted, and not terminal.
    pub(super) terminating: usize,
    /// All that succeeded, counted or not; of an indexed Job, the indexes.
    pub(super) succeeded: u32,
    /// All that failed and is not to be ignored, counted or not.
    pub(super) failed: i32,
    /// Listed in the status as uncounted, with their finalizer.
    pub(super) uncounted_succeeded: Vec<String>,
    pub(super) uncounted_failed: Vec<String>,
    /// The counts of the status, plus pods whose finalizer is removed by now.
    pub(super) counted_succeeded: i32,
    pub(super) counted_failed: i32,
    /// The indexes that the status names, and those with what succeeded since.
    pub(super) done_before: Indexes,
    pub(super) done: Indexes,
    /// The failed indexes, with `backoffLimitPerIndex`.
    pub(super) failed_indexes: Option<Indexes>,
    /// The last failed pod of each index without an active one: it is kept until its replacement exists, which takes over its
    /// failure count.
    pub(super) delayed: BTreeMap<u32, Arc<Pod>>,
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

pub(super) fn as_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

impl Counts {
    pub(super) fn of(job: &View) -> Self {
        let active: Vec<Arc<Pod>> = job.pods.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
        let mut counts = Self {
            ready: active.iter().filter(|pod| pods::is_ready(pod)).count(),
            terminating: job
                .pods
                .iter()
                .filter(|pod| pods::is_terminating(pod) && !pods::has_ended(pod))
                .count(),
            active,
            ..Self::default()
        };
        counts.count_released(job);
        let named = |names: &[String], pod: &Pod| names.iter().any(|name| *name == uid(pod));
        // A pod without the finalizer was counted or is listed; one with an invalid index never counts.
        let valid = |pod: &&Arc<Pod>| is_tracked(pod) && (!job.indexed || job.index(pod).is_some());
        let succeeded = job.pods.iter().filter(valid).filter(|pod| pods::phase(pod) == "Succeeded");
        let new = succeeded.filter(|pod| !named(&counts.uncounted_succeeded, pod)).count();
        let failed = job.pods.iter().filter(valid).filter(|pod| job.has_failed(pod));
        let failed = failed.filter(|pod| !named(&counts.uncounted_failed, pod));
        let new_failed = failed.filter(|pod| job.failure_action(pod) != FailureAction::Ignore).count();
        let total = counts.counted_succeeded + as_i32(new + counts.uncounted_succeeded.len());
        counts.succeeded = total.unsigned_abs();
        counts.failed = counts.counted_failed + as_i32(new_failed + counts.uncounted_failed.len());
        if job.indexed {
            counts.by_index(job);
        }
        counts
    }

    /// Counts the pods that the status lists as uncounted and whose finalizer is removed.
    fn count_released(&mut self, job: &View) {
        let tracked: BTreeSet<&str> =
            job.pods.iter().filter(|pod| is_tracked(pod)).map(|pod| uid(pod)).collect();
        let named = job.status.uncounted_terminated_pods.clone().unwrap_or_default();
        let split = |names: Option<Vec<String>>| -> (Vec<String>, i32) {
            let (waiting, off): (Vec<_>, Vec<_>) =
                names.unwrap_or_default().into_iter().partition(|name| tracked.contains(name.as_str()));
            (waiting, as_i32(off.len()))
        };
        let (waiting, off) = split(named.succeeded);
        self.uncounted_succeeded = waiting;
        self.counted_succeeded = job.status.succeeded.unwrap_or_default() + off;
        let (waiting, off) = split(named.failed);
        self.uncounted_failed = waiting;
        self.counted_failed = job.status.failed.unwrap_or_default() + off;
    }

    fn by_index(&mut self, job: &View) {
        let completions = job.completions.unwrap_or_default();
        let tracked = || job.pods.iter().filter(|pod| is_tracked(pod));
        self.done_before =
            Indexes::read(job.status.completed_indexes.as_deref().unwrap_or_default(), completions);
        let new = tracked().filter(|pod| pods::phase(pod) == "Succeeded").filter_map(|pod| job.index(pod));
        self.done = self.done_before.with(new);
        self.succeeded = self.done.total();
        let Some(limit) = job.spec.backoff_limit_per_index else { return };
        let before = Indexes::read(job.status.failed_indexes.as_deref().unwrap_or_default(), completions);
        let has_failed = |pod: &&Arc<Pod>| {
            job.has_failed(pod)
                && match job.failure_action(pod) {
                    FailureAction::FailIndex => true,
                    FailureAction::Ignore => false,
                    _ => i64::from(pod_template::failures_before(pod).0) >= i64::from(limit),
                }
        };
        let failed = before.with(tracked().filter(has_failed).filter_map(|pod| job.index(pod)));
        let busy: BTreeSet<u32> = self.active.iter().filter_map(|pod| pod_template::index(pod)).collect();
        for pod in tracked().filter(|pod| job.has_failed(pod)) {
            let Some(index) = job.index(pod) else { continue };
            if self.done.has(index) || failed.has(index) || busy.contains(&index) {
                continue;
            }
            let rank = |pod: &Pod| {
                let (counted, ignored) = pod_template::failures_before(pod);
                (counted + ignored, finished_at(pod))
            };
            let later = self.delayed.get(&index).is_none_or(|known| rank(known) <= rank(pod));
            if later {
                self.delayed.insert(index, pod.clone());
            }
        }
        self.failed_indexes = Some(failed);
    }
}
