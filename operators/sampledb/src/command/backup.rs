//! `backup`: takes a backup now, and waits until it is verified.

use super::{Failure, Name, Place, Waiting, said};
use crate::api::v1alpha1::{BackupPhase, SampleDB, SampleDBBackup, SampleDBBackupSpec};
use crate::controller::backup::CONDITION;
use clap::Args;
use kube::ResourceExt;
use kube::api::PostParams;
use std::process::ExitCode;
use windlass::clock::Clock;

#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    database: Name,
    /// The name of the SampleDBBackup; by default the database's with the time
    #[arg(long = "as", value_name = "BACKUP")]
    backup: Option<String>,
    #[command(flatten)]
    waiting: Waiting,
}

pub(super) async fn run(place: &Place, options: &Options) -> Result<ExitCode, Failure> {
    let database = place.api::<SampleDB>().get(&options.database.name).await.map_err(|error| said(&error))?;
    if database.spec.backup.is_none() {
        return Err(format!("{} has no archive: set spec.backup", database.name_any()));
    }
    let name = options.backup.clone().unwrap_or_else(|| {
        let now = Clock::real().now().to_string();
        let digits: String = now.chars().take(19).filter(char::is_ascii_digit).collect();
        format!("{}-{digits}", database.name_any())
    });
    let backup = SampleDBBackup::new(&name, SampleDBBackupSpec { database: database.name_any() });
    let backups = place.api::<SampleDBBackup>();
    backups.create(&PostParams::default(), &backup).await.map_err(|error| said(&error))?;
    println!("SampleDBBackup {name} is created");
    options.waiting.until_done(&name, async || told(backups.get(&name).await)).await?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a backup is completed, and what to tell of it.
fn told(backup: kube::Result<SampleDBBackup>) -> Result<(bool, String), Failure> {
    let backup = backup.map_err(|error| said(&error))?;
    let status = backup.status.clone().unwrap_or_default();
    match status.phase {
        BackupPhase::Completed => {
            let size = status.size_bytes.unwrap_or_default() >> 20;
            let seconds = status.duration_seconds.unwrap_or_default();
            Ok((true, format!("completed and verified, {size} MiB, in {seconds} s")))
        }
        BackupPhase::Failed => {
            Err(format!("backup {} failed: {}", backup.name_any(), status.message.unwrap_or_default()))
        }
        BackupPhase::Pending | BackupPhase::Running => {
            let condition = status.conditions.iter().find(|one| one.type_ == CONDITION);
            Ok((false, condition.map(|one| one.message.clone()).unwrap_or_default()))
        }
    }
}
