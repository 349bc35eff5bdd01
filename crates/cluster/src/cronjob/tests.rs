//! What is decided for a CronJob: tests without a cluster.

use super::decide::{Observed, Plan, decide, reference, started};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use serde_json::{Value, json};
use std::sync::Arc;

fn at(text: &str) -> Timestamp {
    format!("2026-01-01T{text}Z").parse().unwrap()
}

fn cron(spec: Value) -> CronJob {
    let mut whole =
        json!({ "schedule": "0 * * * *", "jobTemplate": { "metadata": { "labels": { "a": "b" } } } });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let metadata = json!({ "name": "hourly", "uid": "cron", "creationTimestamp": "2026-01-01T00:10:00Z" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": whole })).unwrap()
}

fn plan(cron: &CronJob, jobs: &[Arc<Job>], now: &str) -> Plan {
    let observed = Observed { cron, jobs, gone: &[], now: at(now) };
    decide(&observed, &OwnerReference::default())
}

fn created(plan: &Plan) -> Option<&str> {
    plan.create.as_ref().and_then(|(job, _)| job.metadata.name.as_deref())
}

fn reasons(plan: &Plan) -> Vec<&str> {
    plan.events.iter().map(|(_, reason, _)| *reason).collect()
}

/// Its Job of a time, active, in the state that a condition of this type tells.
fn with_job(cron: &mut CronJob, due: &str, condition: Option<&str>) -> Arc<Job> {
    let plan = plan(cron, &[], due);
    let (job, when) = plan.create.unwrap();
    let mut job = *job;
    job.metadata.uid = Some(format!("uid-{due}"));
    let conditions: Vec<Value> = condition.iter().map(|of| json!({ "type": of, "status": "True" })).collect();
    let status = json!({ "startTime": at(due).to_string(), "completionTime": at(due).to_string(), "conditions": conditions });
    job.status = Some(serde_json::from_value(status).unwrap());
    cron.status = Some(started(plan.status, &job, when));
    Arc::new(job)
}

#[test]
fn nothing_is_begun_before_it_is_due() {
    let cron = cron(json!({}));
    let early = plan(&cron, &[], "00:59:59");
    assert_eq!((created(&early), early.next), (None, Some(at("01:00:00"))));
    let due = plan(&cron, &[], "01:00:00");
    assert_eq!((created(&due), due.next), (Some("hourly-29453820"), Some(at("02:00:00"))));
    let (job, _) = due.create.unwrap();
    let annotation = &job.metadata.annotations.unwrap()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(annotation, "2026-01-01T01:00:00Z");
    assert_eq!(job.metadata.labels.unwrap()["a"], "b");
}

#[test]
fn a_job_is_begun_once_and_followed_to_its_end() {
    let mut cron = cron(json!({}));
    let job = with_job(&mut cron, "01:00:00", None);
    let again = plan(&cron, std::slice::from_ref(&job), "01:00:30");
    assert_eq!((created(&again), &again.status), (None, cron.status.as_ref().unwrap()));
    let done = with_job(&mut self::cron(json!({})), "01:00:00", Some("Complete"));
    let over = plan(&cron, &[done], "01:10:00");
    assert_eq!(reasons(&over), ["SawCompletedJob"]);
    assert_eq!(over.status.active, None);
    assert_eq!(over.status.last_successful_time, Some(Time(at("01:00:00"))));
}

#[test]
fn concurrency_is_allowed_forbidden_or_replaced() {
    for (policy, begins, replaces, event) in [
        ("Allow", true, 0, vec![]),
        ("Forbid", false, 0, vec!["JobAlreadyActive"]),
        ("Replace", true, 1, vec![]),
    ] {
        let mut cron = cron(json!({ "concurrencyPolicy": policy }));
        let job = with_job(&mut cron, "01:00:00", None);
        let next = plan(&cron, &[job], "02:00:00");
        assert_eq!(
            (created(&next).is_some(), next.replace.len(), reasons(&next)),
            (begins, replaces, event),
            "{policy}"
        );
    }
}

#[test]
fn what_was_missed_is_begun_late_unless_it_is_too_late() {
    let late = plan(&cron(json!({})), &[], "05:30:00");
    assert_eq!(created(&late), Some("hourly-29454060"), "the last of those that were missed");
    let deadline = |seconds: i64| cron(json!({ "startingDeadlineSeconds": seconds }));
    assert_eq!(created(&plan(&deadline(3000), &[], "05:30:00")), Some("hourly-29454060"));
    assert_eq!(created(&plan(&deadline(600), &[], "05:30:00")), None);
    let many = plan(&cron(json!({ "schedule": "* * * * *" })), &[], "05:30:00");
    assert_eq!((created(&many), reasons(&many)), (Some("hourly-29454090"), vec!["TooManyMissedTimes"]));
}

#[test]
fn a_suspended_or_senseless_one_begins_nothing() {
    let suspended = plan(&cron(json!({ "suspend": true })), &[], "05:00:00");
    assert_eq!((created(&suspended), suspended.next), (None, None));
    let nowhere = plan(&cron(json!({ "timeZone": "Nowhere/Land" })), &[], "05:00:00");
    assert_eq!((created(&nowhere), reasons(&nowhere)), (None, vec!["UnknownTimeZone"]));
    let senseless = plan(&cron(json!({ "schedule": "x" })), &[], "05:00:00");
    assert_eq!((created(&senseless), reasons(&senseless)), (None, vec!["UnparseableSchedule"]));
}

#[test]
fn of_those_that_ended_only_so_many_are_kept() {
    let limits = json!({ "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0 });
    let mut cron = cron(limits);
    let jobs = [
        with_job(&mut cron, "01:00:00", Some("Complete")),
        with_job(&mut cron, "02:00:00", Some("Failed")),
        with_job(&mut cron, "03:00:00", Some("Complete")),
        with_job(&mut cron, "04:00:00", None),
    ];
    let expired = plan(&cron, &jobs, "04:10:00").expire;
    let uids: Vec<_> = expired.iter().filter_map(|job| job.metadata.uid.as_deref()).collect();
    assert_eq!(uids, ["uid-01:00:00", "uid-02:00:00"]);
}

#[test]
fn a_job_that_went_missing_is_no_longer_active() {
    let mut cron = cron(json!({ "concurrencyPolicy": "Forbid" }));
    let job = with_job(&mut cron, "01:00:00", None);
    let gone = [job.metadata.uid.clone().unwrap()];
    let observed = Observed { cron: &cron, jobs: &[], gone: &gone, now: at("02:00:00") };
    let plan = decide(&observed, &OwnerReference::default());
    assert_eq!((created(&plan).is_some(), reasons(&plan)), (true, vec!["MissingJob"]));
    assert_eq!(reference(&job).name.as_deref(), Some("hourly-29453820"));
}
