//! `restore`: makes a new database of a backup, and waits until it is ready.

use super::{Failure, Place, Waiting, said};
use crate::api::v1alpha1::{SampleDB, SampleDBBackup, Storage};
use crate::restored::{self, Changes};
use clap::Args;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::PostParams;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The name of the SampleDBBackup
    backup: String,
    /// The name of the SampleDB that is made of it
    name: String,
    /// How many instances it has; by default as many as the SampleDB that the backup is of
    #[arg(long, value_name = "NUMBER")]
    instances: Option<i32>,
    /// How large its volumes are, such as 10Gi; by default as large as those of the SampleDB that the backup is of
    #[arg(long, value_name = "SIZE")]
    storage: Option<String>,
    #[command(flatten)]
    waiting: Waiting,
}

pub(super) async fn run(place: &Place, options: &Options) -> Result<ExitCode, Failure> {
    let backup = place.api::<SampleDBBackup>().get(&options.backup).await.map_err(|error| said(&error))?;
    let databases = place.api::<SampleDB>();
    let original = databases.get_opt(&backup.spec.database).await.map_err(|error| said(&error))?;
    let size = options.storage.clone().map(Quantity);
    let changes =
        Changes { instances: options.instances, storage: size.map(|size| Storage { size, class: None }) };
    let database = SampleDB::new(&options.name, restored::spec(&backup, original.as_ref(), &changes)?);
    databases.create(&PostParams::default(), &database).await.map_err(|error| said(&error))?;
    println!("{} is made of backup {}", options.name, options.backup);
    options.waiting.until(place, &options.name, "Ready").await?;
    Ok(ExitCode::SUCCESS)
}
