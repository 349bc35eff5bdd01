//! `failover`: a primary is elected of the instances that are left, where the operator waits for copies of the data that are lost.

use super::{Failure, Name, Place, said};
use crate::api::v1alpha1::{SampleDB, SampleDBInstance};
use crate::children::DATABASE_LABEL;
use crate::leadership::{Leadership, Synchronous};
use clap::Args;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use std::process::ExitCode;
use std::time::Duration;
use windlass::clock::Clock;

/// How long an election may take.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    database: Name,
    /// Elect the instance whose data reaches furthest, although acknowledged commits may be missing in it
    #[arg(long)]
    accept_data_loss: bool,
}

pub(super) async fn run(place: &Place, options: &Options) -> Result<ExitCode, Failure> {
    let name = &options.database.name;
    let leases = place.api::<Lease>();
    let mut lease = leases.get(name).await.map_err(|error| said(&error))?;
    let mut leadership = Leadership::of(&lease).map_err(|error| error.to_string())?;
    if let Some(holder) = &leadership.holder {
        return Err(format!(
            "{} is primary of {name}: `windlass sampledb switchover {name}` hands over without losing a commit",
            holder.instance
        ));
    }
    let of = ListParams::default().labels(&format!("{DATABASE_LABEL}={name}"));
    let instances = place.api::<SampleDBInstance>().list(&of).await.map_err(|error| said(&error))?.items;
    let answers = answers(&instances, &leadership);
    for answer in &answers {
        println!("{answer}");
    }
    if answers.is_empty() {
        return Err(format!("no instance of {name} has answered yet where its data ends"));
    }
    if !options.accept_data_loss {
        return Err(format!(
            "{name} has no primary, because some of those that may have the last commits have not answered; if their data is \
             lost, --accept-data-loss elects the one whose data reaches furthest"
        ));
    }
    leadership.synchronous = Synchronous::default();
    leadership.write(&mut lease);
    leases.replace(name, &PostParams::default(), &lease).await.map_err(|error| said(&error))?;
    println!("the operator elects one of them");
    wait(place, name).await
}

/// Where the data of each instance ends that has answered in this epoch.
fn answers(instances: &[SampleDBInstance], leadership: &Leadership) -> Vec<String> {
    let answer = |one: &SampleDBInstance| {
        let status = one.status.as_ref().filter(|status| status.epoch == leadership.epoch)?;
        let of_this_database = status.system_identifier == leadership.system_identifier;
        let flushed = status.flushed.filter(|_| of_this_database)?;
        let acknowledges =
            status.clone.as_ref().is_some_and(|clone| leadership.synchronous.clones.contains(clone));
        let acknowledges = if acknowledges { "" } else { ", and acknowledged no commits" };
        Some(format!(
            "{} has the data up to {flushed} of timeline {}{acknowledges}",
            one.name_any(),
            status.timeline
        ))
    };
    instances.iter().filter_map(answer).collect()
}

async fn wait(place: &Place, name: &str) -> Result<ExitCode, Failure> {
    let clock = Clock::real();
    let done = async {
        loop {
            let database = place.api::<SampleDB>().get(name).await.map_err(|error| said(&error))?;
            if let Some(primary) = database.status.and_then(|status| status.primary) {
                return Ok::<String, Failure>(primary);
            }
            clock.sleep(Duration::from_millis(100)).await;
        }
    };
    match clock.timeout(PATIENCE, done).await {
        Ok(primary) => println!("{} is primary", primary?),
        Err(_) => return Err(format!("{name} has no primary after {} s", PATIENCE.as_secs())),
    }
    Ok(ExitCode::SUCCESS)
}
