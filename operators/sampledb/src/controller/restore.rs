//! Whether the backup that a new database is to be made of can be restored into it.

use crate::api::v1alpha1::{BackupPhase, RestoreSource, SampleDB, SampleDBBackup};
use crate::children::archive;
use kube::ResourceExt;
use windlass::{Observed, Plan, Reasoned, Refusal, Until};

#[derive(Debug)]
enum Why {
    BackupMissing { name: String },
    BackupNotCompleted { name: String },
    BackupFailed { name: String },
    OtherVersion { name: String, version: String },
    OtherNames { name: String, database: String, owner: String },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::BackupMissing { name } => format!("SampleDBBackup {name} is not there"),
            Self::BackupNotCompleted { name } => format!("SampleDBBackup {name} is not completed yet"),
            Self::BackupFailed { name } => format!("SampleDBBackup {name} has failed: there is no backup"),
            Self::OtherVersion { name, version } => {
                format!(
                    "SampleDBBackup {name} is of PostgreSQL {version}: only the same major version reads it"
                )
            }
            Self::OtherNames { name, database, owner } => {
                format!(
                    "SampleDBBackup {name} has the database {database} of {owner}: set spec.database and spec.owner so"
                )
            }
        }
    }
}

/// Where the data of a database comes from.
pub(super) enum Restore {
    /// It is new, or there already.
    Nothing,
    /// From a backup, and the archive that keeps it.
    From(RestoreSource, String),
    /// Something has to change first.
    Wait(Plan),
}

/// Where the data of a database comes from, given what is there. Once it is made it needs its backup no more.
pub(super) fn source(database: &SampleDB, observed: &Observed, is_made: bool) -> Result<Restore, Refusal> {
    let Some(from) = &database.spec.restore_from else { return Ok(Restore::Nothing) };
    let name = from.backup.clone();
    let Some(backup) = observed.get::<SampleDBBackup>(&name)? else {
        return if is_made { Ok(Restore::Nothing) } else { Err(Refusal::new(Why::BackupMissing { name })) };
    };
    let status = backup.status.clone().unwrap_or_default();
    let known = (status.archive, status.location, status.system_identifier);
    let (phase, (Some(archive), Some(location), Some(system_identifier))) = (status.phase, known) else {
        return match (is_made, status.phase) {
            (true, _) => Ok(Restore::Nothing),
            (false, BackupPhase::Failed) => Err(Refusal::new(Why::BackupFailed { name })),
            (false, _) => {
                Ok(Restore::Wait(Plan::new().wait(Why::BackupNotCompleted { name }, Until::Change)))
            }
        };
    };
    if !is_made {
        fits(database, &name, &status.version, &status.database, &status.owner)?;
        if phase != BackupPhase::Completed {
            return Ok(Restore::Wait(Plan::new().wait(Why::BackupNotCompleted { name }, Until::Change)));
        }
    }
    let host = archive::host(&archive, &database.namespace().unwrap_or_default());
    Ok(Restore::From(RestoreSource { host, location, system_identifier }, archive))
}

fn fits(
    database: &SampleDB,
    name: &str,
    version: &Option<String>,
    in_it: &Option<String>,
    owner: &Option<String>,
) -> Result<(), Refusal> {
    let major = |version: &str| version.split(['.', ' ']).next().map(str::to_owned);
    if let Some(version) = version.as_ref().filter(|version| major(version) != major(&database.spec.version))
    {
        let (name, version) = (name.to_owned(), version.clone());
        return Err(Refusal::new(Why::OtherVersion { name, version }));
    }
    if let (Some(in_it), Some(owner)) = (in_it, owner)
        && (*in_it != database.spec.database || *owner != database.spec.owner)
    {
        let (name, database, owner) = (name.to_owned(), in_it.clone(), owner.clone());
        return Err(Refusal::new(Why::OtherNames { name, database, owner }));
    }
    Ok(())
}
