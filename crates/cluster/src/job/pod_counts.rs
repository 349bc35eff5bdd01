//! What the pods of a Job come to: those that were counted, those that wait to be, and those that are at work.

use super::backoff::finished_at;
use super::completion_indexes::Indexes;
use super::decide::{View, is_tracked};
use super::pod_template;
use super::policies::Verdict;
use crate::pods;
use k8s_openapi::api::core::v1::Pod;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The numbers of a Job.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) active: Vec<Arc<Pod>>,
    pub(super) ready: usize,
    /// Told to end, and not ended.
    pub(super) terminating: usize,
    /// All that succeeded, counted or not; of an indexed Job, the indexes.
    pub(super) succeeded: u32,
    /// All that failed and is not to be ignored, counted or not.
    pub(super) failed: i32,
    /// Named in the status as ended and not counted, with their finalizer on.
    pub(super) named_succeeded: Vec<String>,
    pub(super) named_failed: Vec<String>,
    /// What the status counts, with those whose finalizer is off by now.
    pub(super) counted_succeeded: i32,
    pub(super) counted_failed: i32,
    /// The indexes that the status names, and those with what succeeded since.
    pub(super) done_before: Indexes,
    pub(super) done: Indexes,
    /// If there is a limit for each index, those that failed.
    pub(super) failed_indexes: Option<Indexes>,
    /// The last that failed of each index which has no pod now: it stays until there is one, which learns from it.
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
            terminating: job.pods.iter().filter(|pod| pods::is_going(pod) && !pods::has_ended(pod)).count(),
            active,
            ..Self::default()
        };
        counts.settle_named(job);
        let named = |names: &[String], pod: &Pod| names.iter().any(|name| *name == uid(pod));
        // What lost its finalizer was counted or is named; what has an index that the Job lacks never counts.
        let valid = |pod: &&Arc<Pod>| is_tracked(pod) && (!job.indexed || job.index(pod).is_some());
        let succeeded = job.pods.iter().filter(valid).filter(|pod| pods::phase(pod) == "Succeeded");
        let new = succeeded.filter(|pod| !named(&counts.named_succeeded, pod)).count();
        let failed = job.pods.iter().filter(valid).filter(|pod| job.has_failed(pod));
        let failed = failed.filter(|pod| !named(&counts.named_failed, pod));
        let new_failed = failed.filter(|pod| job.verdict(pod) != Verdict::Ignore).count();
        let total = counts.counted_succeeded + as_i32(new + counts.named_succeeded.len());
        counts.succeeded = total.unsigned_abs();
        counts.failed = counts.counted_failed + as_i32(new_failed + counts.named_failed.len());
        if job.indexed {
            counts.by_index(job);
        }
        counts
    }

    /// Those that are named in the status and whose finalizer is off are counted now.
    fn settle_named(&mut self, job: &View) {
        let tracked: BTreeSet<&str> =
            job.pods.iter().filter(|pod| is_tracked(pod)).map(|pod| uid(pod)).collect();
        let named = job.status.uncounted_terminated_pods.clone().unwrap_or_default();
        let split = |names: Option<Vec<String>>| -> (Vec<String>, i32) {
            let (waiting, off): (Vec<_>, Vec<_>) =
                names.unwrap_or_default().into_iter().partition(|name| tracked.contains(name.as_str()));
            (waiting, as_i32(off.len()))
        };
        let (waiting, off) = split(named.succeeded);
        self.named_succeeded = waiting;
        self.counted_succeeded = job.status.succeeded.unwrap_or_default() + off;
        let (waiting, off) = split(named.failed);
        self.named_failed = waiting;
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
                && match job.verdict(pod) {
                    Verdict::FailIndex => true,
                    Verdict::Ignore => false,
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
