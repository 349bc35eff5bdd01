//! Jobs on a schedule: what the controller of kubebuilder's CronJob tutorial does, written anew on this library. `docs/port.md`
//! compares the two.

mod kind;
#[cfg(test)]
mod tests;

pub use kind::{ConcurrencyPolicy, CronJob, CronJobSpec, CronJobStatus};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt};
use std::sync::Arc;
use std::time::Duration;
use windlass::clock::Timestamp;
use windlass::schedule::ParseScheduleError;
use windlass::{Controller, Generate, Observed, Plan, Reason, Refusal, Schedule};

/// On each job: for when it was scheduled. The status can be made from it again at any time.
const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

/// Starts that were missed; more mean that a clock is wrong.
const MOST_MISSED: usize = 100;

/// The controller.
pub fn controller() -> Controller<CronJob> {
    Controller::deciding(decide).owns::<Job>().deletes::<Job>()
}

/// What a cron job needs, given the jobs that are there.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn decide(cron: &CronJob, observed: &Observed) -> Result<Plan, Refusal> {
    let jobs = observed.list::<Job>()?;
    let [active, failed, succeeded] = [None, Some("Failed"), Some("Complete")]
        .map(|how| jobs.iter().filter(|job| finished(job) == how).cloned().collect::<Vec<_>>());
    let last = jobs.iter().filter_map(|job| scheduled_at(job)).max();
    let status = CronJobStatus {
        active: active.iter().map(|job| reference(job)).collect(),
        last_schedule_time: last.map(Time),
        ..Default::default()
    };
    let mut plan = stand(Plan::new().status(status), cron.spec.suspend, active.len(), failed.len());
    let old = old(failed, cron.spec.failed_jobs_history_limit);
    for job in old.chain(self::old(succeeded, cron.spec.successful_jobs_history_limit)) {
        plan = plan
            .delete::<Job>(job.name_any(), Reason::new("HistoryLimit", "it is older than the history goes"));
    }
    if cron.spec.suspend {
        return Ok(plan);
    }
    let (missed, next) = match runs(cron, last, observed.now()) {
        Ok(runs) => runs,
        Err(why) => return Ok(plan.condition("Degraded", true, Reason::new("InvalidSchedule", why))),
    };
    if let Some(next) = next {
        plan =
            plan.requeue_after(Duration::try_from(next.duration_since(observed.now())).unwrap_or_default());
    }
    let forbidden = cron.spec.concurrency_policy == ConcurrencyPolicy::Forbid && !active.is_empty();
    let Some(missed) = missed.filter(|_| !forbidden) else { return Ok(plan) };
    if cron.spec.concurrency_policy == ConcurrencyPolicy::Replace {
        for job in active {
            plan =
                plan.delete::<Job>(job.name_any(), Reason::new("Replaced", "the next run takes its place"));
        }
    }
    Ok(plan.create_once(
        job(cron, missed),
        Generate::new(),
        Reason::new("Scheduled", format!("it was due at {missed}")),
    ))
}

/// How it stands.
fn stand(plan: Plan, suspended: bool, active: usize, failed: usize) -> Plan {
    let running = Reason::new("JobsActive", format!("{active} job(s) are currently active"));
    let failing = Reason::new("JobsFailed", format!("{failed} job(s) have failed"));
    match (suspended, failed, active) {
        (true, ..) => plan.condition("Available", false, Reason::new("Suspended", "CronJob is suspended")),
        (_, 1.., _) => {
            plan.condition("Available", false, failing.clone()).condition("Degraded", true, failing)
        }
        (_, _, 1..) => {
            plan.condition("Available", true, running.clone()).condition("Progressing", true, running)
        }
        _ => plan.condition(
            "Available",
            true,
            Reason::new("AllJobsCompleted", "no job is active, and none failed"),
        ),
    }
}

/// How a job ended, if it did.
fn finished(job: &Job) -> Option<&'static str> {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut held = conditions.filter(|condition| condition.status == "True");
    held.find_map(|condition| ["Failed", "Complete"].into_iter().find(|end| *end == condition.type_))
}

fn scheduled_at(job: &Job) -> Option<Timestamp> {
    job.annotations().get(SCHEDULED_AT)?.parse().ok()
}

fn reference(job: &Job) -> ObjectReference {
    let resource_version = None; // It would be out of date as soon as it is written, and written again for ever.
    ObjectReference { resource_version, ..job.object_ref(&()) }
}

/// Those beyond the limit, oldest first.
fn old(mut jobs: Vec<Arc<Job>>, limit: Option<u32>) -> impl Iterator<Item = Arc<Job>> {
    jobs.sort_by_key(|job| job.status.as_ref().and_then(|status| status.start_time.clone()));
    let kept = limit.map_or(usize::MAX, |limit| limit as usize);
    let beyond = jobs.len().saturating_sub(kept);
    jobs.into_iter().take(beyond)
}

/// The last run that was missed and may still start, and the next one.
fn runs(
    cron: &CronJob,
    last: Option<Timestamp>,
    now: Timestamp,
) -> Result<(Option<Timestamp>, Option<Timestamp>), String> {
    let schedule: Schedule = cron.spec.schedule.parse().map_err(|why: ParseScheduleError| why.to_string())?;
    let made = cron.creation_timestamp().map(|time| time.0);
    let deadline = cron
        .spec
        .starting_deadline_seconds
        .and_then(|seconds| now.checked_sub(Duration::from_secs(seconds.unsigned_abs())).ok());
    let from = last.or(made).unwrap_or(now).max(deadline.unwrap_or(Timestamp::MIN));
    let missed = std::iter::successors(schedule.next(from), |time| schedule.next(*time))
        .take_while(|time| *time <= now);
    let missed: Vec<Timestamp> = missed.take(MOST_MISSED + 1).collect();
    match missed.len() > MOST_MISSED {
        true => {
            Err("too many missed start times: set startingDeadlineSeconds, or check the clocks".to_owned())
        }
        false => Ok((missed.last().copied(), schedule.next(now))),
    }
}

/// The job of one run, whose name only that run has.
fn job(cron: &CronJob, time: Timestamp) -> Job {
    let template = cron.spec.job_template.clone();
    let mut job =
        Job { metadata: template.metadata.unwrap_or_default(), spec: template.spec, ..Default::default() };
    job.metadata.name = Some(format!("{}-{}", cron.name_any(), time.as_second()));
    job.metadata.annotations.get_or_insert_default().insert(SCHEDULED_AT.to_owned(), time.to_string());
    job
}
