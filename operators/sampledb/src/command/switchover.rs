//! `switchover`: another instance becomes primary, without losing a commit.

use super::{Failure, Name, Place, said};
use crate::api::v1alpha1::{Role, SampleDB, SampleDBInstance};
use crate::children::DATABASE_LABEL;
use crate::leadership::Leadership;
use clap::Args;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use std::process::ExitCode;
use std::time::Duration;
use windlass::clock::Clock;

/// How long a switchover may take.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    database: Name,
    /// The instance that becomes primary; by default a replica that is ready
    #[arg(long, value_name = "INSTANCE")]
    to: Option<String>,
}

/// How often a request is written again after the Lease was renewed in between.
const ATTEMPTS: usize = 20;

pub(super) async fn run(place: &Place, options: &Options) -> Result<ExitCode, Failure> {
    let name = &options.database.name;
    let leases = place.api::<Lease>();
    for _ in 0..ATTEMPTS {
        let mut lease = leases.get(name).await.map_err(|error| said(&error))?;
        let mut leadership = Leadership::of(&lease).map_err(|error| error.to_string())?;
        let Some(holder) = leadership.holder.clone() else {
            return Err(format!("{name} has no primary now: an election is under way"));
        };
        let of = ListParams::default().labels(&format!("{DATABASE_LABEL}={name}"));
        let instances = place.api::<SampleDBInstance>().list(&of).await.map_err(|error| said(&error))?.items;
        let target = target(&instances, &holder.instance, options.to.as_deref())?;
        if target == holder.instance {
            println!("{target} is primary already");
            return Ok(ExitCode::SUCCESS);
        }
        leadership.switchover_to = Some(target.clone());
        leadership.write(&mut lease);
        match leases.replace(name, &PostParams::default(), &lease).await {
            Ok(_) => {
                println!("{} hands over to {target}", holder.instance);
                return wait(place, name, &target).await;
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(said(&error)),
        }
    }
    Err(format!("the Lease {name} changed {ATTEMPTS} times while the request was written"))
}

fn target(instances: &[SampleDBInstance], holder: &str, to: Option<&str>) -> Result<String, Failure> {
    let fit = |one: &&SampleDBInstance| {
        let status = one.status.clone().unwrap_or_default();
        status.ready && status.role == Role::Replica && !one.spec.fenced
    };
    match to {
        Some(to) if to == holder => Ok(to.to_owned()),
        Some(to) => {
            let there = instances.iter().find(|one| one.name_any() == to);
            let there = there.ok_or_else(|| format!("there is no instance {to}"))?;
            if fit(&there) { Ok(to.to_owned()) } else { Err(format!("{to} is no replica that is ready")) }
        }
        None => {
            let ready = instances.iter().find(fit).map(ResourceExt::name_any);
            ready.ok_or_else(|| "there is no replica that is ready".to_owned())
        }
    }
}

async fn wait(place: &Place, name: &str, target: &str) -> Result<ExitCode, Failure> {
    let clock = Clock::real();
    let began = clock.moment();
    let done = async {
        loop {
            let lease = place.api::<Lease>().get(name).await.map_err(|error| said(&error))?;
            let leadership = Leadership::of(&lease).map_err(|error| error.to_string())?;
            let database = place.api::<SampleDB>().get(name).await.map_err(|error| said(&error))?;
            // It is named there once the Service for writes leads to it.
            let primary = database.status.and_then(|status| status.primary);
            let holder = leadership.holder.filter(|holder| holder.run.is_some());
            match holder {
                Some(holder) if holder.instance == target && primary.as_deref() == Some(target) => {
                    return Ok(());
                }
                Some(holder) if leadership.switchover_to.is_none() && holder.instance != target => {
                    return Err(format!("{} became primary instead", holder.instance));
                }
                _ => clock.sleep(Duration::from_millis(100)).await,
            }
        }
    };
    match clock.timeout(PATIENCE, done).await {
        Ok(done) => done?,
        Err(_) => return Err(format!("{target} is not primary after {} s", PATIENCE.as_secs())),
    }
    println!("{target} is primary, after {:.1} s", (clock.moment() - began).as_secs_f64());
    Ok(ExitCode::SUCCESS)
}
