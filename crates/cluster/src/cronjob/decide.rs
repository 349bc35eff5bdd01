//! What to do for a CronJob, given its Jobs and the time.

use crate::job::finished_condition;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use std::sync::Arc;
use windlass::schedule::{Schedule, time_zone};

/// The scheduled time of a Job, in the time zone of the CronJob.
const SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// More missed start times than this are reported.
const MANY_MISSED: i64 = 100;

/// What was observed.
pub(super) struct Observed<'a> {
    pub(super) cron: &'a CronJob,
    /// The Jobs that it owns.
    pub(super) jobs: &'a [Arc<Job>],
    /// The active Jobs that are confirmed to be gone, by UID.
    pub(super) gone: &'a [String],
    pub(super) now: Timestamp,
}

/// What to do.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Jobs to delete before the next is created.
    pub(super) replace: Vec<Arc<Job>>,
    /// The Job to create, and its scheduled time.
    pub(super) create: Option<(Box<Job>, Timestamp)>,
    /// Finished Jobs beyond the history limits.
    pub(super) expire: Vec<Arc<Job>>,
    /// The status, without the Job to create.
    pub(super) status: CronJobStatus,
    /// Whether it is a warning, the reason and the message.
    pub(super) events: Vec<(bool, &'static str, String)>,
    /// When to reconcile again.
    pub(super) next: Option<Timestamp>,
}

impl Plan {
    fn warning(&mut self, reason: &'static str, message: impl Into<String>) {
        self.events.push((true, reason, message.into()));
    }

    fn event(&mut self, reason: &'static str, message: impl Into<String>) {
        self.events.push((false, reason, message.into()));
    }
}

/// The reference to a Job in the status.
pub(super) fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".into()),
        kind: Some("Job".into()),
        namespace: job.metadata.namespace.clone(),
        name: job.metadata.name.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        field_path: None,
    }
}

/// What to do.
pub(super) fn decide(observed: &Observed, owner: &OwnerReference) -> Plan {
    let mut plan = Plan { status: observed.cron.status.clone().unwrap_or_default(), ..Plan::default() };
    let spec = &observed.cron.spec;
    expire(observed, spec, &mut plan);
    update_active(observed, &mut plan);
    if observed.cron.metadata.deletion_timestamp.is_none() {
        start(observed, spec, owner, &mut plan);
    }
    plan.status.active = plan.status.active.filter(|active| !active.is_empty());
    plan
}

/// Finds finished Jobs beyond the history limits.
fn expire(observed: &Observed, spec: &CronJobSpec, plan: &mut Plan) {
    for (of, limit) in
        [("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit)]
    {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
        let mut over: Vec<&Arc<Job>> = observed
            .jobs
            .iter()
            .filter(|job| {
                let terminating = job.metadata.deletion_timestamp.is_some();
                !terminating && finished_condition(job).is_some_and(|condition| condition.type_ == of)
            })
            .collect();
        over.sort_by_key(|job| {
            let start = job.status.as_ref().and_then(|status| status.start_time.as_ref());
            (start.map_or(Timestamp::MAX, |time| time.0), job.metadata.name.clone())
        });
        let excess = over.len().saturating_sub(limit);
        plan.expire.extend(over.into_iter().take(excess).cloned());
    }
}

/// Updates the active Jobs: finished ones are removed.
fn update_active(observed: &Observed, plan: &mut Plan) {
    let active = plan.status.active.take().unwrap_or_default();
    let is_active = |job: &Job| active.iter().any(|reference| reference.uid == job.metadata.uid);
    let mut over: Vec<&str> = observed.gone.iter().map(String::as_str).collect();
    let mut last = plan.status.last_successful_time.clone();
    for job in observed.jobs {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let Some(end) = finished_condition(job) else {
            if !is_active(job) {
                let message = format!("Saw a job that the controller did not create or forgot: {name}");
                plan.warning("UnexpectedJob", message);
            }
            continue;
        };
        if is_active(job) {
            over.extend(job.metadata.uid.as_deref());
            plan.event("SawCompletedJob", format!("Saw completed job: {name}, condition: {}", end.type_));
        }
        let done = job.status.as_ref().and_then(|status| status.completion_time.clone());
        if end.type_ == "Complete" && done.is_some() {
            last = last.max(done);
        }
    }
    plan.status.last_successful_time = last;
    for reference in &active {
        if observed.gone.contains(&reference.uid.clone().unwrap_or_default()) {
            let name = reference.name.as_deref().unwrap_or_default();
            plan.event("MissingJob", format!("Active job went missing: {name}"));
        }
    }
    let stays = |reference: &ObjectReference| !over.contains(&reference.uid.as_deref().unwrap_or_default());
    plan.status.active = Some(active.into_iter().filter(stays).collect());
}

/// Creates the Job that is due.
fn start(observed: &Observed, spec: &CronJobSpec, owner: &OwnerReference, plan: &mut Plan) {
    let zone = match &spec.time_zone {
        None => TimeZone::UTC,
        Some(name) => match time_zone(name) {
            Some(zone) => zone,
            None => {
                let message = format!("invalid timeZone: {name:?}: unknown time zone {name}");
                return plan.warning("UnknownTimeZone", message);
            }
        },
    };
    if spec.suspend == Some(true) {
        return;
    }
    let schedule = match Schedule::parse(&spec.schedule, &zone) {
        Ok(schedule) => schedule,
        Err(why) => {
            let message = format!("unparseable schedule: {:?} : {why}", spec.schedule);
            return plan.warning("UnparseableSchedule", message);
        }
    };
    let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    let since = since(observed.cron);
    let earliest = deadline.and_then(|deadline| observed.now.checked_sub(deadline).ok());
    let recent = match last_due(&schedule, since.max(earliest.unwrap_or(since)), observed.now) {
        Ok(recent) => recent,
        Err(why) => {
            return plan.warning("InvalidSchedule", format!("invalid schedule: {} : {why}", spec.schedule));
        }
    };
    let after = last_due(&schedule, since, observed.now).ok().flatten().map_or(since, |(due, _)| due);
    plan.next =
        schedule.next(after).filter(|next| *next > observed.now).or_else(|| schedule.next(observed.now));
    let Some((due, missed)) = recent else { return };
    if missed > MANY_MISSED {
        let message =
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        plan.warning("TooManyMissedTimes", message);
    }
    if deadline.and_then(|deadline| due.checked_add(deadline).ok()).is_some_and(|last| last < observed.now) {
        let when = due.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S %z").to_string();
        return plan.warning("MissSchedule", format!("Missed scheduled time to start a job: {when}"));
    }
    let job = job(observed.cron, spec, owner, due, &zone);
    let active = plan.status.active.iter().flatten();
    let begun = active.into_iter().any(|reference| reference.name == job.metadata.name);
    if begun || plan.status.last_schedule_time.as_ref().is_some_and(|last| last.0 == due) {
        return;
    }
    let any_active = plan.status.active.as_ref().is_some_and(|active| !active.is_empty());
    match spec.concurrency_policy.as_deref() {
        Some("Forbid") if any_active => {
            let message =
                "Not starting job because prior execution is running and concurrency policy is Forbid";
            return plan.event("JobAlreadyActive", message);
        }
        Some("Replace") => {
            let active = plan.status.active.take().unwrap_or_default();
            let of = |job: &Arc<Job>| active.iter().any(|reference| reference.uid == job.metadata.uid);
            plan.replace = observed.jobs.iter().filter(|job| of(job)).cloned().collect();
        }
        _ => {}
    }
    plan.create = Some((Box::new(job), due));
}

/// The time from which missed schedules count: the last scheduled time, or the creation of the CronJob.
fn since(cron: &CronJob) -> Timestamp {
    let last = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
    let made = cron.metadata.creation_timestamp.as_ref();
    last.or(made).map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

/// The most recent scheduled time, and about how many there were since `since`.
fn last_due(
    schedule: &Schedule,
    since: Timestamp,
    now: Timestamp,
) -> Result<Option<(Timestamp, i64)>, &'static str> {
    let Some(first) = schedule.next(since).filter(|first| *first <= now) else { return Ok(None) };
    let Some(second) = schedule.next(first) else { return Ok(Some((first, 1))) };
    if now < second {
        return Ok(Some((first, 0)));
    }
    let apart = second.duration_since(first).as_secs();
    if apart < 1 {
        return Err("time difference between two schedules is less than 1 second");
    }
    let times = now.duration_since(first).as_secs() / apart + 1;
    // Not every missed time is computed: start shortly before the last, assuming that all are as far apart as the first two.
    let near = SignedDuration::from_secs((times - 2) * apart);
    let mut recent = None;
    let mut next = schedule.next(first.checked_add(near).unwrap_or(first));
    while let Some(due) = next.filter(|due| *due <= now) {
        recent = Some((due, times));
        next = schedule.next(due);
    }
    Ok(recent)
}

/// The Job for a scheduled time, named after it, so that it is never created twice.
fn job(cron: &CronJob, spec: &CronJobSpec, owner: &OwnerReference, due: Timestamp, zone: &TimeZone) -> Job {
    let name = cron.metadata.name.as_deref().unwrap_or_default();
    let written = spec.job_template.metadata.clone().unwrap_or_default();
    let mut annotations = written.annotations.unwrap_or_default();
    let there = due.to_zoned(zone.clone());
    let form = if there.offset().is_zero() { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    annotations.insert(SCHEDULED_TIMESTAMP.to_owned(), there.strftime(form).to_string());
    let metadata = ObjectMeta {
        name: Some(format!("{name}-{}", due.as_second().div_euclid(60))),
        namespace: cron.metadata.namespace.clone(),
        labels: written.labels,
        annotations: Some(annotations),
        owner_references: Some(vec![owner.clone()]),
        ..ObjectMeta::default()
    };
    Job { metadata, spec: spec.job_template.spec.clone(), status: None }
}

/// The status after a Job was created.
pub(super) fn started(mut status: CronJobStatus, job: &Job, due: Timestamp) -> CronJobStatus {
    let active = status.active.get_or_insert_default();
    if !active.iter().any(|there| there.uid == job.metadata.uid) {
        active.push(reference(job));
    }
    status.last_schedule_time = Some(Time(due));
    status
}
