//! The lease on the server: read, held, given back.

use super::decide::Sighting;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use std::time::Duration;
use windlass_clock::Timestamp;

/// A lease as it was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) holder: String,
    pub(super) version: String,
    pub(super) lasts: Option<Duration>,
    pub(super) transitions: i32,
}

/// One lease.
#[derive(Debug)]
pub(super) struct Leases {
    api: Api<Lease>,
    name: String,
    lasts: Duration,
    /// As it was last read or written: what is replaced keeps everything that is not ours.
    last: Option<Lease>,
}

impl Leases {
    pub(super) fn new(api: Api<Lease>, name: &str, lasts: Duration) -> Self {
        Self { api, name: name.to_owned(), lasts, last: None }
    }

    pub(super) async fn read(&mut self) -> kube::Result<Option<Found>> {
        self.last = self.api.get_opt(&self.name).await?;
        Ok(self.last.as_ref().map(found))
    }

    /// Writes that `holder` holds it, on the version that was seen.
    pub(super) async fn hold(
        &mut self,
        holder: &str,
        observed: Option<&Sighting>,
        now: Timestamp,
    ) -> kube::Result<Found> {
        let held = observed.is_some_and(|observed| observed.holder == holder);
        let mut lease = self.last.clone().unwrap_or_default();
        let spec = lease.spec.get_or_insert_default();
        spec.renew_time = Some(MicroTime(now));
        spec.lease_duration_seconds = Some(i32::try_from(self.lasts.as_secs()).unwrap_or(i32::MAX).max(1));
        if !held {
            spec.holder_identity = Some(holder.to_owned());
            spec.acquire_time = Some(MicroTime(now));
            spec.lease_transitions =
                Some(observed.map_or(0, |observed| observed.transitions.saturating_add(1)));
        }
        let written = match observed {
            Some(_) => self.api.replace(&self.name, &PostParams::default(), &lease).await,
            None => {
                lease.metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                self.api.create(&PostParams::default(), &lease).await
            }
        }?;
        let found = found(&written);
        self.last = Some(written);
        Ok(found)
    }

    /// Leaves it to whoever comes first.
    pub(super) async fn give_back(&self, observed: &Sighting, now: Timestamp) -> kube::Result<()> {
        let Some(mut lease) = self.last.clone() else { return Ok(()) };
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(observed.transitions),
            ..LeaseSpec::default()
        });
        self.api.replace(&self.name, &PostParams::default(), &lease).await.map(drop)
    }
}

impl std::fmt::Display for Leases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

fn found(lease: &Lease) -> Found {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| u64::try_from(spec.lease_duration_seconds?).ok());
    Found {
        holder: spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default(),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        lasts: seconds.map(Duration::from_secs),
        transitions: spec.and_then(|spec| spec.lease_transitions).unwrap_or_default(),
    }
}
