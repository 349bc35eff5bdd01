//! A restore: the SampleDB that it makes, once, and whether that is ready.

use crate::api::v1alpha1::{
    BackupPhase, RestorePhase, SampleDB, SampleDBBackup, SampleDBRestore, SampleDBRestoreStatus,
};
use crate::restored::{self, Changes};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use windlass::{Observed, Plan, Reasoned, Refusal, Until};

/// The condition of a restore.
pub const CONDITION: &str = "Completed";
/// The annotation of a SampleDB that a restore made: its UID.
const RESTORED_BY: &str = "db.windlass.dev/restored-by";

#[derive(Debug)]
enum Why {
    MakesDatabase { backup: String },
    BackupMissing { backup: String },
    BackupNotCompleted { backup: String },
    DatabaseNotReady { database: String, what: String },
    RestoreFailed { message: String },
    RestoreCompleted { database: String },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::MakesDatabase { backup } => format!("it is made of SampleDBBackup {backup}"),
            Self::BackupMissing { backup } => format!("SampleDBBackup {backup} is not there"),
            Self::BackupNotCompleted { backup } => format!("SampleDBBackup {backup} is not completed yet"),
            Self::DatabaseNotReady { database, what } => format!("SampleDB {database}: {what}"),
            Self::RestoreFailed { message } => message.clone(),
            Self::RestoreCompleted { database } => format!("SampleDB {database} is ready"),
        }
    }
}

/// What a restore needs, given what is there. It makes its SampleDB once: what people change about it, or delete, stays so.
///
/// # Errors
/// When its backup is not there, or it asks for what its controller does not watch.
pub fn decide(restore: &SampleDBRestore, observed: &Observed) -> Result<Plan, Refusal> {
    let status =
        SampleDBRestoreStatus { conditions: Vec::new(), ..restore.status.clone().unwrap_or_default() };
    match status.phase {
        RestorePhase::Completed => return Ok(Plan::new().status(status)),
        RestorePhase::Failed => return Ok(failed(status)),
        RestorePhase::Pending | RestorePhase::Running => {}
    }
    let (name, backup) = (restore.spec.database.clone(), restore.spec.backup.clone());
    match observed.get::<SampleDB>(&name)? {
        Some(there) if is_its_own(restore, &there) => Ok(follow(status, observed, &there)),
        Some(_) => {
            Ok(fail(status, observed, format!("SampleDB {name} is there already: a restore makes a new one")))
        }
        None if status.phase == RestorePhase::Running => {
            Ok(fail(status, observed, format!("SampleDB {name} was deleted before it was ready")))
        }
        None => begin(restore, observed, status, &name, backup),
    }
}

fn is_its_own(restore: &SampleDBRestore, database: &SampleDB) -> bool {
    let uid = restore.metadata.uid.as_ref();
    uid.is_some() && database.annotations().get(RESTORED_BY) == uid
}

fn begin(
    restore: &SampleDBRestore,
    observed: &Observed,
    status: SampleDBRestoreStatus,
    name: &str,
    backup: String,
) -> Result<Plan, Refusal> {
    let Some(there) = observed.get::<SampleDBBackup>(&backup)? else {
        return Err(Refusal::new(Why::BackupMissing { backup }));
    };
    if matches!(there.phase(), BackupPhase::Pending | BackupPhase::Running) {
        return Ok(Plan::new().status(status).wait(Why::BackupNotCompleted { backup }, Until::Change));
    }
    let original = observed.get::<SampleDB>(&there.spec.database)?;
    let changes = Changes { instances: restore.spec.instances, storage: restore.spec.storage.clone() };
    match restored::spec(&there, original.as_deref(), &changes) {
        Ok(spec) => {
            let mut database = SampleDB::new(name, spec);
            let uid = restore.metadata.uid.clone().unwrap_or_default();
            database.annotations_mut().insert(RESTORED_BY.to_owned(), uid);
            let what = "it is made".to_owned();
            let waits = Why::DatabaseNotReady { database: name.to_owned(), what };
            Ok(Plan::new()
                .apply(database, Why::MakesDatabase { backup })
                .status(status)
                .wait(waits, Until::Change))
        }
        Err(message) => Ok(fail(status, observed, message)),
    }
}

fn follow(mut status: SampleDBRestoreStatus, observed: &Observed, database: &SampleDB) -> Plan {
    let name = database.name_any();
    let conditions = database.status.iter().flat_map(|status| &status.conditions);
    let ready = conditions.into_iter().find(|one| one.type_ == "Ready");
    if ready
        .is_some_and(|one| one.status == "True" && one.observed_generation == database.metadata.generation)
    {
        status.phase = RestorePhase::Completed;
        status.completed_at = Some(Time(observed.now()));
        return Plan::new().status(status).event(Why::RestoreCompleted { database: name });
    }
    status.phase = RestorePhase::Running;
    let what = ready.map_or_else(|| "it is made".to_owned(), |one| one.message.clone());
    Plan::new().status(status).wait(Why::DatabaseNotReady { database: name, what }, Until::Change)
}

fn fail(mut status: SampleDBRestoreStatus, observed: &Observed, message: String) -> Plan {
    status.phase = RestorePhase::Failed;
    status.completed_at = Some(Time(observed.now()));
    status.message = Some(message.clone());
    failed(status).warning(Why::RestoreFailed { message })
}

fn failed(status: SampleDBRestoreStatus) -> Plan {
    let message = status.message.clone().unwrap_or_default();
    Plan::new().status(status).wait(Why::RestoreFailed { message }, Until::Change)
}
