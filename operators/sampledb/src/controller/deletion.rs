//! What becomes of a database that is deleted: by its policy a last backup, and then its servers and volumes.
//!
//! Until the backup is verified the database goes on as ever: its servers run, or are started, and fail over.

use super::provisioning;
use crate::api::v1alpha1::{BackupPhase, DeletionPolicy, Role, SampleDB, SampleDBBackup, SampleDBInstance};
use crate::children;
use crate::data_version::{DataVersion, Phase};
use crate::leadership::Leadership;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use std::time::Duration;
use windlass::{Observed, Plan, Reasoned, Refusal, Until};

/// With `"true"`, a database that is being deleted goes without its last backup, and leaves its volumes.
pub const ABANDON: &str = "db.windlass.dev/abandon-snapshot";
/// The condition of the last backup, there while the database is being deleted.
pub const CONDITION: &str = "SnapshotTaken";
/// How long until a last backup that failed is tried again.
const AGAIN: Duration = Duration::from_secs(300);

#[derive(Debug)]
enum Why {
    TakesSnapshot,
    ClosesToClients,
    SnapshotPending { backup: String, what: String },
    SnapshotFailed { backup: String, message: String },
    TriesAgain,
    SnapshotTaken { backup: String },
    RemovesServers,
    RemovesVolume,
    ServersEnd { left: usize },
    VolumesEnd { left: Vec<String> },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::TakesSnapshot => "a last backup is taken before anything is deleted".to_owned(),
            Self::ClosesToClients => {
                "the primary ends the connections of clients, so that the last backup has all that they wrote"
                    .to_owned()
            }
            Self::SnapshotPending { backup, what } => format!("SampleDBBackup {backup}: {what}"),
            Self::SnapshotFailed { backup, message } => {
                format!(
                    "SampleDBBackup {backup} failed and is taken again in a while; annotate the SampleDB with {ABANDON}=true to go \
                     without it and keep the volumes: {message}"
                )
            }
            Self::TriesAgain => "the last backup is taken again".to_owned(),
            Self::SnapshotTaken { backup } => format!("SampleDBBackup {backup} has everything"),
            Self::RemovesServers => "the database is deleted".to_owned(),
            Self::RemovesVolume => "the database is deleted, and its policy does not keep volumes".to_owned(),
            Self::ServersEnd { left } => format!("{left} pods are ending"),
            Self::VolumesEnd { left } => format!("volumes are being deleted: {}", left.join(", ")),
        }
    }
}

/// What is to be done before a database that is being deleted may go, given what is there.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn decide(database: &SampleDB, observed: &Observed, agent_image: &str) -> Result<Plan, Refusal> {
    let abandons = database.annotations().get(ABANDON).is_some_and(|value| value == "true");
    match database.deletion_policy() {
        DeletionPolicy::Delete => remove(database, observed, Plan::new()),
        DeletionPolicy::Snapshot if !abandons && has_data(database, observed)? => {
            snapshot(database, observed, agent_image)
        }
        // Claims of a database that was never made may be an earlier one's.
        DeletionPolicy::Snapshot | DeletionPolicy::Retain => Ok(Plan::new()),
    }
}

/// Whether the database was ever made: without it there is nothing to take a backup of.
fn has_data(database: &SampleDB, observed: &Observed) -> Result<bool, Refusal> {
    let lease = observed.get::<Lease>(&database.name_any())?;
    let leadership = lease.and_then(|lease| Leadership::of(&lease).ok());
    Ok(leadership.is_some_and(|leadership| leadership.system_identifier.is_some()))
}

fn snapshot(database: &SampleDB, observed: &Observed, agent_image: &str) -> Result<Plan, Refusal> {
    let name = database.last_backup_name();
    let backup = observed.get::<SampleDBBackup>(&name)?;
    let status = backup.as_ref().and_then(|backup| backup.status.clone()).unwrap_or_default();
    if status.phase == BackupPhase::Completed {
        let taken = Why::SnapshotTaken { backup: name };
        return remove(database, observed, Plan::new().condition(CONDITION, true, taken));
    }
    // What it runs on stays as it is, or is made so; also if its spec cannot be carried out any more.
    let plan = provisioning::decide(database, observed, agent_image);
    let is_carried_out = plan.is_ok();
    let plan = plan.unwrap_or_default();
    if status.phase == BackupPhase::Failed {
        let failed = || Why::SnapshotFailed {
            backup: name.clone(),
            message: status.message.clone().unwrap_or_default(),
        };
        let ended = status.completed_at.as_ref().map(|at| at.0);
        let left = ended.map(|ended| (ended + AGAIN).duration_since(observed.now()));
        let plan = plan.condition(CONDITION, false, failed());
        return Ok(
            match left.and_then(|left| Duration::try_from(left).ok()).filter(|left| !left.is_zero()) {
                Some(left) => plan.wait(failed(), left),
                None => plan.delete::<SampleDBBackup>(&name, Why::TriesAgain).wait(failed(), Until::Change),
            },
        );
    }
    // Where nobody can be told to keep clients out, it is taken beside them.
    if backup.is_none() && is_carried_out && !is_closed(database, observed)? {
        let closes = Why::ClosesToClients;
        return Ok(plan.condition(CONDITION, false, closes).wait(Why::ClosesToClients, Until::Change));
    }
    let what = match status.conditions.iter().find(|one| one.type_ == super::backup::CONDITION) {
        Some(condition) => condition.message.clone(),
        None => "it is about to be taken".to_owned(),
    };
    let pending = || Why::SnapshotPending { backup: name.clone(), what: what.clone() };
    let plan = plan.condition(CONDITION, false, pending()).wait(pending(), Until::Change);
    Ok(match backup {
        Some(_) => plan,
        None => plan.apply(children::backup::last(database), Why::TakesSnapshot),
    })
}

/// Whether the primary keeps clients out, and none is connected. An agent of an earlier version does not say, and does neither.
fn is_closed(database: &SampleDB, observed: &Observed) -> Result<bool, Refusal> {
    let lease = observed.get::<Lease>(&database.name_any())?;
    let holder = lease.and_then(|lease| Leadership::of(&lease).ok()).and_then(|leadership| leadership.holder);
    let Some(holder) = holder else { return Ok(false) };
    let status = observed.get::<SampleDBInstance>(&holder.instance)?.and_then(|one| one.status.clone());
    let of_primary = status.filter(|status| status.pod_uid == holder.pod_uid && status.role == Role::Primary);
    Ok(of_primary.is_some_and(|status| status.closed != Some(false)))
}

/// The servers end, and then their volumes go.
fn remove(database: &SampleDB, observed: &Observed, mut plan: Plan) -> Result<Plan, Refusal> {
    let name = database.name_any();
    if observed.get::<StatefulSet>(&name)?.is_some() {
        plan = plan.delete::<StatefulSet>(&name, Why::RemovesServers);
    }
    let lease = observed.get::<Lease>(&name)?;
    let data = lease.and_then(|lease| DataVersion::of(&lease).ok()).flatten();
    if let Some(Phase::Upgrading { attempt } | Phase::Reverting { attempt, .. }) =
        data.as_ref().and_then(DataVersion::phase)
        && let Some(job) = observed.get::<Job>(&children::upgrade::name(database, *attempt))?
    {
        // Its pod would keep the volume.
        plan = plan.delete::<Job>(job.name_any(), Why::RemovesServers);
    }
    let pods = observed.list::<Pod>()?.len();
    if pods > 0 {
        plan = plan.wait(Why::ServersEnd { left: pods }, Until::Change);
    }
    let mut left = Vec::new();
    for claim in observed.list::<PersistentVolumeClaim>()? {
        if claim.metadata.deletion_timestamp.is_none() {
            plan = plan.delete::<PersistentVolumeClaim>(claim.name_any(), Why::RemovesVolume);
        }
        left.push(claim.name_any());
    }
    Ok(if left.is_empty() { plan } else { plan.wait(Why::VolumesEnd { left }, Until::Change) })
}
