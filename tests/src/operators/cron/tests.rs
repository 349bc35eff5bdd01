//! What cron jobs do: decided purely where that is enough, and once through a cluster whose hours pass at once.

use super::*;
use k8s_openapi::api::batch::v1::JobStatus;
use kube::CustomResourceExt;
use serde_json::json;
use windlass_testing::{Building, TestCluster, object};

fn cron(schedule: &str) -> CronJob {
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "app", "image": "backup"}],
    }}}});
    let cron: CronJob = object("c", json!({"spec": {"schedule": schedule, "jobTemplate": template}}));
    cron.with(|cron| cron.metadata.creation_timestamp = Some(Time(at("08:00"))))
}

fn at(time: &str) -> Timestamp {
    format!("2026-01-01T{time}:00Z").parse().unwrap()
}

fn run(time: &str, end: Option<&str>) -> Job {
    let mut job = job(&cron("@hourly"), at(time));
    let end = end
        .map(|end| object::<Job>("x", json!({"status": {"conditions": [{"type": end, "status": "True"}]}})));
    job.status = Some(JobStatus {
        start_time: Some(Time(at(time))),
        ..end.and_then(|job| job.status).unwrap_or_default()
    });
    job
}

fn observed(now: &str, jobs: impl IntoIterator<Item = Job>) -> Observed {
    jobs.into_iter().fold(Observed::empty().now_is(at(now)), Observed::with)
}

fn name(time: &str) -> String {
    format!("c-{}", at(time).as_second())
}

fn starts(plan: &Plan) -> Vec<String> {
    let jobs = plan.steps().iter().filter(|step| step.reason.name() == "Scheduled");
    jobs.map(|step| step.effect.name().to_owned()).collect()
}

#[test]
fn before_its_time_nothing_runs_and_it_looks_again_when_it_is_due() {
    let plan = decide(&cron("@hourly"), &observed("08:20", [])).unwrap();
    assert!(starts(&plan).is_empty());
    assert_eq!(plan.due(at("08:20")), Some(Duration::from_secs(40 * 60)));
}

#[test]
fn of_the_runs_that_were_missed_the_last_one_is_started() {
    let plan = decide(&cron("@hourly"), &observed("11:30", [])).unwrap();
    assert_eq!(starts(&plan), [name("11:00")]);
    let job = plan.applied::<Job>(&name("11:00")).unwrap();
    assert_eq!(job.annotations()[SCHEDULED_AT], "2026-01-01T11:00:00Z");
    let done = decide(&cron("@hourly"), &observed("11:30", [run("11:00", Some("Complete"))])).unwrap();
    assert!(starts(&done).is_empty(), "it ran already");
}

#[test]
fn what_is_too_late_is_left_out() {
    let hasty = cron("@hourly").set("spec.startingDeadlineSeconds", 60);
    assert!(starts(&decide(&hasty, &observed("11:30", [])).unwrap()).is_empty());
    assert_eq!(starts(&decide(&hasty, &observed("11:00", [])).unwrap()), [name("11:00")]);
}

#[test]
fn runs_that_would_overlap_do_so_or_wait_or_take_the_place() {
    let running = || observed("11:00", [run("10:00", None)]);
    let policy = |policy: &str| cron("@hourly").set("spec.concurrencyPolicy", policy);
    let allowed = decide(&policy("Allow"), &running()).unwrap();
    assert_eq!((starts(&allowed), allowed.deletes::<Job>(&name("10:00"))), (vec![name("11:00")], false));
    let forbidden = decide(&policy("Forbid"), &running()).unwrap();
    assert!(starts(&forbidden).is_empty() && !forbidden.deletes::<Job>(&name("10:00")));
    let replaced = decide(&policy("Replace"), &running()).unwrap();
    assert_eq!((starts(&replaced), replaced.deletes::<Job>(&name("10:00"))), (vec![name("11:00")], true));
}

#[test]
fn history_is_kept_as_long_as_asked_for() {
    let jobs = || ["08:00", "09:00", "10:00"].map(|time| run(time, Some("Complete")));
    let plan = decide(&cron("@hourly").set("spec.successfulJobsHistoryLimit", 1), &observed("10:30", jobs()))
        .unwrap();
    let deleted = ["08:00", "09:00", "10:00"].map(|time| plan.deletes::<Job>(&name(time)));
    assert_eq!(deleted, [true, true, false]);
    let plan =
        decide(&cron("@hourly").set("spec.failedJobsHistoryLimit", 0), &observed("10:30", jobs())).unwrap();
    assert!(!plan.deletes::<Job>(&name("08:00")), "these did not fail");
}

#[test]
fn how_it_stands_is_said() {
    let says = |cron: &CronJob, observed: &Observed| {
        let plan = decide(cron, observed).unwrap();
        plan.stated()
            .iter()
            .map(|stated| format!("{} {:?} {}", stated.of, stated.holds, stated.reason.name()))
            .collect::<Vec<_>>()
    };
    let hourly = cron("@hourly");
    assert_eq!(says(&hourly, &observed("08:30", [])), ["Available Some(true) AllJobsCompleted"]);
    assert_eq!(
        says(&hourly, &observed("09:30", [run("09:00", None)])),
        ["Available Some(true) JobsActive", "Progressing Some(true) JobsActive"]
    );
    assert_eq!(
        says(&hourly, &observed("09:30", [run("09:00", Some("Failed"))])),
        ["Available Some(false) JobsFailed", "Degraded Some(true) JobsFailed"]
    );
    let suspended = hourly.clone().set("spec.suspend", true);
    assert_eq!(says(&suspended, &observed("11:30", [])), ["Available Some(false) Suspended"]);
    assert!(starts(&decide(&suspended, &observed("11:30", [])).unwrap()).is_empty());
    for (bad, now) in [(cron("often"), "08:30"), (cron("* * * * *"), "23:00")] {
        assert!(says(&bad, &observed(now, [])).contains(&"Degraded Some(true) InvalidSchedule".to_owned()));
    }
}

#[tokio::test]
async fn in_a_cluster_six_hours_of_runs_pass_at_once() {
    let cluster = TestCluster::api_only();
    cluster.install([CronJob::crd()]).await.unwrap();
    let operator = cluster.run(controller());
    cluster.create(cron("@hourly").set("spec.successfulJobsHistoryLimit", 2)).await.unwrap();
    cluster.eventually::<CronJob>("c").has_condition("Available", true).await.unwrap();
    for hour in 1..=6 {
        cluster.advance(Duration::from_secs(3600)).await;
        let time = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + Duration::from_secs(hour * 3600);
        let name = format!("c-{}", time.as_second());
        cluster.eventually::<Job>(&name).exists().await.unwrap();
        cluster.eventually::<CronJob>("c").has_condition_because("Progressing", "JobsActive").await.unwrap();
        // As the workload controller would.
        let ended = json!({"startTime": time, "completionTime": time, "succeeded": 1, "conditions": [
            {"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"},
        ]});
        cluster.patch_status::<Job>(&name, ended).await.unwrap();
        cluster
            .eventually::<CronJob>("c")
            .is("runs nothing", |cron| {
                let status = cron.status.clone().unwrap_or_default();
                status.active.is_empty() && status.last_schedule_time == Some(Time(time))
            })
            .await
            .unwrap();
    }
    cluster.until("two jobs are kept", || cluster.list::<Job>(), |jobs| jobs.len() == 2).await.unwrap();
    cluster.eventually::<CronJob>("c").has_event("Scheduled").await.unwrap();
    operator.stop().await.unwrap();
}

/// Neither blank nor comment, up to the tests.
fn lines(source: &str) -> usize {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn the_port_is_as_long_as_it_is_said_to_be() {
    let said = include_str!("../../../../docs/port.md");
    for (row, source) in [
        ("| `mod.rs` |", include_str!("mod.rs")),
        ("| `kind.rs`, with schemas for the embedded types |", include_str!("kind.rs")),
        ("| `tests.rs` |", include_str!("tests.rs")),
    ] {
        assert!(said.contains(&format!("{row} {} |", lines(source))), "{row} {}", lines(source));
    }
}
