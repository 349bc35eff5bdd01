//! What an upgrade needs beside the Lease: a backup before it, its Jobs, and what people are told of it.

use super::upgrade::{self, goes_without_backup};
use crate::api::v1alpha1::{BackupPhase, SampleDB, SampleDBBackup, SampleDBInstance};
use crate::children;
use crate::data_version::{DataVersion, Phase, Upgrade, WITHOUT_BACKUP, major};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use std::cmp::Ordering;
use windlass::health::{Finished, finished};
use windlass::{Delete, Observed, Plan, Propagation, Reasoned, Refusal, Until};

/// The condition of this concern.
pub const CONDITION: &str = "UpToDate";

#[derive(Debug)]
enum Why {
    RunsVersion { major: String },
    DowngradeRefused { from: String, to: String },
    UpgradeNeedsBackup { to: String },
    TakesBackupFirst,
    BackupPending { backup: String, what: String },
    BackupFailed { backup: String, message: String },
    UpgradeFailed { to: String, message: String },
    ServersStop { left: usize },
    UpgradesData,
    DataUpgrades { to: String, what: String },
    VersionStarts { to: String, what: String },
    EndsUpgrade,
    UpgradeEnds,
    PutsDataBack,
    DataIsPutBack { from: String },
    DataNotPutBack { job: String, message: String },
    UpgradeIsDue { to: String },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::RunsVersion { major } => format!("the data is of PostgreSQL {major}"),
            Self::DowngradeRefused { from, to } => {
                format!(
                    "the data is of PostgreSQL {from}, which {to} cannot read: set version to {from} again, and restore a backup \
                     of {to} into a new SampleDB"
                )
            }
            Self::UpgradeNeedsBackup { to } => {
                format!(
                    "an upgrade to PostgreSQL {to} takes a backup first: set spec.backup, or annotate the SampleDB with \
                     {WITHOUT_BACKUP}=true to go without one"
                )
            }
            Self::TakesBackupFirst => "a backup is taken before the upgrade".to_owned(),
            Self::BackupPending { backup, what } => format!("SampleDBBackup {backup}: {what}"),
            Self::BackupFailed { backup, message } => {
                format!(
                    "SampleDBBackup {backup} failed, and nothing is upgraded; delete it to try again: {message}"
                )
            }
            Self::UpgradeFailed { to, message } => {
                format!(
                    "the upgrade to PostgreSQL {to} failed, and the data is as it was; set version back, and again, to retry: {message}"
                )
            }
            Self::ServersStop { left } => format!("{left} servers stop"),
            Self::UpgradesData => "a Job upgrades the data".to_owned(),
            Self::DataUpgrades { to, what } => format!("the data is upgraded to PostgreSQL {to}: {what}"),
            Self::VersionStarts { to, what } => {
                format!(
                    "servers of PostgreSQL {to} start; until they take writes, the version can be set back: {what}"
                )
            }
            Self::DataNotPutBack { job, message } => {
                format!("the data is not put back; delete Job {job} to try again: {message}")
            }
            Self::EndsUpgrade => "the upgrade ends before the data is put back".to_owned(),
            Self::UpgradeEnds => "the Job of the upgrade ends".to_owned(),
            Self::PutsDataBack => "a Job puts the data back".to_owned(),
            Self::DataIsPutBack { from } => format!("the data of PostgreSQL {from} is put back"),
            Self::UpgradeIsDue { to } => {
                format!(
                    "the upgrade to PostgreSQL {to} begins when there is a primary and nothing else changes"
                )
            }
        }
    }
}

/// What an upgrade needs, given what is there and what the Lease says.
pub(super) fn decide(
    database: &SampleDB,
    observed: &Observed,
    data: &DataVersion,
    agent_image: &str,
    plan: Plan,
) -> Result<Plan, Refusal> {
    let to = major(&database.spec.version).to_owned();
    if let Some(upgrade) = &data.upgrade {
        return go_on(database, observed, data, upgrade, agent_image, plan);
    }
    Ok(match upgrade::compare(database, data) {
        Ordering::Equal => plan.condition(CONDITION, true, Why::RunsVersion { major: data.major.clone() }),
        Ordering::Less => {
            let refused = || Why::DowngradeRefused { from: data.major.clone(), to: to.clone() };
            plan.condition(CONDITION, false, refused()).wait(refused(), Until::Change)
        }
        Ordering::Greater => match upgrade::failed(database, data) {
            Some(failed) => {
                let failed = || Why::UpgradeFailed { to: to.clone(), message: failed.message.clone() };
                plan.condition(CONDITION, false, failed()).wait(failed(), Until::Change)
            }
            None => back_up(database, observed, &to, plan)?,
        },
    })
}

/// Before anything is stopped, a backup is taken and verified.
fn back_up(database: &SampleDB, observed: &Observed, to: &str, plan: Plan) -> Result<Plan, Refusal> {
    let told = |plan: Plan, why: &dyn Fn() -> Why| {
        plan.condition(CONDITION, false, why()).wait(why(), Until::Change)
    };
    let to = to.to_owned();
    if goes_without_backup(database) {
        return Ok(told(plan, &|| Why::UpgradeIsDue { to: to.clone() }));
    }
    if database.spec.backup.is_none() {
        return Ok(told(plan, &|| Why::UpgradeNeedsBackup { to: to.clone() }));
    }
    let name = database.upgrade_backup_name();
    let plan = plan.apply(children::backup::before_upgrade(database), Why::TakesBackupFirst);
    let status = observed.get::<SampleDBBackup>(&name)?.and_then(|backup| backup.status.clone());
    let status = status.unwrap_or_default();
    Ok(match status.phase {
        BackupPhase::Completed => told(plan, &|| Why::UpgradeIsDue { to: to.clone() }),
        BackupPhase::Failed => told(plan, &|| Why::BackupFailed {
            backup: name.clone(),
            message: status.message.clone().unwrap_or_default(),
        }),
        BackupPhase::Pending | BackupPhase::Running => {
            let condition = status.conditions.iter().find(|one| one.type_ == super::backup::CONDITION);
            let what = condition.map_or("it is about to be taken", |condition| &condition.message);
            told(plan, &|| Why::BackupPending { backup: name.clone(), what: what.to_owned() })
        }
    })
}

fn go_on(
    database: &SampleDB,
    observed: &Observed,
    data: &DataVersion,
    upgrade: &Upgrade,
    agent_image: &str,
    mut plan: Plan,
) -> Result<Plan, Refusal> {
    let (to, from) = (upgrade.to.clone(), (data.major.as_str(), data.image.as_str()));
    let instance = upgrade.instance.as_deref().unwrap_or_default();
    let left = observed.list::<Pod>()?.len();
    let status = observed.get::<SampleDBInstance>(instance)?.and_then(|one| one.status.clone());
    let reported = status.as_ref().and_then(|status| status.upgrade.clone());
    let said = |attempt: i32| reported.clone().filter(|report| report.attempt == attempt);
    let why: Box<dyn Fn() -> Why> = match &upgrade.phase {
        Phase::Stopping => Box::new(move || Why::ServersStop { left }),
        Phase::Upgrading { attempt } => {
            let job = children::upgrade::upgrade(database, from, upgrade, instance, *attempt, agent_image);
            plan = plan.apply(job, Why::UpgradesData);
            let said = said(*attempt);
            let what = said.map_or_else(|| "its Job starts".to_owned(), |report| report.message);
            Box::new(move || Why::DataUpgrades { to: to.clone(), what: what.clone() })
        }
        Phase::Starting { .. } => {
            let what = status.map(|status| status.message).filter(|message| !message.is_empty());
            let what =
                what.map_or_else(|| format!("{instance} starts"), |message| format!("{instance}: {message}"));
            Box::new(move || Why::VersionStarts { to: to.clone(), what: what.clone() })
        }
        Phase::Reverting { attempt, of, .. } => {
            let before = children::upgrade::name(database, *of);
            if left > 0 {
                Box::new(move || Why::ServersStop { left })
            } else if let Some(job) = observed.get::<Job>(&before)? {
                if job.metadata.deletion_timestamp.is_none() {
                    // With its pods: nobody else may touch the data.
                    let delete = Delete::new(before).propagation(Propagation::Foreground);
                    plan = plan.delete::<Job>(delete, Why::EndsUpgrade);
                }
                Box::new(|| Why::UpgradeEnds)
            } else {
                let job = children::upgrade::revert(database, from, upgrade, instance, *attempt, agent_image);
                let name = job.name_any();
                let ended = observed.get::<Job>(&name)?.and_then(|job| finished(&job));
                plan = plan.apply(job, Why::PutsDataBack);
                let from = data.major.clone();
                match ended {
                    Some(Finished::Failed { reason, message }) => {
                        let told = said(*attempt).map(|report| report.message);
                        let message = told.unwrap_or_else(|| format!("{reason}: {message}"));
                        Box::new(move || Why::DataNotPutBack { job: name.clone(), message: message.clone() })
                    }
                    _ => Box::new(move || Why::DataIsPutBack { from: from.clone() }),
                }
            }
        }
    };
    Ok(plan.condition(CONDITION, false, why()).wait(why(), Until::Change))
}
