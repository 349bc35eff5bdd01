//! Upgrades to another major version: what the Lease says next of an upgrade, and what servers run meanwhile.
//!
//! The servers stop, a Job makes data of the next version beside that of the last and puts it into its place, and servers of the next
//! version start. Until then writes are kept out, and the data of the last version is put back if it fails, or if the version is
//! set back. The step after which there is no way back is a compare-and-swap of the Lease, before writes are let in.

use crate::api::v1alpha1::{BackupPhase, Durability, Role, SampleDB, SampleDBBackup, SampleDBInstanceStatus};
use crate::children;
use crate::data_version::{DataVersion, FailedUpgrade, Phase, Upgrade, WITHOUT_BACKUP, major};
use crate::leadership::Leadership;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;
use windlass::Reasoned;
use windlass::health::{Finished, finished};

/// The annotation that stops every change to a database.
const PAUSED: &str = "windlass.dev/paused";

/// What is known when an upgrade is decided about.
pub(super) struct Situation<'a> {
    pub(super) database: &'a SampleDB,
    pub(super) leadership: &'a Leadership,
    pub(super) data: Option<&'a DataVersion>,
    pub(super) reports: &'a [(&'a str, &'a SampleDBInstanceStatus)],
    /// Of the instances.
    pub(super) pods: &'a [Arc<Pod>],
    /// How long nobody has renewed the Lease, and how long one lasts.
    pub(super) unchanged_for: Duration,
    pub(super) lease_duration: Duration,
    /// Of the attempt that is under way.
    pub(super) job: Option<Arc<Job>>,
    /// The backup that was taken for the upgrade.
    pub(super) backup: Option<Arc<SampleDBBackup>>,
}

/// What the Lease says next.
pub(super) struct Change {
    pub(super) leadership: Leadership,
    pub(super) data: DataVersion,
    pub(super) why: Why,
}

#[derive(Debug)]
pub(super) enum Why {
    RecordsVersion { major: String, image: String },
    UpgradeBegins { from: String, to: String },
    UpgradeCancelled { to: String },
    Upgrades { instance: String, to: String },
    StartsVersion { to: String },
    UpgradeFailed { to: String, message: String },
    UpgradeReverted { from: String },
    RunsVersionAgain { from: String },
    UpgradeCompleted { to: String },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::RecordsVersion { major, image } => format!("the data is of PostgreSQL {major}, by {image}"),
            Self::UpgradeBegins { from, to } => {
                format!("the servers stop for an upgrade from PostgreSQL {from} to {to}")
            }
            Self::UpgradeCancelled { to } => format!("PostgreSQL {to} is not asked for any more"),
            Self::Upgrades { instance, to } => {
                format!("the data of {instance} is upgraded to PostgreSQL {to}")
            }
            Self::StartsVersion { to } => format!("servers of PostgreSQL {to} start"),
            Self::UpgradeFailed { to, message } => {
                format!("the upgrade to PostgreSQL {to} failed: {message}")
            }
            Self::UpgradeReverted { from } => format!("the data of PostgreSQL {from} is put back"),
            Self::RunsVersionAgain { from } => format!("servers of PostgreSQL {from} start again"),
            Self::UpgradeCompleted { to } => {
                format!(
                    "PostgreSQL {to} runs, and takes writes from now on: there is no way back but a backup"
                )
            }
        }
    }
}

/// The image that servers run: the one that is asked for, unless it is of another major version than the data.
pub(super) fn image(database: &SampleDB, data: Option<&DataVersion>) -> String {
    let asked = || children::image(database);
    let Some(data) = data else { return asked() };
    match &data.upgrade {
        Some(Upgrade { phase: Phase::Starting { .. }, image, .. }) => image.clone(),
        None if data.major == major(&database.spec.version) => asked(),
        _ => data.image.clone(),
    }
}

/// How the version that is asked for compares with that of the data.
pub(super) fn compare(database: &SampleDB, data: &DataVersion) -> Ordering {
    let number = |version: &str| version.parse::<u32>().unwrap_or(0);
    number(major(&database.spec.version)).cmp(&number(&data.major))
}

/// Whether an upgrade that is asked for has failed already.
pub(super) fn failed<'a>(database: &SampleDB, data: &'a DataVersion) -> Option<&'a FailedUpgrade> {
    let of = |failed: &&FailedUpgrade| {
        failed.to == major(&database.spec.version) && failed.image == children::image(database)
    };
    data.failed.as_ref().filter(of)
}

/// Whether the database may be upgraded without a backup.
pub(super) fn goes_without_backup(database: &SampleDB) -> bool {
    database.annotations().get(WITHOUT_BACKUP).is_some_and(|value| value == "true")
}

/// What the Lease says next, if anything.
pub(super) fn decide(situation: &Situation<'_>) -> Option<Change> {
    let wanted = major(&situation.database.spec.version);
    let Some(data) = situation.data else { return situation.record(&DataVersion::default()) };
    match &data.upgrade {
        None => situation.begin(data, wanted).or_else(|| situation.record(data)),
        Some(upgrade) => situation.go_on(data, upgrade, wanted),
    }
}

impl Situation<'_> {
    fn change(&self, data: DataVersion, why: Why) -> Option<Change> {
        Some(Change { leadership: self.leadership.clone(), data, why })
    }

    /// The primary that takes connections, and the image that it runs.
    fn primary(&self) -> Option<(&SampleDBInstanceStatus, String)> {
        let holder = self.leadership.holder.as_ref().filter(|holder| holder.run.is_some())?;
        let (_, report) = self.reports.iter().find(|(name, _)| *name == holder.instance)?;
        let pod = self.pods.iter().find(|pod| pod.name_any() == holder.instance)?;
        let is_open = report.role == Role::Primary
            && report.ready
            && report.epoch == self.leadership.epoch
            && report.pod_uid == holder.pod_uid
            && pod.metadata.uid == holder.pod_uid;
        is_open.then(|| Some((*report, server_image(pod)?)))?
    }

    /// What the primary runs is recorded, for the time when another version is asked for.
    fn record(&self, data: &DataVersion) -> Option<Change> {
        let (report, image) = self.primary()?;
        let major = major(report.version.as_deref()?).to_owned();
        let is_tried_again = data.failed.is_some() && failed(self.database, data).is_none();
        if data.major == major && data.image == image && !is_tried_again {
            return None;
        }
        let failed = data.failed.clone().filter(|_| !is_tried_again);
        let next = DataVersion { major: major.clone(), image: image.clone(), failed, ..data.clone() };
        self.change(next, Why::RecordsVersion { major, image })
    }

    fn begin(&self, data: &DataVersion, wanted: &str) -> Option<Change> {
        let database = self.database;
        let is_paused = database.annotations().get(PAUSED).is_some_and(|value| value == "true");
        let is_deleted = database.metadata.deletion_timestamp.is_some();
        let is_asked_for = compare(database, data) == Ordering::Greater && failed(database, data).is_none();
        let is_backed_up = goes_without_backup(database)
            || self.backup.as_ref().is_some_and(|backup| backup.phase() == BackupPhase::Completed);
        let is_calm = self.primary().is_some() && self.leadership.switchover_to.is_none();
        if is_paused || is_deleted || !is_asked_for || !is_backed_up || !is_calm {
            return None;
        }
        let (to, image) = (wanted.to_owned(), children::image(database));
        let upgrade = Upgrade { to: to.clone(), image, phase: Phase::Stopping, instance: None };
        let next = DataVersion { upgrade: Some(upgrade), failed: None, ..data.clone() };
        self.change(next, Why::UpgradeBegins { from: data.major.clone(), to })
    }

    fn go_on(&self, data: &DataVersion, upgrade: &Upgrade, wanted: &str) -> Option<Change> {
        let is_asked_for = wanted == upgrade.to;
        match &upgrade.phase {
            Phase::Stopping if !is_asked_for => {
                let next = DataVersion { upgrade: None, ..data.clone() };
                self.change(next, Why::UpgradeCancelled { to: upgrade.to.clone() })
            }
            Phase::Stopping => self.upgrade(data, upgrade),
            Phase::Upgrading { attempt } | Phase::Starting { attempt } if !is_asked_for => {
                self.revert(data, upgrade, *attempt, None)
            }
            Phase::Upgrading { attempt } => self.start(data, upgrade, *attempt),
            Phase::Starting { .. } => self.complete(data, upgrade),
            Phase::Reverting { attempt, failed, .. } => {
                self.put_back(data, upgrade, *attempt, failed.as_ref())
            }
        }
    }

    /// All servers have stopped: the data of the one that was primary has everything.
    fn upgrade(&self, data: &DataVersion, upgrade: &Upgrade) -> Option<Change> {
        // One that was killed could not give the Lease back.
        let has_stopped = self.leadership.holder.as_ref().is_none_or(|holder| holder.run.is_none())
            || self.unchanged_for >= self.lease_duration;
        if !self.pods.is_empty() || !has_stopped {
            return None;
        }
        let leadership = self.leadership.vacated(true);
        let instance = leadership.previous.as_ref()?.instance.clone();
        let phase = Phase::Upgrading { attempt: leadership.epoch };
        let next = Upgrade { phase, instance: Some(instance.clone()), ..upgrade.clone() };
        let data = DataVersion { upgrade: Some(next), ..data.clone() };
        Some(Change { leadership, data, why: Why::Upgrades { instance, to: upgrade.to.clone() } })
    }

    /// What the Job of an attempt has reported of data of a version: its identifier and its copy.
    fn reported(&self, upgrade: &Upgrade, attempt: i32, version: &str) -> Option<(&str, &str, &str)> {
        let instance = upgrade.instance.as_deref()?;
        let (name, status) = self.reports.iter().find(|(name, _)| *name == instance)?;
        let report = status.upgrade.as_ref().filter(|report| report.attempt == attempt)?;
        let is_done = report.version.as_deref() == Some(version);
        is_done.then(|| Some((*name, report.system_identifier.as_deref()?, report.clone.as_deref()?)))?
    }

    /// Why the Job of an attempt failed, if it did.
    fn failure(&self, upgrade: &Upgrade, attempt: i32) -> Option<String> {
        let Finished::Failed { reason, message } = finished(self.job.as_deref()?)? else { return None };
        let instance = upgrade.instance.as_deref()?;
        let report = self.reports.iter().find(|(name, _)| *name == instance);
        let report = report.and_then(|(_, status)| status.upgrade.as_ref());
        let said = report.filter(|report| report.attempt == attempt && !report.message.is_empty());
        Some(said.map_or_else(|| format!("{reason}: {message}"), |report| report.message.clone()))
    }

    fn quorum(&self) -> usize {
        let spec = &self.database.spec;
        usize::from(spec.instances > 1 && spec.durability == Durability::Required)
    }

    fn start(&self, data: &DataVersion, upgrade: &Upgrade, attempt: i32) -> Option<Change> {
        let Some((instance, identifier, clone)) = self.reported(upgrade, attempt, &upgrade.to) else {
            let message = self.failure(upgrade, attempt)?;
            return self.revert(data, upgrade, attempt, Some(message));
        };
        let leadership = self.leadership.with_data_of(instance, clone, identifier, self.quorum());
        let next = Upgrade { phase: Phase::Starting { attempt }, ..upgrade.clone() };
        let superseded = self.leadership.system_identifier.clone();
        let data = DataVersion { upgrade: Some(next), superseded, ..data.clone() };
        Some(Change { leadership, data, why: Why::StartsVersion { to: upgrade.to.clone() } })
    }

    fn complete(&self, data: &DataVersion, upgrade: &Upgrade) -> Option<Change> {
        let (report, image) = self.primary()?;
        let runs = report.version.as_deref().map(major);
        if runs != Some(&upgrade.to) || image != upgrade.image {
            return None;
        }
        let next =
            DataVersion { major: upgrade.to.clone(), image, upgrade: None, failed: None, ..data.clone() };
        self.change(next, Why::UpgradeCompleted { to: upgrade.to.clone() })
    }

    fn revert(
        &self,
        data: &DataVersion,
        upgrade: &Upgrade,
        of: i32,
        failed: Option<String>,
    ) -> Option<Change> {
        let leadership = self.leadership.vacated(false);
        let why = match &failed {
            Some(message) => Why::UpgradeFailed { to: upgrade.to.clone(), message: message.clone() },
            None => Why::UpgradeReverted { from: data.major.clone() },
        };
        let phase = Phase::Reverting { attempt: leadership.epoch, of, failed };
        let next = Upgrade { phase, ..upgrade.clone() };
        Some(Change { leadership, data: DataVersion { upgrade: Some(next), ..data.clone() }, why })
    }

    fn put_back(
        &self,
        data: &DataVersion,
        upgrade: &Upgrade,
        attempt: i32,
        failed: Option<&String>,
    ) -> Option<Change> {
        let (instance, identifier, clone) = self.reported(upgrade, attempt, &data.major)?;
        let leadership = self.leadership.with_data_of(instance, clone, identifier, self.quorum());
        let recorded = self.leadership.system_identifier.clone();
        let data = DataVersion {
            // Others may have copied the data of the next version meanwhile, or still have that of the last.
            superseded: recorded
                .filter(|recorded| recorded != identifier)
                .or_else(|| data.superseded.clone()),
            upgrade: None,
            failed: failed.map(|message| FailedUpgrade {
                to: upgrade.to.clone(),
                image: upgrade.image.clone(),
                message: message.clone(),
            }),
            ..data.clone()
        };
        let from = data.major.clone();
        Some(Change { leadership, data, why: Why::RunsVersionAgain { from } })
    }
}

/// The image of a pod's server.
pub(super) fn server_image(pod: &Pod) -> Option<String> {
    let containers = &pod.spec.as_ref()?.containers;
    containers.iter().find(|container| container.name == children::CONTAINER)?.image.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1alpha1::UpgradeReport;
    use crate::leadership::Holder;
    use serde_json::json;

    const TEN: Duration = Duration::from_secs(10);

    fn database(version: &str) -> SampleDB {
        serde_json::from_value(json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDB",
            "metadata": {"name": "db", "annotations": {WITHOUT_BACKUP: "true"}},
            "spec": {"version": version, "instances": 2, "storage": {"size": "1Gi"}},
        }))
        .unwrap()
    }

    fn held() -> Leadership {
        let holder = Holder {
            instance: "db-0".to_owned(),
            clone: Some("a".to_owned()),
            pod_uid: Some("uid".to_owned()),
            run: Some("r".to_owned()),
        };
        Leadership {
            epoch: 4,
            holder: Some(holder),
            system_identifier: Some("7".into()),
            ..Leadership::default()
        }
    }

    fn data(phase: Option<Phase>) -> DataVersion {
        let upgrade = phase.map(|phase| Upgrade {
            to: "18".into(),
            image: "postgres:18".into(),
            phase,
            instance: Some("db-0".into()),
        });
        DataVersion { major: "16".into(), image: "postgres:16".into(), upgrade, ..DataVersion::default() }
    }

    fn pod(image: &str) -> Arc<Pod> {
        let pod = json!({
            "metadata": {"name": "db-0", "uid": "uid"},
            "spec": {"containers": [{"name": children::CONTAINER, "image": image}]},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn primary(version: &str, epoch: i32) -> SampleDBInstanceStatus {
        SampleDBInstanceStatus {
            role: Role::Primary,
            ready: true,
            pod_uid: Some("uid".into()),
            version: Some(version.into()),
            epoch,
            ..SampleDBInstanceStatus::default()
        }
    }

    /// Decides about one that has one pod, or none, and answers what the Lease says next.
    fn next(
        version: &str,
        leadership: &Leadership,
        data: &DataVersion,
        report: &SampleDBInstanceStatus,
        pods: &[Arc<Pod>],
        unchanged_for: Duration,
    ) -> Option<(Leadership, DataVersion)> {
        let database = database(version);
        let situation = Situation {
            database: &database,
            leadership,
            data: Some(data),
            reports: &[("db-0", report)],
            pods,
            unchanged_for,
            lease_duration: TEN,
            job: None,
            backup: None,
        };
        decide(&situation).map(|change| (change.leadership, change.data))
    }

    #[test]
    fn a_higher_version_stops_the_servers_and_a_lower_one_changes_nothing() {
        let report = primary("16.4", 4);
        let pods = [pod("postgres:16")];
        let ask =
            |version: &str, data: &DataVersion| next(version, &held(), data, &report, &pods, Duration::ZERO);
        let (_, next) = ask("18.1", &data(None)).unwrap();
        assert_eq!(next.phase(), Some(&Phase::Stopping));
        assert!(ask("15", &data(None)).is_none() && ask("16", &data(None)).is_none());
        // One that failed is not tried again, until another version was asked for.
        let failed = FailedUpgrade { to: "18".into(), image: "postgres:18".into(), message: "no".into() };
        let after = DataVersion { failed: Some(failed), ..data(None) };
        assert!(ask("18", &after).is_none());
        assert!(ask("16", &after).unwrap().1.failed.is_none());
    }

    #[test]
    fn data_is_upgraded_when_no_server_runs_also_if_the_last_one_was_killed() {
        let (stopping, report) = (data(Some(Phase::Stopping)), primary("16.4", 4));
        let go_on = |leadership: &Leadership, pods: &[Arc<Pod>], age: Duration| {
            next("18", leadership, &stopping, &report, pods, age)
        };
        assert!(go_on(&held().vacated(true), &[pod("postgres:16")], TEN).is_none());
        assert!(go_on(&held(), &[], Duration::from_secs(9)).is_none());
        for (leadership, age) in [(held().vacated(true), Duration::ZERO), (held(), TEN)] {
            let (leadership, next) = go_on(&leadership, &[], age).unwrap();
            assert_eq!(next.phase(), Some(&Phase::Upgrading { attempt: leadership.epoch }));
            assert_eq!(next.upgrade.unwrap().instance.as_deref(), Some("db-0"));
            assert!(leadership.holder.is_none());
        }
        let cancelled = next("16", &held(), &stopping, &report, &[], TEN).unwrap().1;
        assert!(cancelled.upgrade.is_none());
    }

    #[test]
    fn servers_of_the_next_version_start_on_the_data_that_was_reported_and_then_there_is_no_way_back() {
        let upgrading = data(Some(Phase::Upgrading { attempt: 6 }));
        let leadership = Leadership { epoch: 6, ..held().vacated(true) };
        let report = |attempt: i32, version: &str, identifier: &str| SampleDBInstanceStatus {
            upgrade: Some(UpgradeReport {
                attempt,
                version: Some(version.into()),
                system_identifier: Some(identifier.into()),
                clone: Some("b".into()),
                ..UpgradeReport::default()
            }),
            ..SampleDBInstanceStatus::default()
        };
        let go_on = |data: &DataVersion, version: &str, report: &SampleDBInstanceStatus| {
            next(version, &leadership, data, report, &[], Duration::ZERO)
        };
        assert!(go_on(&upgrading, "18", &report(5, "18", "8")).is_none());
        assert!(go_on(&upgrading, "18", &report(6, "16", "7")).is_none());
        let (started, starting) = go_on(&upgrading, "18", &report(6, "18", "8")).unwrap();
        assert_eq!(starting.phase(), Some(&Phase::Starting { attempt: 6 }));
        assert_eq!(
            (starting.superseded.as_deref(), started.system_identifier.as_deref()),
            (Some("7"), Some("8"))
        );
        assert!(started.is_held_by("db-0", "b") && starting.keeps_writes_out());

        // Set back, the data of the last version is put back: both are another's for who still has the other.
        let (_, reverting) = go_on(&starting, "16", &report(6, "18", "8")).unwrap();
        let Some(Phase::Reverting { attempt, of: 6, failed: None }) = reverting.phase().cloned() else {
            panic!()
        };
        let leadership = Leadership { epoch: attempt, ..started.vacated(true) };
        let put_back = report(attempt, "16", "7");
        let (back, over) = next("16", &leadership, &reverting, &put_back, &[], Duration::ZERO).unwrap();
        assert_eq!((over.upgrade, over.superseded.as_deref()), (None, Some("8")));
        assert_eq!(back.system_identifier.as_deref(), Some("7"));

        // The primary of the next version is there: writes are let in.
        let taken = Leadership { epoch: 9, ..held() };
        let pods = [pod("postgres:18")];
        assert!(next("18", &taken, &starting, &primary("16.4", 9), &pods, TEN).is_none());
        let (_, over) = next("18", &taken, &starting, &primary("18.4", 9), &pods, TEN).unwrap();
        assert_eq!((over.upgrade.as_ref(), over.major.as_str()), (None, "18"));
        assert!(next("16", &taken, &over, &primary("18.4", 9), &pods, TEN).is_none());
    }
}
