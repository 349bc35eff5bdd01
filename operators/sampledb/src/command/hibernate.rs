//! `hibernate`: the servers of a database stop, and its volumes stay.

use super::{Failure, Name, Place, Waiting, said};
use crate::api::v1alpha1::SampleDB;
use crate::controller::provisioning::HIBERNATED;
use clap::Args;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    database: Name,
    /// Start its servers again
    #[arg(long)]
    off: bool,
    #[command(flatten)]
    waiting: Waiting,
}

pub(super) async fn run(place: &Place, options: &Options) -> Result<ExitCode, Failure> {
    let name = &options.database.name;
    let patch = Patch::Merge(json!({ "spec": { "hibernated": !options.off } }));
    let databases = place.api::<SampleDB>();
    databases.patch(name, &PatchParams::default(), &patch).await.map_err(|error| said(&error))?;
    let condition = if options.off { "Ready" } else { HIBERNATED };
    options.waiting.until(place, name, condition).await?;
    Ok(ExitCode::SUCCESS)
}
