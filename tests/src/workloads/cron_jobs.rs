//! CronJobs: when they create Jobs, and which they keep.

use super::manual_pods::{ended, spec};
use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a cron job creates a job on schedule, and tracks it", begins)
        .test("concurrencyPolicy: Forbid skips a second job, Replace replaces the first", concurrency)
        .test("a suspended cron job creates no jobs", suspended)
        .test("a cron job keeps its history limits", history)
        .test("a cron job uses its time zone", in_a_zone)
        .test("a cron job with many missed schedules records TooManyMissedTimes, and creates one job", missed)
}

/// A cron job called `cron` with this in its spec.
fn cron(fields: &Value) -> CronJob {
    let mut pod = spec();
    pod["restartPolicy"] = "Never".into();
    let job = json!({ "backoffLimit": 0, "template": { "spec": pod } });
    let mut spec = json!({
        "schedule": "* * * * *",
        "jobTemplate": { "metadata": { "labels": { "made": "by-cron" } }, "spec": job },
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    object("cron", json!({ "spec": spec }))
}

/// What is due each second: the reference need not be waited for.
fn soon(fields: &Value) -> CronJob {
    let mut fields = fields.clone();
    fields["schedule"] = "@every 1s".into();
    cron(&fields)
}

async fn jobs(cluster: &TestCluster, count: usize) -> anyhow::Result<Vec<Job>> {
    let what = format!("there are {count} jobs");
    let mut jobs = cluster.until(&what, || cluster.list::<Job>(), |jobs| jobs.len() == count).await?;
    jobs.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    Ok(jobs)
}

/// The pod of a job ends with this code, and the job with it.
async fn end(cluster: &TestCluster, job: &str, code: i32) -> anyhow::Result<()> {
    let look = || async {
        let pods = cluster.list::<Pod>().await?.into_iter();
        let of = |pod: &Pod| pod.metadata.labels.as_ref().is_some_and(|labels| labels["job-name"] == job);
        Ok(pods.filter(of).collect::<Vec<_>>())
    };
    let pods = cluster.until("the job has a pod", look, |pods| !pods.is_empty()).await?;
    let name = pods[0].metadata.name.clone().context("a pod has a name")?;
    ended(cluster, &name, code).await?;
    let condition = if code == 0 { "Complete" } else { "Failed" };
    cluster.eventually::<Job>(job).has_condition(condition, true).await?;
    Ok(())
}

async fn begins(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let made = cluster.create(soon(&json!({ "concurrencyPolicy": "Forbid" }))).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let job = jobs(&cluster, 1).await?.remove(0);
    let name = job.metadata.name.clone().context("a job has a name")?;
    let minutes = name.strip_prefix("cron-").and_then(|minutes| minutes.parse::<i64>().ok());
    let now = cluster.clock().now().as_second() / 60;
    ensure!(minutes.is_some_and(|minutes| (now - 1..=now).contains(&minutes)), "{name}");
    let labels = job.metadata.labels.clone().unwrap_or_default();
    ensure!(labels.get("made").is_some_and(|made| made == "by-cron"), "{labels:?}");
    let annotations = job.metadata.annotations.clone().unwrap_or_default();
    ensure!(annotations.contains_key("batch.kubernetes.io/cronjob-scheduled-timestamp"), "{annotations:?}");
    let owner = job.metadata.owner_references.unwrap_or_default().remove(0);
    ensure!(
        owner.kind == "CronJob" && Some(owner.uid) == made.metadata.uid && owner.controller == Some(true)
    );

    let active = json!({ "kind": "Job", "name": name, "uid": job.metadata.uid, "apiVersion": "batch/v1" });
    cluster.eventually::<CronJob>("cron").has(json!({ "status": { "active": [active] } })).await?;
    let told = cluster.eventually::<CronJob>("cron").has_event("SuccessfulCreate").await?;
    ensure!(told == format!("Created job {name}"), "{told}");
    // No other, while this one runs.
    cluster.patch::<CronJob>("cron", json!({ "spec": { "suspend": true } })).await?;
    end(&cluster, &name, 0).await?;
    let over = |cron: &CronJob| {
        cron.status.as_ref().is_some_and(|status| {
            status.active.is_none()
                && status.last_successful_time.is_some()
                && status.last_schedule_time.is_some()
        })
    };
    cluster.eventually::<CronJob>("cron").is("saw the end", over).await?;
    let told = cluster.eventually::<CronJob>("cron").has_event("SawCompletedJob").await?;
    ensure!(told == format!("Saw completed job: {name}, condition: Complete"), "{told}");
    Ok(())
}

async fn concurrency(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(soon(&json!({ "concurrencyPolicy": "Forbid" }))).await?;
    cluster.advance(Duration::from_secs(1)).await;
    jobs(&cluster, 1).await?;
    if cluster.embedded().is_none() {
        // A job's name has its minute: what comes after takes the reference minutes.
        return Ok(());
    }
    cluster.advance(Duration::from_secs(3600)).await;
    let told = cluster.eventually::<CronJob>("cron").has_event("JobAlreadyActive").await?;
    ensure!(told.contains("concurrency policy is Forbid"), "{told}");
    let first = jobs(&cluster, 1).await?.remove(0);
    cluster
        .patch::<CronJob>(
            "cron",
            json!({ "spec": { "concurrencyPolicy": "Replace", "schedule": "0 * * * *" } }),
        )
        .await?;
    cluster.advance(Duration::from_secs(3600)).await;
    let second = jobs(&cluster, 1).await?.remove(0);
    ensure!(first.metadata.uid != second.metadata.uid, "another took its place");
    let allow = json!({ "spec": { "concurrencyPolicy": "Allow" } });
    cluster.patch::<CronJob>("cron", allow).await?;
    cluster.advance(Duration::from_secs(3600)).await;
    jobs(&cluster, 2).await?;
    let both = |cron: &CronJob| {
        let active = cron.status.as_ref().and_then(|status| status.active.as_ref());
        active.is_some_and(|active| active.len() == 2)
    };
    cluster.eventually::<CronJob>("cron").is("has two active jobs", both).await?;
    Ok(())
}

async fn suspended(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(soon(&json!({ "suspend": true, "concurrencyPolicy": "Forbid" }))).await?;
    cluster.advance(Duration::from_secs(2)).await;
    ensure!(cluster.list::<Job>().await?.is_empty(), "nothing is begun");
    cluster.patch::<CronJob>("cron", json!({ "spec": { "suspend": false } })).await?;
    jobs(&cluster, 1).await?;
    Ok(())
}

async fn history(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    if cluster.embedded().is_none() {
        // A job's name has its minute: several take the reference minutes.
        return Ok(());
    }
    let limits =
        json!({ "successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1, "schedule": "0 * * * *" });
    cluster.create(cron(&limits)).await?;
    let mut names = Vec::new();
    for round in 0..6 {
        cluster.advance(Duration::from_secs(3600)).await;
        let all = cluster.list::<Job>().await?.into_iter().filter_map(|job| job.metadata.name);
        let new = all.max().context("there is a job")?;
        ensure!(!names.contains(&new), "an hour later it is another: {new}");
        end(&cluster, &new, round % 2).await?;
        names.push(new);
    }
    let kept = jobs(&cluster, 3).await?.into_iter().filter_map(|job| job.metadata.name);
    let kept: Vec<String> = kept.collect();
    ensure!(kept == [&*names[2], &*names[4], &*names[5]], "{kept:?} of {names:?}");
    cluster.eventually::<CronJob>("cron").has_event("SuccessfulDelete").await?;
    Ok(())
}

async fn in_a_zone(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    if cluster.embedded().is_none() {
        // Nobody waits for nine o'clock.
        return Ok(());
    }
    // It is midnight in Greenwich, and nine in the morning in Tokyo.
    cluster.create(cron(&json!({ "schedule": "30 9 * * *", "timeZone": "Asia/Tokyo" }))).await?;
    cluster.advance(Duration::from_secs(29 * 60)).await;
    ensure!(cluster.list::<Job>().await?.is_empty(), "it is not due");
    cluster.advance(Duration::from_secs(60)).await;
    let job = jobs(&cluster, 1).await?.remove(0);
    let due =
        &job.metadata.annotations.unwrap_or_default()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    ensure!(due == "2026-01-01T09:30:00+09:00", "{due}");
    let job = cluster
        .eventually::<CronJob>("cron")
        .has(json!({ "status": { "lastScheduleTime": "2026-01-01T00:30:00Z" } }));
    job.await?;
    Ok(())
}

async fn missed(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let long_ago = cluster.create(cron(&json!({ "suspend": true }))).await?;
    let now = long_ago.metadata.creation_timestamp.context("it was made")?.0;
    let then = now.checked_sub(jiff::SignedDuration::from_hours(3))?;
    let then = then.strftime("%Y-%m-%dT%H:%M:00Z").to_string();
    cluster.patch_status::<CronJob>("cron", json!({ "lastScheduleTime": then })).await?;
    let go = json!({ "spec": { "suspend": false, "concurrencyPolicy": "Forbid" } });
    cluster.patch::<CronJob>("cron", go).await?;
    jobs(&cluster, 1).await?;
    let told = cluster.eventually::<CronJob>("cron").has_event("TooManyMissedTimes").await?;
    ensure!(told.starts_with("too many missed start times."), "{told}");
    Ok(())
}
