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

pub(super) async fn run(place: &Place, options: &Options) -> Result<ExitCode, Failure> {
    let Options { database, instance, off } = options;
    let databases = place.api::<SampleDB>();
    let there = databases.get(&database.name).await.map_err(|error| said(&error))?;
    place.api::<SampleDBInstance>().get(instance).await.map_err(|error| said(&error))?;
    let annotation = there.metadata.annotations.unwrap_or_default().remove(FENCED).unwrap_or_default();
    let mut fenced: BTreeSet<&str> =
        annotation.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let changed = if *off { fenced.remove(instance.as_str()) } else { fenced.insert(instance) };
    if changed {
        let names: Vec<&str> = fenced.into_iter().collect();
        let value = (!names.is_empty()).then(|| names.join(","));
        let patch = json!({ "metadata": { "annotations": { FENCED: value }, "resourceVersion": there.metadata.resource_version } });
        let how = PatchParams::default();
        databases.patch(&database.name, &how, &Patch::Merge(patch)).await.map_err(|error| said(&error))?;
    }
    println!("{instance} is {}fenced", if *off { "no longer " } else { "" });
    Ok(ExitCode::SUCCESS)
}
