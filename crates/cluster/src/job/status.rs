//! The status of a Job, and the pods whose tracking finalizer may be removed once it is written.

use super::decide::{Finish, Plan, View, is_tracked};
use super::pod_counts::{Counts, as_i32};
use super::pod_template;
use super::policies::FailureAction;
use crate::pods;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;

/// The most uncounted pods in the status: it must not grow too large.
const MAX_UNCOUNTED_PODS: usize = 500;

/// Computes the status of the plan, and which finalizers to remove.
pub(super) fn track(job: &View, counts: &Counts, finish: Option<Finish>, plan: &mut Plan) {
    let mut status = job.status.clone();
    status.active = Some(as_i32(counts.active.len())).filter(|active| *active > 0);
    status.ready = Some(as_i32(counts.ready));
    status.terminating = Some(as_i32(counts.terminating));
    if status.start_time.is_none() {
        status.start_time = job.started().map(Time);
    }
    if finish.is_none() && job.meta.deletion_timestamp.is_none() && plan.delete.is_empty() {
        suspend(job, &mut status, plan);
    }
    // Until the finish is reported, and as long as pods are active, pods are counted as if the Job continued.
    let ends = finish.as_ref().is_some_and(|finish| finish.reported) && plan.delete.is_empty();
    let all_recorded = record_finished_pods(
        job,
        counts,
        finish.as_ref().map(|finish| (finish.success, ends)),
        &mut status,
        plan,
    );
    if let Some(finish) = finish {
        let (interim, last) =
            if finish.success { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") };
        if !finish.reported {
            set(&mut status, interim, "True", (&finish.reason, &finish.message), job.now);
        } else if counts.active.is_empty()
            && all_recorded
            && plan.release.is_empty()
            && counts.terminating == 0
            && no_uncounted_pods(&status)
        {
            set(&mut status, last, "True", (&finish.reason, &finish.message), job.now);
            if finish.success {
                status.completion_time = Some(Time(job.now));
            }
            push_finish_events(job, &status, &finish, plan);
        }
    }
    plan.status = status;
}

fn push_finish_events(job: &View, status: &JobStatus, finish: &Finish, plan: &mut Plan) {
    if !finish.success {
        plan.events.push((true, finish.reason.clone(), finish.message.clone()));
        return;
    }
    let too_many = job.spec.completions.is_some_and(|wanted| status.succeeded.unwrap_or_default() > wanted);
    if too_many {
        let message = "Too many succeeded pods running after completion count reached";
        plan.events.push((true, "TooManySucceededPods".to_owned(), message.to_owned()));
    }
    plan.events.push((false, "Completed".to_owned(), "Job completed".to_owned()));
}

fn no_uncounted_pods(status: &JobStatus) -> bool {
    let named = status.uncounted_terminated_pods.as_ref();
    named.is_none_or(|named| {
        named.succeeded.iter().flatten().next().is_none() && named.failed.iter().flatten().next().is_none()
    })
}

/// Updates the condition Suspended and the start time.
fn suspend(job: &View, status: &mut JobStatus, plan: &mut Plan) {
    let was = status.conditions.iter().flatten().find(|condition| condition.type_ == "Suspended");
    let was = was.map(|condition| condition.status == "True");
    let event = match (job.is_suspended(), was) {
        (true, None | Some(false)) => {
            set(status, "Suspended", "True", ("JobSuspended", "Job suspended"), job.now);
            status.start_time = None;
            ("Suspended", "Job suspended")
        }
        (false, Some(true)) => {
            set(status, "Suspended", "False", ("JobResumed", "Job resumed"), job.now);
            // The time that it may be active begins anew.
            status.start_time = Some(Time(job.now));
            ("Resumed", "Job resumed")
        }
        _ => return,
    };
    plan.events.push((false, event.0.to_owned(), event.1.to_owned()));
}

/// Lists finished pods in the status as uncounted, counts those whose finalizer is removed, and plans to remove the finalizers
/// of those that are listed. False if there are more. `finish` is whether the Job succeeds, and whether it finishes now.
fn record_finished_pods(
    job: &View,
    counts: &Counts,
    finish: Option<(bool, bool)>,
    status: &mut JobStatus,
    plan: &mut Plan,
) -> bool {
    let mut named = (counts.uncounted_succeeded.clone(), counts.uncounted_failed.clone());
    let mut done = Vec::new();
    let mut pods: Vec<&Arc<Pod>> = job.pods.iter().filter(|pod| is_tracked(pod)).collect();
    if job.indexed {
        pods.sort_by_key(|pod| pod_template::index(pod));
    }
    let mut all = true;
    for pod in pods {
        let failed = job.has_failed(pod);
        let ends = finish.is_some_and(|(_, ends)| ends);
        let counts_as_failed = match finish {
            // What a success ended is no failure; what a failure ended is.
            Some((true, _)) => pods::phase(pod) == "Failed",
            Some((false, true)) => true,
            _ => failed,
        };
        if !can_remove_finalizer(job, counts, ends, pod, failed) {
            continue;
        }
        plan.release.push(pod.clone());
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if pods::phase(pod) == "Succeeded" && !named.1.contains(&uid) {
            match job.index(pod) {
                // The index says it: it is not counted twice.
                Some(index) if job.indexed && !counts.done_before.has(index) => done.push(index),
                None if !job.indexed && !named.0.contains(&uid) => named.0.push(uid),
                _ => {}
            }
        } else if counts_as_failed {
            let counts_at_all = !job.indexed || job.index(pod).is_some();
            let new = !named.1.contains(&uid);
            if counts_at_all && new && job.failure_action(pod) != FailureAction::Ignore {
                named.1.push(uid);
            }
        }
        if done.len() + named.0.len() + named.1.len() >= MAX_UNCOUNTED_PODS {
            all = false;
            break;
        }
    }
    status.failed = Some(counts.counted_failed).filter(|count| *count > 0);
    if job.indexed {
        let done = counts.done_before.with(done);
        status.succeeded = Some(as_i32(done.total() as usize)).filter(|count| *count > 0);
        status.completed_indexes = Some(done.to_string()).filter(|text| !text.is_empty());
        status.failed_indexes = counts.failed_indexes.as_ref().map(ToString::to_string);
    } else {
        status.succeeded = Some(counts.counted_succeeded).filter(|count| *count > 0);
    }
    let list = |names: Vec<String>| Some(names).filter(|names| !names.is_empty());
    status.uncounted_terminated_pods =
        Some(UncountedTerminatedPods { succeeded: list(named.0), failed: list(named.1) });
    all
}

/// Whether the Job needs nothing more of a pod than the status will record.
fn can_remove_finalizer(job: &View, counts: &Counts, ends: bool, pod: &Pod, failed: bool) -> bool {
    if job.meta.deletion_timestamp.is_some() || ends || pods::phase(pod) == "Succeeded" {
        return true;
    }
    let delayed = || {
        let of_index = pod_template::index(pod).and_then(|index| counts.delayed.get(&index));
        of_index.is_some_and(|delayed| delayed.metadata.uid == pod.metadata.uid)
    };
    failed && !delayed()
}

/// Sets a condition; a new one is appended.
fn set(
    status: &mut JobStatus,
    of: &str,
    condition_status: &str,
    (reason, message): (&str, &str),
    now: Timestamp,
) {
    let condition = JobCondition {
        type_: of.to_owned(),
        status: condition_status.to_owned(),
        reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
        message: Some(message.to_owned()).filter(|message| !message.is_empty()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|there| there.type_ == of) {
        Some(there) => *there = condition,
        None => conditions.push(condition),
    }
}
