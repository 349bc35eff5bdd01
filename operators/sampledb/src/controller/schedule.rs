//! Backups by schedule, and how many of them are kept.
//!
//! When the last one was due is written on it: nothing is remembered, and a schedule that was missed is made up for once.

use crate::api::v1alpha1::{BackupPhase, Retention, SampleDB, SampleDBBackup};
use crate::children::backup as children;
use kube::ResourceExt;
use std::sync::Arc;
use std::time::Duration;
use windlass::clock::Timestamp;
use windlass::{Observed, Plan, Reasoned, Refusal, Schedule, Until};

/// The condition of this concern.
pub const CONDITION: &str = "BackedUp";
/// How many of those that failed are kept, for people to look at.
const FAILED_KEPT: usize = 3;
/// How many times that were missed are looked through for the last one.
const MISSED: usize = 10_000;

#[derive(Debug)]
enum Why {
    Due,
    NotKept,
    InvalidSchedule { why: String },
    LastBackupFailed { backup: String, message: String },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::Due => "a backup is due".to_owned(),
            Self::NotKept => "newer backups are kept instead".to_owned(),
            Self::InvalidSchedule { why } => format!("spec.backup.schedule: {why}"),
            Self::LastBackupFailed { backup, message } => {
                format!("SampleDBBackup {backup} failed: {message}")
            }
        }
    }
}

/// Which backups are made and deleted now, given those that are there.
///
/// # Errors
/// When the schedule is none, or it asks for what its controller does not watch.
pub fn decide(database: &SampleDB, observed: &Observed) -> Result<Plan, Refusal> {
    let Some(spec) = &database.spec.backup else { return Ok(Plan::new()) };
    let Some(schedule) = &spec.schedule else { return Ok(Plan::new()) };
    let schedule: Schedule = schedule.parse().map_err(|error: windlass::schedule::ParseScheduleError| {
        Refusal::new(Why::InvalidSchedule { why: error.to_string() })
    })?;
    // By when they were due, the last one first.
    let mut backups: Vec<(Timestamp, Arc<SampleDBBackup>)> = observed
        .list::<SampleDBBackup>()?
        .into_iter()
        .filter_map(|backup| Some((children::due(&backup)?, backup)))
        .collect();
    backups.sort_by_key(|(due, _)| std::cmp::Reverse(*due));
    let mut plan = keep(Plan::new(), &backups, spec.retention.as_ref(), observed.now());
    let created = database.creation_timestamp().map(|at| at.0);
    let last = backups.first().map(|(due, _)| *due).or(created).unwrap_or(observed.now());
    let unfinished = backups
        .iter()
        .any(|(_, backup)| matches!(backup.phase(), BackupPhase::Pending | BackupPhase::Running));
    // One that is late is not overtaken by the next: its end is a change.
    if !unfinished && let Some(due) = last_due(&schedule, last, observed.now()) {
        plan = plan.apply(children::scheduled(database, due), Why::Due);
    }
    if let Some(next) = schedule.next(observed.now()) {
        let until = Duration::try_from(next.duration_since(observed.now())).unwrap_or_default();
        plan = plan.requeue_after(until + Duration::from_millis(1));
    }
    let ended = backups
        .iter()
        .map(|(_, backup)| backup)
        .find(|backup| matches!(backup.phase(), BackupPhase::Completed | BackupPhase::Failed));
    Ok(match ended.filter(|backup| backup.phase() == BackupPhase::Failed) {
        Some(backup) => {
            let message =
                backup.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default();
            plan.wait(Why::LastBackupFailed { backup: backup.name_any(), message }, Until::Change)
        }
        None => plan,
    })
}

/// The last time after `last` at which the schedule was due, up to `now`.
fn last_due(schedule: &Schedule, last: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let times = std::iter::successors(schedule.next(last), |due| schedule.next(*due));
    times.take(MISSED).take_while(|due| *due <= now).last()
}

/// Deletes what is not to be kept. The last one that was completed is kept however old it is.
fn keep(
    mut plan: Plan,
    backups: &[(Timestamp, Arc<SampleDBBackup>)],
    retention: Option<&Retention>,
    now: Timestamp,
) -> Plan {
    let of = |phase: BackupPhase| backups.iter().filter(move |(_, backup)| backup.phase() == phase);
    let count = retention.and_then(|retention| retention.count).and_then(|count| usize::try_from(count).ok());
    let days = retention.and_then(|retention| retention.days).unwrap_or(i32::MAX);
    let is_old = |due: Timestamp| now.duration_since(due).as_hours() >= i64::from(days).saturating_mul(24);
    let completed = of(BackupPhase::Completed).enumerate().filter(|(place, (due, _))| {
        *place > 0 && (count.is_some_and(|count| *place >= count) || is_old(*due))
    });
    let failed = of(BackupPhase::Failed).enumerate().filter(|(place, _)| *place >= FAILED_KEPT);
    for (_, (_, backup)) in completed.chain(failed) {
        if backup.metadata.deletion_timestamp.is_none() {
            plan = plan.delete::<SampleDBBackup>(backup.name_any(), Why::NotKept);
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn database(schedule: &str, retention: serde_json::Value) -> SampleDB {
        serde_json::from_value(json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDB",
            "metadata": {"name": "db", "uid": "0123456789", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"version": "15", "storage": {"size": "1Gi"},
                     "backup": {"storage": {"size": "1Gi"}, "schedule": schedule, "retention": retention}},
        }))
        .unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn backup(due: &str, phase: BackupPhase) -> SampleDBBackup {
        let mut backup = children::scheduled(&database("@daily", json!({})), at(due));
        backup.metadata.uid = Some(due.to_owned());
        let status = json!({"phase": phase, "message": "the disk is full"});
        backup.status = Some(serde_json::from_value(status).unwrap());
        backup
    }

    fn decided(database: &SampleDB, now: &str, backups: &[SampleDBBackup]) -> Plan {
        let observed = backups.iter().cloned().fold(Observed::empty(), Observed::with).now_is(at(now));
        let plan = decide(database, &observed).unwrap();
        crate::schedules().check(&plan).unwrap();
        plan
    }

    fn steps(plan: &Plan) -> Vec<String> {
        plan.steps().iter().map(|step| format!("{} {}", step.effect.verb(), step.effect.name())).collect()
    }

    #[test]
    fn a_backup_is_made_when_it_is_due_and_one_that_was_missed_once() {
        let daily = database("0 3 * * *", json!({}));
        let early = decided(&daily, "2026-01-01T02:00:00Z", &[]);
        assert!(steps(&early).is_empty(), "{early}");
        assert_eq!(early.due(at("2026-01-01T02:00:00Z")).unwrap().as_secs(), 3600);
        let due = decided(&daily, "2026-01-04T05:00:00Z", &[]);
        assert_eq!(steps(&due), ["apply db-20260104030000"]);
        let there = [backup("2026-01-04T03:00:00Z", BackupPhase::Completed)];
        assert!(steps(&decided(&daily, "2026-01-04T05:00:00Z", &there)).is_empty());
        // One that is under way is not overtaken.
        let slow = [backup("2026-01-04T03:00:00Z", BackupPhase::Running)];
        assert!(steps(&decided(&daily, "2026-01-05T05:00:00Z", &slow)).is_empty());
    }

    #[test]
    fn as_many_are_kept_as_are_wanted_and_never_none() {
        let backups: Vec<SampleDBBackup> =
            (1..=5).map(|day| backup(&format!("2026-01-0{day}T00:00:00Z"), BackupPhase::Completed)).collect();
        let now = "2026-01-05T12:00:00Z";
        let three = decided(&database("@daily", json!({"count": 3})), now, &backups);
        assert_eq!(steps(&three), ["delete db-20260102000000", "delete db-20260101000000"]);
        let two_days = decided(&database("@daily", json!({"days": 2})), now, &backups);
        assert_eq!(steps(&two_days).len(), 3, "{two_days}");
        let late =
            decided(&database("@yearly", json!({"days": 2, "count": 1})), "2026-06-01T00:00:00Z", &backups);
        assert_eq!(steps(&late).len(), 4, "{late}");
    }

    #[test]
    fn a_backup_that_failed_is_told_and_no_reason_to_delete_another() {
        let backups = [
            backup("2026-01-03T00:00:00Z", BackupPhase::Failed),
            backup("2026-01-02T00:00:00Z", BackupPhase::Completed),
        ];
        let plan = decided(&database("@daily", json!({"count": 1})), "2026-01-03T12:00:00Z", &backups);
        assert!(steps(&plan).is_empty(), "{plan}");
        assert_eq!(
            plan.waits()[0].reason.to_string(),
            "LastBackupFailed: SampleDBBackup db-20260103000000 failed: the disk is full"
        );
        assert!(decide(&database("61 * * * *", json!({})), &Observed::empty()).is_err());
    }
}
