//! `status`: who is primary, how its replicas are, and what is awaited.

use super::{Failure, Place, said};
use crate::api::v1alpha1::{Role, SampleDB, SampleDBInstance};
use crate::children::DATABASE_LABEL;
use crate::leadership::Leadership;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::ListParams;
use std::fmt::Write;
use std::process::ExitCode;

pub(super) async fn run(place: &Place, name: &str) -> Result<ExitCode, Failure> {
    let database = place.api::<SampleDB>().get(name).await.map_err(|error| said(&error))?;
    let lease = place.api::<Lease>().get_opt(name).await.map_err(|error| said(&error))?;
    let of = ListParams::default().labels(&format!("{DATABASE_LABEL}={name}"));
    let instances = place.api::<SampleDBInstance>().list(&of).await.map_err(|error| said(&error))?;
    print!("{}", text(&database, lease.as_ref(), &instances.items));
    Ok(ExitCode::SUCCESS)
}

fn text(database: &SampleDB, lease: Option<&Lease>, instances: &[SampleDBInstance]) -> String {
    let status = database.status.clone().unwrap_or_default();
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let mut text = String::new();
    let _ = writeln!(text, "Primary:     {}", or_none(status.primary));
    let _ = writeln!(text, "Ready:       {}", or_none(status.ready));
    let _ = writeln!(text, "PostgreSQL:  {}", or_none(status.version));
    if let Some(leadership) = lease.and_then(|lease| Leadership::of(lease).ok()) {
        let synchronous = &leadership.synchronous;
        let _ = writeln!(text, "Epoch:       {}", leadership.epoch);
        let _ = match synchronous.quorum {
            0 => writeln!(text, "Commits:     acknowledged by the primary alone"),
            quorum => writeln!(
                text,
                "Commits:     acknowledged by the primary and {quorum} of {} replicas",
                synchronous.clones.len()
            ),
        };
    }
    for condition in status.conditions.iter().filter(|one| one.type_ == "Ready" && one.status != "True") {
        let _ = writeln!(text, "Waiting:     {}: {}", condition.reason, condition.message);
    }
    let _ = writeln!(text, "\n{:<24} {:<8} {:<6} {:<9} MESSAGE", "INSTANCE", "ROLE", "READY", "TIMELINE");
    for instance in instances {
        let status = instance.status.clone().unwrap_or_default();
        let role = match status.role {
            Role::Primary => "primary",
            Role::Replica => "replica",
            Role::Stopped => "stopped",
        };
        let ready = if status.ready { "yes" } else { "no" };
        let row = format!(
            "{:<24} {role:<8} {ready:<6} {:<9} {}",
            instance.name_any(),
            status.timeline,
            status.message
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}
