//! One backup: its Job, and what came of it.

use crate::api::v1alpha1::{
    BackupPhase, SampleDB, SampleDBArchive, SampleDBBackup, SampleDBBackupStatus, SampleDBInstance,
};
use crate::archive::{Info, Location};
use crate::children::backup as children;
use crate::data_version::major;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use std::sync::Arc;
use windlass::health::{Finished, finished};
use windlass::{Observed, Plan, Reasoned, Refusal, Until};

/// The condition of a backup.
pub const CONDITION: &str = "Completed";

#[derive(Debug)]
enum Why {
    TellsItsJob,
    TakesBackup,
    NoArchive { database: String },
    ArchiveNotReady { archive: String },
    NoPrimary { database: String },
    DatabaseReplaced { database: String },
    Running,
    BackupCompleted { size: i64 },
    BackupFailed { message: String },
    ResultLost,
    Forgets,
    Forgetting { archive: String },
    NotForgotten { job: String, message: String },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::TellsItsJob => "how the primary and the archive are reached".to_owned(),
            Self::TakesBackup => "a Job has the archive take the backup".to_owned(),
            Self::NoArchive { database } => {
                format!("SampleDB {database} has no archive: set spec.backup there")
            }
            Self::ArchiveNotReady { archive } => format!("SampleDBArchive {archive} is not ready"),
            Self::NoPrimary { database } => format!("SampleDB {database} has no primary now"),
            Self::DatabaseReplaced { database } => {
                format!("SampleDB {database} was replaced by another of the same name")
            }
            Self::Running => "the backup is being taken".to_owned(),
            Self::BackupCompleted { size } => format!("the backup is verified, {size} bytes"),
            Self::BackupFailed { message } => message.clone(),
            Self::Forgets => "a Job has the archive delete the backup's files".to_owned(),
            Self::Forgetting { archive } => format!("SampleDBArchive {archive} deletes the backup's files"),
            Self::NotForgotten { job, message } => {
                format!(
                    "the backup's files could not be deleted; delete the Job {job} to try again: {message}"
                )
            }
            Self::ResultLost => "the Job's pod is gone with what it said: it is run again".to_owned(),
        }
    }
}

/// What a backup needs, given what is there. `agent_image` brings the program of its Job.
///
/// # Errors
/// When its SampleDB is not there or has no archive, or it asks for what its controller does not watch.
pub fn decide(backup: &SampleDBBackup, observed: &Observed, agent_image: &str) -> Result<Plan, Refusal> {
    let mut status =
        SampleDBBackupStatus { conditions: Vec::new(), ..backup.status.clone().unwrap_or_default() };
    match status.phase {
        // It is taken once.
        BackupPhase::Completed => return Ok(Plan::new().status(status)),
        BackupPhase::Failed => return Ok(failed(status)),
        BackupPhase::Pending | BackupPhase::Running => {}
    }
    let database = observed.referenced::<SampleDB>(&backup.spec.database)?;
    let (name, archive) = (database.name_any(), database.archive_name());
    if status.archive.as_ref().is_some_and(|begun| *begun != archive) {
        return Ok(fail(status, observed, Why::DatabaseReplaced { database: name }.message()));
    }
    let Some(job) = observed.get::<Job>(&children::name(backup))? else {
        if database.spec.backup.is_none() {
            return Err(Refusal::new(Why::NoArchive { database: name }));
        }
        let is_ready = observed.get::<SampleDBArchive>(&archive)?;
        if !is_ready.and_then(|archive| archive.status.clone()).is_some_and(|status| status.ready) {
            return Ok(waiting(status, Why::ArchiveNotReady { archive }));
        }
        if database.status.as_ref().is_none_or(|status| status.primary.is_none()) {
            return Ok(waiting(status, Why::NoPrimary { database: name }));
        }
        return begin(backup, &database, observed, agent_image, status);
    };
    describe(&mut status, backup, &database, &job);
    let pods = observed.list::<Pod>()?;
    match finished(&job) {
        None => Ok(waiting(status, Why::Running)),
        Some(Finished::Complete) => {
            let said = ends(&pods).filter(|end| end.exit_code == 0).filter_map(|end| end.message);
            match said.last().and_then(|text| serde_json::from_str::<Info>(&text).ok()) {
                Some(info) => Ok(complete(status, observed, &info)),
                // The archive has it: it says so again.
                None => Ok(waiting(status, Why::Running).delete::<Job>(job.name_any(), Why::ResultLost)),
            }
        }
        Some(Finished::Failed { reason, message }) => {
            let said = ends(&pods).filter(|end| end.exit_code != 0).filter_map(|end| end.message);
            let why = said.last().filter(|said| !said.is_empty());
            Ok(fail(status, observed, why.unwrap_or_else(|| format!("{reason}: {message}"))))
        }
    }
}

/// What is to be done before a backup that is being deleted may go: its files are deleted. Where its archive is gone, they are.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn forget(backup: &SampleDBBackup, observed: &Observed, agent_image: &str) -> Result<Plan, Refusal> {
    let status = backup.status.clone().unwrap_or_default();
    let (Some(archive), Some(location)) = (status.archive, status.location) else { return Ok(Plan::new()) };
    let there = observed.get::<SampleDBArchive>(&archive)?;
    if there.is_none_or(|archive| archive.metadata.deletion_timestamp.is_some()) {
        return Ok(Plan::new());
    }
    match observed.get::<Job>(&children::forget_name(backup))?.and_then(|job| finished(&job)) {
        Some(Finished::Complete) => Ok(Plan::new()),
        Some(Finished::Failed { message, .. }) => {
            Ok(Plan::waiting(Why::NotForgotten { job: children::forget_name(backup), message }))
        }
        None => Ok(Plan::waiting(Why::Forgetting { archive: archive.clone() })
            .apply(children::forget(backup, &archive, &location, agent_image), Why::Forgets)),
    }
}

fn begin(
    backup: &SampleDBBackup,
    database: &SampleDB,
    observed: &Observed,
    agent_image: &str,
    status: SampleDBBackupStatus,
) -> Result<Plan, Refusal> {
    let at = location(backup, database);
    let tls = observed.list::<SampleDBInstance>()?.iter().all(|instance| instance.spec.tls);
    Ok(waiting(status, Why::Running)
        .apply(children::connection(backup, database, &at, tls), Why::TellsItsJob)
        .apply(children::job(backup, database, agent_image), Why::TakesBackup))
}

fn location(backup: &SampleDBBackup, database: &SampleDB) -> Location {
    let uid = |object: Option<String>| object.unwrap_or_default();
    Location::of(&uid(database.uid()), &backup.name_any(), &uid(backup.uid()))
}

/// What is known of a backup whose Job is there: where it will be, and of what.
fn describe(status: &mut SampleDBBackupStatus, backup: &SampleDBBackup, database: &SampleDB, job: &Job) {
    status.phase = BackupPhase::Running;
    status.archive = Some(database.archive_name());
    status.location = Some(location(backup, database).to_string());
    status.started_at = status.started_at.take().or_else(|| job.creation_timestamp());
    let version = database.status.as_ref().and_then(|status| status.version.clone());
    status.version = version.or_else(|| status.version.take());
    status.database = Some(database.spec.database.clone());
    status.owner = Some(database.spec.owner.clone());
}

fn waiting(status: SampleDBBackupStatus, why: Why) -> Plan {
    Plan::new().status(status).wait(why, Until::Change)
}

fn complete(mut status: SampleDBBackupStatus, observed: &Observed, info: &Info) -> Plan {
    status.phase = BackupPhase::Completed;
    status.completed_at = Some(Time(observed.now()));
    status.size_bytes = Some(info.size_bytes);
    status.duration_seconds = Some(info.duration_seconds);
    status.begin_lsn = Some(info.wal.begin);
    status.end_lsn = Some(info.wal.end);
    status.timeline = Some(info.wal.timeline);
    status.system_identifier = Some(info.system_identifier.clone());
    // The database may have been upgraded meanwhile: what counts is what the data says.
    let told = status.version.as_deref().map(major);
    if let Some(version) = info.version.as_deref().filter(|version| told != Some(*version)) {
        status.version = Some(version.to_owned());
    }
    Plan::new().status(status).event(Why::BackupCompleted { size: info.size_bytes })
}

fn fail(mut status: SampleDBBackupStatus, observed: &Observed, message: String) -> Plan {
    status.phase = BackupPhase::Failed;
    status.completed_at = Some(Time(observed.now()));
    status.message = Some(message.clone());
    failed(status).warning(Why::BackupFailed { message })
}

fn failed(status: SampleDBBackupStatus) -> Plan {
    let message = status.message.clone().unwrap_or_default();
    Plan::new().status(status).wait(Why::BackupFailed { message }, Until::Change)
}

/// How the containers of the Job's pods have ended, the last one last.
fn ends(pods: &[Arc<Pod>]) -> impl Iterator<Item = ContainerStateTerminated> {
    let mut ends: Vec<ContainerStateTerminated> = pods
        .iter()
        .filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref())
        .flatten()
        .filter_map(|container| container.state.as_ref()?.terminated.clone())
        .collect();
    ends.sort_by_key(|end| end.finished_at.as_ref().map(|at| at.0));
    ends.into_iter()
}
