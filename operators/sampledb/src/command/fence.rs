//! `fence`: the server of an instance is kept stopped.

use super::{Failure, Name, Place, said};
use crate::api::v1alpha1::{SampleDB, SampleDBInstance};
use crate::controller::provisioning::FENCED;
use clap::Args;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    database: Name,
    /// The instance
    instance: String,
    /// Let its server run again
    #[arg(long)]
    off: bool,
}

/// How often it is written again after somebody else wrote in between.
const ATTEMPTS: usize = 20;

pub(super) async fn run(place: &Place, options: &Options) -> Result<ExitCode, Failure> {
    let Options { database, instance, off } = options;
    place.api::<SampleDBInstance>().get(instance).await.map_err(|error| said(&error))?;
    for _ in 0..ATTEMPTS {
        match fence(place, options).await {
            Ok(()) => {
                println!("{instance} is {}fenced", if *off { "no longer " } else { "" });
                return Ok(ExitCode::SUCCESS);
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(said(&error)),
        }
    }
    Err(format!("{} changed {ATTEMPTS} times while the request was written", database.name))
}

async fn fence(place: &Place, options: &Options) -> Result<(), kube::Error> {
    let Options { database, instance, off } = options;
    let databases = place.api::<SampleDB>();
    let there = databases.get(&database.name).await?;
    let annotation = there.metadata.annotations.unwrap_or_default().remove(FENCED).unwrap_or_default();
    let mut fenced: BTreeSet<&str> =
        annotation.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let changed = if *off { fenced.remove(instance.as_str()) } else { fenced.insert(instance) };
    if !changed {
        return Ok(());
    }
    let names: Vec<&str> = fenced.into_iter().collect();
    let value = (!names.is_empty()).then(|| names.join(","));
    let patch = json!({ "metadata": { "annotations": { FENCED: value }, "resourceVersion": there.metadata.resource_version } });
    databases.patch(&database.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
